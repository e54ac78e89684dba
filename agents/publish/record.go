package publish

import (
	"context"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// sampled is the number of rows of a candidate's parity check, block the number of those that a
// publication records at a time, and stretches the number of parts of an episode in which the
// policy itself acts.
const (
	sampled   = 256
	block     = 1024
	stretches = 4
)

// recorder keeps observations as a network is given them while it trains, and as the served model
// takes them. Of a policy that remembers it keeps whole episodes.
type recorder struct {
	a         *preprocessing
	inputs    []string // of the network, without its states
	fields    []int    // in the observation by input; -1 is the mask
	raw       []*envs.Window
	normal    []*wrap.Normalizer // by input
	newest    []bool             // by input: the served model takes the last observation of a stack
	starts    []*bake.Start      // by input: the served model takes the environment's choices; nil for those from 0
	remembers bool
	// samples and unscaled are in the order of inputs; unscaled is nil where the served model takes
	// the sample itself. begins marks the rows that an episode begins with, of a policy that
	// remembers.
	samples, unscaled []*tensor.Tensor
	begins            []bool
	rows, size        int // recorded, and wanted
}

// taken are the rows as the served model takes them, by input.
func (r *recorder) taken() []*tensor.Tensor {
	list := slices.Clone(r.samples)
	for i, t := range r.unscaled {
		if t != nil {
			list[i] = t
		}
	}
	return list
}

// newRecorder lays out size samples for the inputs of a network but its states.
func newRecorder(a *preprocessing, remembers bool, inputs []string, normal []wrap.Normalizer, size int) (*recorder, error) {
	r := &recorder{a: a, remembers: remembers, size: size}
	if remembers {
		// At least one episode should be whole.
		r.size = max(size, min(a.spec.MaxSteps+1, bake.Observations))
		r.begins = make([]bool, r.size)
	}
	for _, name := range inputs {
		r.inputs = append(r.inputs, name)
		if name == agents.MaskInput {
			r.add(-1, tensor.Bool, []int{envs.MaskLen(a.spec.Action)}, nil)
			continue
		}
		i := a.spec.Observation.Index(name)
		if i < 0 {
			return nil, fmt.Errorf("the network has an input %q, which is no field of the observation", name)
		}
		f := a.spec.Observation[i]
		shape, taken := f.Space.Shape(), []int(nil)
		if t := a.Tables[name]; t != nil {
			w, err := envs.NewWindow(t, f.Window.Len())
			if err != nil {
				return nil, err
			}
			r.add(i, f.Space.DType(), shape, shape)
			r.raw[len(r.raw)-1] = w
			continue
		}
		k := slices.IndexFunc(normal, func(n wrap.Normalizer) bool { return n.Field == name })
		if k >= 0 {
			taken = shape
		}
		if a.startOf(name) != nil {
			taken = append([]int{}, shape...)
		}
		s, stacked := a.stacks[name]
		if stacked {
			taken = s.shape
		}
		r.add(i, f.Space.DType(), shape, taken)
		if k >= 0 {
			r.normal[len(r.normal)-1] = &normal[k]
		}
		r.newest[len(r.newest)-1], r.starts[len(r.starts)-1] = stacked, a.startOf(name)
	}
	return r, nil
}

// add lays out an input: what the network is given, and what the model takes where that is
// something else.
func (r *recorder) add(field int, d tensor.DType, shape, taken []int) {
	var unscaled *tensor.Tensor
	r.starts = append(r.starts, nil)
	if taken != nil {
		unscaled = tensor.New(d, append([]int{r.size}, taken...)...)
	}
	r.fields, r.raw, r.normal, r.newest = append(r.fields, field), append(r.raw, nil), append(r.normal, nil), append(r.newest, false)
	r.samples, r.unscaled = append(r.samples, tensor.New(d, append([]int{r.size}, shape...)...)), append(r.unscaled, unscaled)
}

// keep records a step, unless there are enough.
func (r *recorder) keep(ts *envs.TimeStep) {
	if r.rows == r.size {
		return
	}
	for k, i := range r.fields {
		sample := r.samples[k].Rows(r.rows, r.rows+1)
		if i < 0 {
			copy(sample.Bytes(), ts.Mask.Bytes())
			continue
		}
		if r.inputs[k] == wrap.SkillField && r.a.skill != nil {
			// Environments of training draw others.
			copy(sample.Float32s(), r.a.skill)
			continue
		}
		shown := ts.Obs[i].Bytes()
		copy(sample.Bytes(), shown)
		if n := r.normal[k]; n != nil {
			n.Apply(sample.Float32s(), sample.Float32s())
		}
		if r.unscaled[k] == nil {
			continue
		}
		taken := r.unscaled[k].Rows(r.rows, r.rows+1).Bytes()
		if r.raw[k] != nil {
			shown = r.raw[k].At(int(ts.Rows[i])).Bytes()
		}
		copy(taken, shown[len(shown)-len(taken):])
		if s := r.starts[k]; s != nil {
			row := r.unscaled[k].Rows(r.rows, r.rows+1).Int64s()
			for i := range row {
				row[i] += s.Of[i%len(s.Of)]
			}
		}
	}
	if r.remembers {
		r.begins[r.rows] = ts.Type == envs.First
	}
	r.rows++
}

// record fills the samples from episodes of one environment: the first half of the rows, spread
// over the episodes, under random actions; the second half in stretches in which the policy acts,
// with random actions between them. Of a policy that remembers, whole episodes follow each other,
// in which chance and the policy act in turns. When ctx ends it returns ctx's error; what the
// environment is to blame for is an ErrObservations.
func (r *recorder) record(ctx context.Context, e envs.Env, a *served.Actor, key rng.Key) error {
	r.rows = 0
	if r.remembers {
		return r.episodes(ctx, e, a, key.Split("episodes"), r.size, func(episode, _ int) (keep, greedy bool) { return true, episode%2 == 0 })
	}
	spread := max(1, e.Spec().MaxSteps/(r.size/2))
	if err := r.episodes(ctx, e, nil, key.Split("random"), r.size/2, func(_, n int) (keep, greedy bool) { return n%spread == 0, false }); err != nil {
		return err
	}
	length := r.size / 2 / stretches
	period := max(length, e.Spec().MaxSteps/stretches)
	return r.episodes(ctx, e, a, key.Split("greedy"), r.size, func(_, n int) (keep, greedy bool) {
		in := n%period >= period-length
		return in, in
	})
}

// episodes plays until there are that many rows. at says for the n-th step of an episode whether it
// is kept and whether the policy decides. An episode too short to reach a step to keep counts with
// its first one. The last episode may be cut off.
func (r *recorder) episodes(ctx context.Context, e envs.Env, a *served.Actor, key rng.Key, rows int, at func(episode, n int) (keep, greedy bool)) error {
	spec := e.Spec()
	ts, action := envs.NewTimeStep(spec), tensor.New(spec.Action.DType(), spec.Action.Shape()...)
	draws := key.Stream()
	for episode := 0; r.rows < rows; episode++ {
		if err := e.Reset(key.Split("episode", episode), ts); err != nil {
			return &observationError{err}
		}
		before := r.rows
		for n := 0; r.rows < rows; n++ {
			keep, greedy := at(episode, n)
			// No action is taken on the last observation.
			if keep && !(r.remembers && ts.Type == envs.Last) || ts.Type == envs.Last && r.rows == before {
				r.keep(ts)
			}
			if ts.Type == envs.Last {
				break
			}
			// The environment may have taken long.
			if err := ctx.Err(); err != nil {
				return err
			}
			var mask []bool
			if ts.Mask != nil {
				mask = ts.Mask.Bools()
			}
			spec.Action.Sample(draws, mask, action)
			if greedy {
				if err := a.Observe(0, ts); err != nil {
					return &observationError{err}
				}
				d, err := a.Decide()
				if err != nil {
					return err
				}
				copy(action.Bytes(), d.Actions.Bytes())
			}
			if err := e.Step(action, ts); err != nil {
				return &observationError{err}
			}
		}
	}
	return nil
}
