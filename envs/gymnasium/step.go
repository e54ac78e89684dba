package gymnasium

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Step implements vector.Env. An action outside the space is an *envs.ActionError, and no
// environment has moved.
func (v *Vector) Step(actions *tensor.Tensor) error {
	switch {
	case v.closed:
		return fmt.Errorf("step %s: %w", v.spec.Name, envs.ErrClosed)
	case !v.running:
		return fmt.Errorf("step %s: %w", v.spec.Name, envs.ErrNoEpisode)
	}
	if actions != v.batch.Actions {
		if err := v.batch.Actions.CopyFrom(actions); err != nil {
			return fmt.Errorf("step %s: actions: %w", v.spec.Name, err)
		}
	}
	for i := range v.rows {
		p := &v.rows[i]
		if err := envs.CheckAction(&v.spec, p.action); err != nil {
			return fmt.Errorf("environment %d: %w", i, err)
		}
		v.workers[p.worker].put(p.index, p.action.Bytes())
	}
	if err := v.step(); err != nil {
		v.running = false
		return fmt.Errorf("step %s: %w", v.spec.Name, err)
	}
	b := v.batch
	b.Ended = b.Ended[:0]
	for i, t := range b.Type {
		if t == envs.Last {
			b.Ended = append(b.Ended, vector.Episode{Env: i, Number: v.began[i] - 2, Return: v.ret[i], Length: v.length[i], Truncated: b.Discount[i] > 0})
			v.ret[i], v.length[i] = 0, 0
		}
	}
	return nil
}

// step advances every environment by the actions that lie in the workers' memory.
func (v *Vector) step() error {
	for w, p := range v.workers {
		v.errs[w] = p.begin(opStep)
	}
	if err := v.finish(1); err != nil {
		return err
	}
	for w := range v.jobs {
		var err error
		if v.errs[w] != nil {
			err = v.lost(w)
		} else {
			err = v.taken(w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// taken reads the answers of worker w.
func (v *Vector) taken(w int) error {
	j, p, b := &v.jobs[w], v.workers[w], v.batch
	for k := range j.n {
		i := j.from + k
		r := p.rewards[k]
		v.ret[i] += r
		v.length[i]++
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return v.at(i, fmt.Errorf("the reward is %g, expected a finite number", r))
		}
		if err := v.info(i); err != nil {
			return v.at(i, err)
		}
		b.Type[i], b.Reward[i], b.Discount[i] = envs.Mid, r, 1
		if end := p.ends[k]; end != goesOn {
			b.Type[i] = envs.Last
			if end == terminated {
				b.Discount[i] = 0
			}
			for f, t := range v.rows[i].final {
				p.final[f].get(k, t.Bytes())
				if err := v.check(f, t); err != nil {
					return v.at(i, fmt.Errorf("final observation %q: %w", v.spec.Observation[f].Name, err))
				}
			}
			if err := v.finalMask(i); err != nil {
				return v.at(i, err)
			}
		}
		if b.Type[i] == envs.Last && !j.autoreset {
			v.began[i]++
			continue
		}
		if err := v.observe(i); err != nil {
			return v.at(i, err)
		}
		if b.Type[i] == envs.Last {
			v.began[i]++
			p.seeds[k] = v.seedOf(i)
		}
	}
	return nil
}

// lost replaces worker w, whose episodes end where they were last seen.
func (v *Vector) lost(w int) error {
	j, b := &v.jobs[w], v.batch
	if err := v.replace(w, v.errs[w], j.autoreset); err != nil {
		return err
	}
	for k := range j.n {
		i := j.from + k
		ret, length := v.ret[i], v.length[i]+1
		for f, t := range v.rows[i].final {
			copy(t.Bytes(), v.rows[i].obs[f].Bytes())
		}
		b.Type[i], b.Reward[i], b.Discount[i] = envs.Last, 0, 1
		if b.Mask != nil {
			b.PutFinalMask(i, v.rows[i].mask.Bytes())
		}
		clear(b.Costs[i])
		clear(b.Info[i])
		if j.autoreset {
			if err := v.first(i); err != nil {
				return err
			}
		}
		// Step reports return and length of the episode that has ended.
		v.ret[i], v.length[i] = ret, length
	}
	if j.autoreset {
		v.seed(w)
	}
	return nil
}

// at says where in its life environment i is.
func (v *Vector) at(i int, err error) error {
	return fmt.Errorf("environment %d, step %d of episode %d: %w", i, v.length[i], max(0, v.began[i]-1), err)
}

// first reads the first observation of an episode of environment i.
func (v *Vector) first(i int) error {
	v.began[i]++
	v.ret[i], v.length[i] = 0, 0
	if err := v.observe(i); err != nil {
		return v.at(i, err)
	}
	return nil
}

// observe reads observation and mask of environment i.
func (v *Vector) observe(i int) error {
	at := &v.rows[i]
	p := v.workers[at.worker]
	for f, t := range at.obs {
		p.obs[f].get(at.index, t.Bytes())
		if err := v.check(f, t); err != nil {
			return fmt.Errorf("observation %q: %w", v.spec.Observation[f].Name, err)
		}
	}
	if at.mask == nil {
		return nil
	}
	copy(at.mask.Bytes(), p.mask[at.index*at.mask.Len():])
	return envs.CheckMask(v.spec.Action, at.mask.Bools())
}

// finalMask reads the mask after the final observation of environment i.
func (v *Vector) finalMask(i int) error {
	b, at := v.batch, &v.rows[i]
	if at.mask == nil {
		return nil
	}
	n := at.mask.Len()
	b.PutFinalMask(i, v.workers[at.worker].finalMask[at.index*n:(at.index+1)*n])
	if err := envs.CheckMask(v.spec.Action, b.FinalMask.Bools()[i*n:(i+1)*n]); err != nil {
		return fmt.Errorf("the episode was truncated, where the value of what could follow counts: %w", err)
	}
	return nil
}

// info reads diagnostics and costs of environment i.
func (v *Vector) info(i int) error {
	at, diagnostics, costs := &v.rows[i], len(v.spec.Info), v.batch.Costs[i]
	from := v.workers[at.worker].info[at.index*(diagnostics+len(costs)):]
	copy(v.batch.Info[i], from)
	copy(costs, from[diagnostics:])
	for k, x := range costs {
		if x-x != 0 {
			return fmt.Errorf("cost %q is %g, expected a finite number", v.spec.Costs[k], x)
		}
	}
	for k, x := range v.batch.Info[i] {
		if x-x != 0 {
			return fmt.Errorf("diagnostic %q is %g, expected a finite number", v.spec.Info[k], x)
		}
	}
	return nil
}

// check looks for what no policy can work with: numbers that are not finite, and choices that there
// are not. Bounds of boxes, which many environments overstep, are looked at only where
// Options.Check says so.
func (v *Vector) check(f int, t *tensor.Tensor) error {
	space := v.spec.Observation[f].Space
	if _, box := space.(envs.Box); !box || v.opts.Check {
		return space.Check(t)
	}
	if t.DType() != tensor.Float32 {
		return nil
	}
	for i, x := range t.Float32s() {
		if x-x != 0 {
			return fmt.Errorf("element %d is %g, expected a finite number", i, x)
		}
	}
	return nil
}
