//go:build cgo

package ort

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// holder keeps the memory of tensors in place while C may look at it.
type holder struct {
	pinner runtime.Pinner
	arenas []*tensor.Arena
	guards guards
}

// hold returns the address of a tensor's memory for C, nil if it has none. C writes to outputs
// only.
func (h *holder) hold(port engine.Port, t *tensor.Tensor, output bool) (unsafe.Pointer, error) {
	if a := t.Arena(); a != nil {
		if err := a.Retain(); err != nil {
			return nil, fmt.Errorf("value %q: %w", port.Name, err)
		}
		h.arenas = append(h.arenas, a)
		return h.guards.add(port.Name, t.Bytes(), output), nil
	}
	b := t.Bytes()
	if len(b) == 0 {
		return nil, nil
	}
	// Pinning ignores memory outside the Go heap, such as a mapped file's.
	h.pinner.Pin(unsafe.SliceData(b))
	return h.guards.add(port.Name, b, output), nil
}

// release lets go of everything held. The holder can be used again.
func (h *holder) release() {
	h.guards.release()
	h.pinner.Unpin()
	for i, a := range h.arenas {
		a.Release()
		h.arenas[i] = nil
	}
	h.arenas = h.arenas[:0]
}
