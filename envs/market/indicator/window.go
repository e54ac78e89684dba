package indicator

import "math"

// window holds the last n numbers.
type window struct {
	// data has room for 2·n numbers. The window is those before end, oldest first; where there is
	// no more room it goes back to the beginning, so that it can be read in one piece.
	data   []float64
	n, end int
	full   bool
}

func newWindow(n int) window { return window{data: make([]float64, 2*n), n: n, end: n} }

// push adds x, dropping the oldest number of a full window.
func (w *window) push(x float64) {
	if w.end == len(w.data) {
		w.end = copy(w.data, w.data[w.n+1:])
	}
	w.data[w.end] = x
	if w.end++; w.end == len(w.data) {
		w.full = true
	}
}

// all are the numbers, oldest first; those of a window that is not full begin with zeros.
func (w *window) all() []float64 { return w.data[w.end-w.n : w.end] }

// oldest is the oldest number of a full window.
func (w *window) oldest() float64 { return w.data[w.end-w.n] }

// sum adds up a full window from the oldest number on, so that equal windows give equal bits.
func (w *window) sum() float64 {
	s := 0.0
	for _, x := range w.all() {
		s += x
	}
	return s
}

func (w *window) mean() float64 { return w.sum() / float64(w.n) }

// deviation is the population standard deviation around mean.
func (w *window) deviation(mean float64) float64 {
	s := 0.0
	for _, x := range w.all() {
		d := x - mean
		s += d * d
	}
	return math.Sqrt(s / float64(w.n))
}
