package indicator

import "math"

// window holds the last n numbers, oldest first when read through at.
type window struct {
	data []float64
	head int // where the next number goes
	full bool
}

func newWindow(n int) window { return window{data: make([]float64, n)} }

// push adds x, dropping the oldest number of a full window.
func (w *window) push(x float64) {
	w.data[w.head] = x
	if w.head++; w.head == len(w.data) {
		w.head, w.full = 0, true
	}
}

// at returns the i-th oldest number of a full window.
func (w *window) at(i int) float64 {
	if i += w.head; i >= len(w.data) {
		i -= len(w.data)
	}
	return w.data[i]
}

// sum adds up a full window from the oldest number on, so that equal windows give equal bits.
func (w *window) sum() float64 {
	s := 0.0
	for _, x := range w.data[w.head:] {
		s += x
	}
	for _, x := range w.data[:w.head] {
		s += x
	}
	return s
}

func (w *window) mean() float64 { return w.sum() / float64(len(w.data)) }

// deviation is the population standard deviation around mean.
func (w *window) deviation(mean float64) float64 {
	s := 0.0
	for i := range w.data {
		d := w.at(i) - mean
		s += d * d
	}
	return math.Sqrt(s / float64(len(w.data)))
}

func (w *window) max() float64 {
	m := w.data[0]
	for _, x := range w.data[1:] {
		m = max(m, x)
	}
	return m
}

func (w *window) min() float64 {
	m := w.data[0]
	for _, x := range w.data[1:] {
		m = min(m, x)
	}
	return m
}
