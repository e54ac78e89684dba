package sac

import "github.com/onnxrl/onnxrl/models/checkpoint"

// SaveState implements checkpoint.Stater.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	l.temperature.save(w)
	return l.Learner.SaveState(w)
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	t, err := newTemperature(l.c, l.Networks.Frame)
	if err == nil {
		err = t.load(r)
	}
	if err != nil {
		return err
	}
	l.temperature = t
	clear(l.metrics)
	return l.Learner.LoadState(r)
}
