package optim

import (
	"math/rand/v2"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/pool"
)

// TestPool checks that sharing a step with a pool changes nothing and allocates nothing.
func TestPool(t *testing.T) {
	const n = poolMin + 1000
	compared := 0
	for _, c := range []Config{{Kind: "sgd", LR: 0.01}, {Kind: "rmsprop", LR: 0.01}, {Kind: "adam", LR: 0.01}, {Kind: "lamb", LR: 0.01}} {
		var want []float32
		for _, size := range []int{1, 2, 3} {
			members := pool.New(size, pool.Spin)
			params, grads := make([]float32, n), make([]float32, n)
			r := rand.New(rand.NewPCG(1, 1))
			for i := range params {
				params[i], grads[i] = r.Float32(), r.Float32()-0.5
			}
			o := mustNew(t, c, WithPool(members))
			// The last group is too small for everybody to have a share.
			groups := []Group{
				{Params: params[:n-5], Grads: grads[:n-5], LR: 0.01},
				{Params: params[n-5:], Grads: grads[n-5:], Offset: n - 5, LR: 0.02},
			}
			mustStep(t, o, groups)
			if allocs := testing.AllocsPerRun(3, func() { mustStep(t, o, groups) }); allocs != 0 {
				t.Errorf("%s with a pool of %d: %v allocations per step", c.Kind, size, allocs)
			}
			members.Close()
			if want == nil {
				want = params
				continue
			}
			compared++
			if !sameBits(want, params) {
				t.Errorf("%s: a pool of %d differs from one", c.Kind, size)
			}
		}
	}
	if compared != 8 {
		t.Errorf("%d comparisons, want 8", compared)
	}
}
