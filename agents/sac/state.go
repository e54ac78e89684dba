package sac

import "github.com/onnxrl/onnxrl/models/checkpoint"

// SaveState implements checkpoint.Stater.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	l.temperature.save(w)
	if l.conservative != nil {
		l.conservative.alpha.save(w)
	}
	if l.c.ActionNoise != nil {
		l.SaveNoise(w)
	}
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
	if x := l.conservative; x != nil {
		a, err := x.c.newAlpha()
		if err == nil {
			err = a.load(r)
		}
		if err != nil {
			return err
		}
		x.alpha = a
	}
	if err := l.LoadNoise(r); err != nil {
		return err
	}
	clear(l.metrics)
	return l.Learner.LoadState(r)
}
