package live

import "github.com/onnxrl/onnxrl/runtime/tensor"

// ring keeps the last W rows as one block: every row is in it twice, W places apart, so that W rows
// in a row end at the newest one wherever that is.
type ring struct {
	data   []float32 // 2·W rows
	width  int       // of a row, N·F
	window int
	next   int // place of the next row, below W; the oldest row of a full ring
	views  []*tensor.Tensor
}

func newRing(window, n, f int) ring {
	r := ring{data: make([]float32, 2*window*n*f), width: n * f, window: window, views: make([]*tensor.Tensor, window)}
	for i := range r.views {
		r.views[i] = tensor.Of(r.data[i*r.width:(i+window)*r.width], window, n, f)
	}
	return r
}

// advance returns the place of a new row, which takes that of the oldest. mirror must follow.
func (r *ring) advance() []float32 {
	row := r.row(r.next)
	if r.next++; r.next == r.window {
		r.next = 0
	}
	return row
}

// mirror copies the row that advance returned to its other place.
func (r *ring) mirror() {
	i := (r.next + r.window - 1) % r.window
	copy(r.row(i+r.window), r.row(i))
}

func (r *ring) row(i int) []float32 { return r.data[i*r.width : (i+1)*r.width] }

// view is the block of all rows, oldest first.
func (r *ring) view() *tensor.Tensor { return r.views[r.next] }

// last is the newest row.
func (r *ring) last() []float32 { return r.ago(1) }

// ago is the row that was appended back rows ago, 1 for the newest.
func (r *ring) ago(back int) []float32 { return r.row(r.next + r.window - back) }
