package publish

import (
	"fmt"

	"onnxrl/agents"
	"onnxrl/agents/served"
	"onnxrl/envs"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// sampled is the number of rows that a publication records, and stretches the number of parts of an episode in which the policy itself acts.
const (
	sampled   = 256
	stretches = 4
)

// recorder keeps observations as a network is given them while it trains, and as they are before scaling.
type recorder struct {
	spec   envs.Spec
	inputs []string // of the network
	fields []int    // in Spec.Observation by input; -1 is the mask
	raw    []*envs.Window
	// samples and unscaled are in the order of inputs; unscaled is nil where a sample is what it was.
	samples, unscaled []*tensor.Tensor
	rows, size        int // recorded, and wanted
}

// newRecorder lays out size samples of a network.
func newRecorder(spec envs.Spec, inputs []string, tables map[string]*tensor.Tensor, size int) (*recorder, error) {
	r := &recorder{spec: spec, inputs: inputs, size: size}
	for _, name := range inputs {
		if name == agents.MaskInput {
			r.add(-1, nil, tensor.New(tensor.Bool, size, envs.MaskLen(spec.Action)), nil)
			continue
		}
		i := spec.Observation.Index(name)
		if i < 0 {
			return nil, fmt.Errorf("the network has an input %q, which is no field of the observation", name)
		}
		f := spec.Observation[i]
		shape := append([]int{size}, f.Space.Shape()...)
		if t := tables[name]; t != nil {
			w, err := envs.NewWindow(t, f.Window.Len())
			if err != nil {
				return nil, err
			}
			r.add(i, w, tensor.New(f.Space.DType(), shape...), tensor.New(f.Space.DType(), shape...))
			continue
		}
		r.add(i, nil, tensor.New(f.Space.DType(), shape...), nil)
	}
	return r, nil
}

func (r *recorder) add(field int, raw *envs.Window, sample, unscaled *tensor.Tensor) {
	r.fields, r.raw = append(r.fields, field), append(r.raw, raw)
	r.samples, r.unscaled = append(r.samples, sample), append(r.unscaled, unscaled)
}

// keep records a step, unless there are enough.
func (r *recorder) keep(ts *envs.TimeStep) {
	if r.rows == r.size {
		return
	}
	for k, i := range r.fields {
		row := r.samples[k].Rows(r.rows, r.rows+1).Bytes()
		if i < 0 {
			copy(row, ts.Mask.Bytes())
			continue
		}
		copy(row, ts.Obs[i].Bytes())
		if r.raw[k] != nil {
			copy(r.unscaled[k].Rows(r.rows, r.rows+1).Bytes(), r.raw[k].At(int(ts.Rows[i])).Bytes())
		}
	}
	r.rows++
}

// record fills the samples from episodes of one environment: the first half of the rows, spread over the episodes, under random actions; the second half in stretches in which the policy acts, with random actions between them.
func (r *recorder) record(e envs.Env, a *served.Actor, key rng.Key) error {
	r.rows = 0
	spread := max(1, e.Spec().MaxSteps/(r.size/2))
	if err := r.episodes(e, nil, key.Split("random"), r.size/2, func(n int) (keep, greedy bool) { return n%spread == 0, false }); err != nil {
		return err
	}
	length := r.size / 2 / stretches
	period := max(length, e.Spec().MaxSteps/stretches)
	return r.episodes(e, a, key.Split("greedy"), r.size, func(n int) (keep, greedy bool) {
		in := n%period >= period-length
		return in, in
	})
}

// episodes plays until there are that many rows. at says for the n-th step of an episode whether it is kept and whether the policy decides. An episode too short to reach a step to keep counts with its first one.
func (r *recorder) episodes(e envs.Env, a *served.Actor, key rng.Key, rows int, at func(n int) (keep, greedy bool)) error {
	spec := e.Spec()
	ts, action := envs.NewTimeStep(spec), tensor.New(spec.Action.DType(), spec.Action.Shape()...)
	draws := key.Stream()
	for episode := 0; r.rows < rows; episode++ {
		if err := e.Reset(key.Split("episode", episode), ts); err != nil {
			return fmt.Errorf("record observations: %w", err)
		}
		before := r.rows
		for n := 0; r.rows < rows; n++ {
			keep, greedy := at(n)
			if keep || ts.Type == envs.Last && r.rows == before {
				r.keep(ts)
			}
			if ts.Type == envs.Last {
				break
			}
			var mask []bool
			if ts.Mask != nil {
				mask = ts.Mask.Bools()
			}
			spec.Action.Sample(draws, mask, action)
			if greedy {
				if err := a.Observe(0, ts); err != nil {
					return err
				}
				d, err := a.Decide()
				if err != nil {
					return err
				}
				copy(action.Bytes(), d.Actions.Bytes())
			}
			if err := e.Step(action, ts); err != nil {
				return fmt.Errorf("record observations: %w", err)
			}
		}
	}
	return nil
}
