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
	// Train says that somebody is trained in the environments ([envs.Trainee]).
	Train bool
	// Log, unless nil, receives faults that the vector got over by itself, such as the end of a
	// process that environments lived in.
	Log *slog.Logger
}

// limit returns after how many steps episodes are cut off, 0 for never, where the environments have
// a limit of their own or 0.
func (o *Options) limit(own int) (int, error) {
	switch {
	case o.Workers < 0 || o.Limit < 0 || o.Truncate < 0:
		return 0, fmt.Errorf("%d workers and limits of %d and %d steps", o.Workers, o.Limit, o.Truncate)
	case o.Truncate == 0 && own == 0:
		return o.Limit, nil
	}
	return o.Truncate, nil
}

// Logger is implemented by environments that get over something by themselves; New gives them
// Options.Log.
type Logger interface{ SetLog(log *slog.Logger) }

// Local steps environments of this process.
type Local struct {
	places
	envs    []envs.Env
	opts    Options
	key     rng.Key
	running bool
	closed  bool

	crew crew
	// began is the number of episodes each environment has begun since Reset.
	began  []int
	ret    []float64
	length []int
	// acted says of the rows of worlds with several agents which of them were present before the
	// step, as Batch.Present says of now; nil where every row is an environment of its own.
	acted []bool
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
	limit, err := o.limit(list[0].Spec().MaxSteps)
	if err != nil {
		return nil, fmt.Errorf("vector of environments: %w", err)
	}
	if limit > 0 {
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
	p, err := newPlaces(spec, len(list), o.Windows)
	if err != nil {
		return nil, fmt.Errorf("vector of environments: %w", err)
	}
	for _, e := range list {
		if l, ok := wrap.Find[Logger](e); ok && o.Log != nil {
			l.SetLog(o.Log)
		}
	}
	v := &Local{
		places: p, envs: list, opts: o,
		began: make([]int, len(list)), ret: make([]float64, len(list)), length: make([]int, len(list)),
	}
	v.crew = newCrew(v.advance, len(list), o.Workers)
	return v, nil
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
		if v.absent(i) {
			v.away(i)
			continue
		}
		ts := &v.rows[i].step
		if err := v.begin(i, ts); err != nil {
			return err
		}
		v.batch.Type[i], v.batch.Reward[i], v.batch.Discount[i] = ts.Type, 0, 1
	}
	copy(v.acted, v.batch.Present)
	v.running = true
	return nil
}

// absent reports whether row i is that of an agent that is not present.
func (v *Local) absent(i int) bool { return v.acted != nil && !v.batch.Present[i] }

// enter is the step of a row that was absent.
func (v *Local) enter(i int) error {
	if v.absent(i) {
		v.away(i)
		return nil
	}
	v.idle(i)
	return v.begin(i, &v.rows[i].step)
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
	if err := v.crew.all(); err != nil {
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
	copy(v.acted, b.Present)
	return nil
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
	if v.acted != nil && !v.acted[i] {
		return v.enter(i)
	}
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
	p := &v.rows[i]
	v.keepFinal(i)
	p.step.Type = envs.First
	if v.absent(i) {
		v.blank(i)
		return nil
	}
	// Step reports return and length of the episode that has ended, and begin would clear them.
	ret, length := v.ret[i], v.length[i]
	if err := v.begin(i, &p.first); err != nil {
		return err
	}
	v.ret[i], v.length[i] = ret, length
	return nil
}

// Close implements Env.
func (v *Local) Close() error {
	if !v.closed {
		v.closed, v.running = true, false
		v.crew.close()
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
