package vector

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Options change how environments are stepped and when they are cut off, never what they answer.
type Options struct {
	// Workers is the number of goroutines that step environments, the caller's included; each keeps
	// a contiguous range of them. 0 starts with one, and uses all processors when the first steps
	// turn out to take long enough for that to pay.
	Workers int
	// Windows copies windows into the batch at every step.
	Windows bool
	// Check compares every step with the spec. Rewards, discounts and observations that are not
	// finite, discrete observations outside their choices, and masks without a valid action, are
	// errors in any case.
	Check bool
	// Limit truncates episodes after so many steps where the environments have no limit of their
	// own; 0 never does.
	Limit int
	// Truncate truncates episodes after so many steps whatever limit the environments have, as
	// wrap.TimeLimit does; 0 never does.
	Truncate int
	// Log, unless nil, is told of what the vector got over by itself, such as the end of a process
	// that environments lived in.
	Log *slog.Logger
}

// Logger is implemented by environments that get over something by themselves; New gives them
// Options.Log.
type Logger interface{ SetLog(log *slog.Logger) }

// Local steps environments of this process.
type Local struct {
	envs    []envs.Env
	spec    envs.Spec
	opts    Options
	batch   *Batch
	arena   *tensor.Arena
	key     rng.Key
	running bool
	closed  bool

	rows  []envRow
	trial trial
	// workers is nil as long as the caller steps alone.
	workers *workers
	// began is the number of episodes each environment has begun since Reset.
	began  []int
	ret    []float64
	length []int
}

// envRow is where one environment writes.
type envRow struct {
	step, first envs.TimeStep
	action      *tensor.Tensor
	health      health
	// obs and final are the bytes of the observation's rows, by field; nil for windows that are not
	// copied.
	obs, final [][]byte
}

var (
	_ Env   = (*Local)(nil)
	_ Saver = (*Local)(nil)
)

// New returns a vector of environments with equal specs. It owns them from then on; after an error
// they remain the caller's.
func New(list []envs.Env, o Options) (*Local, error) {
	if len(list) == 0 {
		return nil, errors.New("vector of environments: none is given")
	}
	if o.Workers < 0 || o.Limit < 0 || o.Truncate < 0 {
		return nil, fmt.Errorf("vector of environments: %d workers and limits of %d and %d steps", o.Workers, o.Limit, o.Truncate)
	}
	limit := o.Truncate
	if limit == 0 && list[0].Spec().MaxSteps == 0 {
		limit = o.Limit
	}
	if limit > 0 {
		var err error
		if list, err = limited(list, limit); err != nil {
			return nil, fmt.Errorf("vector of environments: %w", err)
		}
	}
	spec := list[0].Spec()
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("vector of environments: %w", err)
	}
	for i, e := range list[1:] {
		if s := e.Spec(); !spec.Equal(&s) {
			return nil, fmt.Errorf("vector of environments: environment %d (%s) is described differently from environment 0 (%s)", i+1, s.Name, spec.Name)
		}
	}
	b, arena, err := newBatch(spec, len(list), o.Windows)
	if err != nil {
		return nil, fmt.Errorf("vector of environments: %w", err)
	}
	for _, e := range list {
		if l, ok := wrap.Find[Logger](e); ok && o.Log != nil {
			l.SetLog(o.Log)
		}
	}
	v := &Local{
		envs: list, spec: spec, opts: o, batch: b, arena: arena, rows: make([]envRow, len(list)),
		began: make([]int, len(list)), ret: make([]float64, len(list)), length: make([]int, len(list)),
	}
	for i := range v.rows {
		v.rows[i] = v.row(i)
	}
	switch {
	case o.Workers > 1:
		v.workers = newWorkers(v.advance, len(list), o.Workers)
	case o.Workers == 0:
		v.trial = newTrial()
	}
	return v, nil
}

func (v *Local) row(i int) envRow {
	b, n := v.batch, len(v.spec.Observation)
	p := envRow{action: row(b.Actions, i), obs: make([][]byte, n), final: make([][]byte, n)}
	p.step = envs.TimeStep{Obs: make([]*tensor.Tensor, n), Rows: make([]int64, n), Costs: b.Costs[i], Info: b.Info[i]}
	if b.Mask != nil {
		p.step.Mask = row(b.Mask, i)
	}
	for f := range n {
		if b.Obs[f] == nil {
			continue
		}
		view := row(b.Obs[f], i)
		p.obs[f], p.final[f] = view.Bytes(), row(b.Final[f], i).Bytes()
		if v.spec.Observation[f].Window == nil {
			p.step.Obs[f] = view
		}
	}
	p.health = newHealth(&p.step)
	// The first step of a following episode writes over the observation and the mask, but not over
	// costs and diagnostics of the step that ended the last one.
	p.first = p.step
	p.first.Costs, p.first.Info = make([]float64, len(v.spec.Costs)), make([]float64, len(v.spec.Info))
	return p
}

// Spec implements Env.
func (v *Local) Spec() envs.Spec { return v.spec }

// Len implements Env.
func (v *Local) Len() int { return len(v.envs) }

// Batch implements Env.
func (v *Local) Batch() *Batch { return v.batch }

