package actors

import (
	"fmt"
	"sync"

	"github.com/onnxrl/onnxrl/models"
)

// Weights are the newest parameters of a learner. It is safe for concurrent use.
type Weights struct {
	mu      sync.RWMutex
	version int64
	values  [][]float32
}

// learnt are the segments of a policy that learning changes; all agents of a configuration have the
// others alike.
func learnt(p *models.Params) (list []*models.Segment) {
	for _, s := range p.Segments() {
		if s.Role == models.Trainable || s.Role == models.Buffer {
			list = append(list, s)
		}
	}
	return list
}

// Publish copies what learning has changed, which is of a version now.
func (w *Weights) Publish(version int64, p *models.Params) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := learnt(p)
	if w.values == nil {
		w.values = make([][]float32, len(list))
	}
	for i, s := range list {
		w.values[i] = append(w.values[i][:0], s.Floats()...)
	}
	w.version = version
}

// Pull copies the newest values into the parameters of another agent of the same configuration, and
// returns their version.
func (w *Weights) Pull(p *models.Params) (version int64, err error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	list := learnt(p)
	if len(list) != len(w.values) {
		return 0, fmt.Errorf("adopt parameters: %d segments, expected %d", len(w.values), len(list))
	}
	for i, s := range list {
		if len(s.Floats()) != len(w.values[i]) {
			return 0, fmt.Errorf("adopt parameters: a segment of %d numbers, expected %d", len(w.values[i]), len(s.Floats()))
		}
	}
	for i, s := range list {
		copy(s.Floats(), w.values[i])
	}
	return w.version, nil
}
