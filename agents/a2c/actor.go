package a2c

import (
	"github.com/onnxrl/onnxrl/envs/vector"
)

// features are the inputs of a program that have the features of windows of a table.
type features struct {
	bank   *bank
	series int
	// z are the inputs, one for each encoder.
	z       [][]float32
	learner *learner
}

// Current implements onpolicy.Inputs.
func (f *features) Current(b *vector.Batch) error {
	for e, row := range b.Rows[f.series] {
		if err := f.fetch(e, int(row)); err != nil {
			return err
		}
	}
	return nil
}

// Final implements onpolicy.Inputs.
func (f *features) Final(b *vector.Batch) error {
	for _, e := range b.Ended {
		if err := f.fetch(e.Env, int(b.FinalRows[f.series][e.Env])); err != nil {
			return err
		}
	}
	return nil
}

// fetch copies the features of environment e's window.
func (f *features) fetch(e, row int) error {
	p, err := f.bank.find(row, f.learner.stamp())
	if err != nil {
		return err
	}
	f.bank.copyTo(f.z, e, p, row)
	return nil
}