// Reset implements Env.
func (v *Local) Reset(key rng.Key) error {
	if v.closed {
		return fmt.Errorf("reset %s: %w", v.spec.Name, envs.ErrClosed)
	}
	v.key, v.running = key, false
	clear(v.began)
	v.batch.Ended = v.batch.Ended[:0]
	for i := range v.envs {
		ts := &v.rows[i].step
		if err := v.begin(i, ts); err != nil {
			return err
		}
		v.batch.Type[i], v.batch.Reward[i], v.batch.Discount[i] = ts.Type, 0, 1
	}
	v.running = true
	return nil
}

// begin starts the next episode of environment i, whose first step is written to ts.
func (v *Local) begin(i int, ts *envs.TimeStep) error {
	if err := v.envs[i].Reset(v.key.Split("episode", i, v.began[i]), ts); err != nil {
		return fmt.Errorf("reset environment %d: %w", i, err)
	}
	v.began[i]++
	v.ret[i], v.length[i] = 0, 0
	if err := v.rows[i].health.check(&v.spec, ts); err != nil {
		return fmt.Errorf("environment %d (%s), first step of episode %d: %w", i, v.spec.Name, v.began[i]-1, err)
	}
	if v.opts.Check {
		if err := envs.CheckStep(&v.spec, envs.Last, ts); err != nil {
			return fmt.Errorf("reset environment %d: %w", i, err)
		}
	}
	v.publish(i, ts)
	return nil
}

// publish makes the windows of ts part of the batch; everything else is there already.
func (v *Local) publish(i int, ts *envs.TimeStep) {
	for f, rows := range v.batch.Rows {
		if rows == nil {
			continue
		}
		rows[i] = ts.Rows[f]
		if dst := v.rows[i].obs[f]; dst != nil {
			copy(dst, ts.Obs[f].Bytes())
		}
	}
}

// Step implements Env.
func (v *Local) Step(actions *tensor.Tensor) error {
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
	if err := v.all(); err != nil {
		v.running = false
		return err
	}
	b := v.batch
	b.Ended = b.Ended[:0]
	for i, t := range b.Type {
		if t == envs.Last {
			b.Ended = append(b.Ended, Episode{Env: i, Number: v.began[i] - 2, Return: v.ret[i], Length: v.length[i], Truncated: b.Discount[i] > 0})
			v.ret[i], v.length[i] = 0, 0
		}
	}
	return nil
}

// all advances every environment.
func (v *Local) all() error {
	if v.workers != nil {
		return v.workers.run()
	}
	if !v.trial.running() {
		return v.advance(0, len(v.envs))
	}
	pays, err := v.trial.time(func() error { return v.advance(0, len(v.envs)) })
	if pays {
		v.workers = newWorkers(v.advance, len(v.envs), v.trial.processors)
	}
	return err
}

// advance steps the environments [from, to), up to the first that fails.
func (v *Local) advance(from, to int) error {
	for i := from; i < to; i++ {
		if err := v.one(i); err != nil {
			return err
		}
	}
	return nil
}

func (v *Local) one(i int) error {
	p, b := &v.rows[i], v.batch
	ts := &p.step
	prev := ts.Type
	if err := v.envs[i].Step(p.action, ts); err != nil {
		return fmt.Errorf("environment %d: %w", i, err)
	}
	err := checkReward(&v.spec, ts)
	if err == nil {
		err = p.health.check(&v.spec, ts)
	}
	if err != nil {
		return fmt.Errorf("environment %d (%s), step %d of episode %d: %w", i, v.spec.Name, v.length[i]+1, v.began[i]-1, err)
	}
	if v.opts.Check {
		if err := envs.CheckStep(&v.spec, prev, ts); err != nil {
			return fmt.Errorf("environment %d: %w", i, err)
		}
	}
	b.Type[i], b.Reward[i], b.Discount[i] = ts.Type, ts.Reward, ts.Discount
	v.ret[i] += ts.Reward
	v.length[i]++
	if ts.Type != envs.Last {
		v.publish(i, ts)
		return nil
	}
	return v.follow(i)
}

// follow keeps the final observation and mask of environment i and begins its next episode.
func (v *Local) follow(i int) error {
	p, b := &v.rows[i], v.batch
	for f := range v.spec.Observation {
		if b.FinalRows[f] != nil {
			b.FinalRows[f][i] = p.step.Rows[f]
		}
		if p.final[f] != nil {
			copy(p.final[f], p.step.Obs[f].Bytes())
		}
	}
	if b.FinalMask != nil {
		b.PutFinalMask(i, p.step.Mask.Bytes())
	}
	// Step reports return and length of the episode that has ended, and begin would clear them.
	ret, length := v.ret[i], v.length[i]
	if err := v.begin(i, &p.first); err != nil {
		return err
	}
	v.ret[i], v.length[i] = ret, length
	p.step.Type = envs.First
	return nil
}

// Close implements Env.
func (v *Local) Close() error {
	if !v.closed {
		v.closed, v.running = true, false
		if v.workers != nil {
			v.workers.pool.Close()
		}
		var errs []error
		for i, e := range v.envs {
			if err := e.Close(); err != nil {
				errs = append(errs, fmt.Errorf("close environment %d: %w", i, err))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return errors.Join(err, v.arena.Close())
		}
	}
	return v.arena.Close()
}
