package optim

import "github.com/onnxrl/onnxrl/runtime/optim/kernel"

// Polyak moves a target network towards the online one in place:
// dst += tau * (src - dst), element by element over arenas of equal layout.
// tau = 1 copies exactly.
func Polyak(dst, src []float32, tau float32) {
	if tau == 1 && len(dst) == len(src) {
		copy(dst, src)
		return
	}
	kernel.Polyak(dst, src, tau)
}
