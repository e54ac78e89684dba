package bake

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// fixedBatch returns the number of rows that a session takes at once, where those of the named
// inputs say one: PyTorch writes that of its example unless told otherwise. It is 0 where any will
// do, or where inputs differ, which a run finds out.
func fixedBatch(s engine.Session, names []string) (n int) {
	for _, p := range s.Inputs() {
		if !slices.Contains(names, p.Name) || len(p.Shape) == 0 || p.Shape[0] < 1 {
			continue
		}
		if n > 0 && p.Shape[0] != n {
			return 0
		}
		n = p.Shape[0]
	}
	return n
}

// inBatches calls f for every n rows from one on.
func inBatches(rows, n int, f func(from int) error) error {
	if rows%n != 0 {
		return fmt.Errorf("%d rows for a model that takes %d at once: expected a multiple", rows, n)
	}
	for from := 0; from < rows; from += n {
		if err := f(from); err != nil {
			return err
		}
	}
	return nil
}

// rowsOf returns rows [from, from+n) of every tensor.
func rowsOf(inputs map[string]*tensor.Tensor, from, n int) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	for name, t := range inputs {
		out[name] = t.Rows(from, from+n)
	}
	return out
}
