package envs

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Window presents runs of consecutive rows of a constant tensor as observations without copying
// them. It is safe for concurrent use, and the environments of a batch share one.
type Window struct {
	rows  *tensor.Tensor
	n     int
	views []*tensor.Tensor
}

// NewWindow returns the windows of n rows of a tensor [T, …], which must not change any more. It
// makes one small header per row; the rows themselves are shared.
func NewWindow(rows *tensor.Tensor, n int) (*Window, error) {
	if rows.Rank() == 0 {
		return nil, fmt.Errorf("window of %v: it has no rows", rows)
	}
	if t := rows.Shape()[0]; n < 1 || n > t {
		return nil, fmt.Errorf("window of %d rows of %v: expected between 1 and %d", n, rows, t)
	}
	w := &Window{rows: rows, n: n, views: make([]*tensor.Tensor, rows.Shape()[0])}
	for last := n - 1; last < len(w.views); last++ {
		w.views[last] = rows.Rows(last-n+1, last+1)
	}
	return w, nil
}

// Table returns the tensor whose rows the windows are made of.
func (w *Window) Table() *tensor.Tensor { return w.rows }

// Len returns the number of rows of a window.
func (w *Window) Len() int { return w.n }

// At returns the view of the rows (last-Len, last]. It allocates nothing. It panics when the window
// would begin before the first row or end after the last one.
func (w *Window) At(last int) *tensor.Tensor {
	v := w.views[last]
	if v == nil {
		panic(fmt.Sprintf("envs: window of %d rows that ends with row %d", w.n, last))
	}
	return v
}
