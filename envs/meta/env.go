package meta

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ExpertsField is the name of what the observation has beside that of the environment inside, see
// the package comment.
const ExpertsField = "experts"

// The columns of ExpertsField; those of risk are there where it has limits.
const (
	columnCharge = iota
	columnUsage
	columnDrawdown
	columnCVaR
	columns
)

// Env is a decision maker's view of an environment in which experts act.
type Env struct {
	c       Config
	inside  envs.Env
	experts []vector.Policy
	spec    envs.Spec
	ts      *envs.TimeStep // of the environment inside
	frame   *vector.Frame  // shows ts to the experts
	field   int            // of ExpertsField
	divergence
	// usage is that of the episode, which is observed, and training that of all episodes, which
	// bonuses count by; nil where nobody is trained.
	usage    usage
	training *usage
	books    *books // nil without limits on risk

	decisions []*vector.Decision
	// shares [experts] are those of the decision that holds, charge [experts] of the last one, and
	// allowed [experts] what may be chosen.
	shares, charge []float64
	allowed        []bool
	action         *tensor.Tensor // of the environment inside
	held           *held          // nil unless decisions are which assets may be held
	always         bool           // an expert remembers: all of them see every step
	chosen         int
	kl             float64
	steps          int

	running, closed bool
	watch           func(Inner) error
}

// Inner is what is decided for one env step of the environment inside. The memory is the
// environment's.
type Inner struct {
	// TimeStep is what the experts see, and Action what is done.
	TimeStep *envs.TimeStep
	Action   *tensor.Tensor
	// Begins says that a segment begins, with the choice of Shares [N] among Allowed [N], nil
	// without limits on risk.
	Begins  bool
	Shares  []float64
	Allowed []bool
	// Factor is what limits on positions are multiplied by for the experts in charge.
	Factor float64
	// Held [N] are the assets that may be held, nil where that is not chosen, and Mask the action
	// mask as it was before the others were left out.
	Held []bool
	Mask *tensor.Tensor
}

// Watch calls f before each env step of the environment inside from now on. An error of it ends the
// step.
func (e *Env) Watch(f func(Inner) error) { e.watch = f }

// Config is the configuration with what its zeros stand for.
func (e *Env) Config() Config { return e.c }

var (
	_ envs.Env     = (*Env)(nil)
	_ envs.Saver   = (*Env)(nil)
	_ envs.Trainee = (*Env)(nil)
)

// New returns a decision maker's environment around another one. It owns that and the experts from
// then on; after an error they remain the caller's. Errors name the side that does not fit.
func New(inside envs.Env, experts []vector.Policy, c Config) (_ *Env, err error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("meta: %w", err)
	}
	n := len(experts)
	if n < c.least() {
		return nil, fmt.Errorf("meta: %d experts, expected at least %d", n, c.least())
	}
	if n == 1 {
		var p configs.Problems
		c.alone(&p)
		if err := p.Err(); err != nil {
			return nil, fmt.Errorf("meta: %w", err)
		}
	}
	in := inside.Spec()
	e := &Env{
		c: c.filled(), inside: inside, experts: experts, ts: envs.NewTimeStep(in), decisions: make([]*vector.Decision, n),
		shares: make([]float64, n), charge: make([]float64, n), allowed: make([]bool, n), action: tensor.New(in.Action.DType(), in.Action.Shape()...),
	}
	for i, p := range experts {
		e.allowed[i] = true
		e.always = e.always || p.Remembers()
	}
	if e.frame, err = vector.NewFrame(in, 1, false); err != nil {
		return nil, fmt.Errorf("meta: environment %q: %w", in.Name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.frame.Close())
		}
	}()
	e.usage = newUsage(n, e.c.Diversity.UsageWindow)
	if d := &e.c.Diversity; d.KLCoefMax > 0 {
		made, err := newDivergence(in.Action, n, d.Noise)
		if err != nil {
			return nil, fmt.Errorf("meta: diversity.kl_coef: environment %q: %w", in.Name, err)
		}
		e.divergence = *made
	}
	if e.c.Risk.On() {
		if e.books, err = newBooks(inside, n, e.c.Risk); err != nil {
			return nil, fmt.Errorf("meta: risk: environment %q: %w", in.Name, err)
		}
	}
	if err := e.describe(in); err != nil {
		return nil, err
	}
	return e, nil
}

// describe makes the spec.
func (e *Env) describe(in envs.Spec) error {
	n, s := len(e.experts), in
	s.Name, s.Joint = "meta-"+in.Name, true
	wide := columnDrawdown
	if e.books != nil {
		wide = columns
	}
	e.field = len(in.Observation)
	s.Observation = append(in.Observation[:e.field:e.field], envs.Field{Name: ExpertsField, Space: envs.NewBox(0, 1, n*wide)})
	switch e.c.Choose {
	case Expert:
		s.Action, s.Masked = envs.Discrete{N: n}, e.books != nil
	case Assets:
		var err error
		if e.held, err = newHeld(e.inside); err != nil {
			return fmt.Errorf("meta: choose: %w", err)
		}
		s.Action, s.Joint, s.Masked = e.held.space(n), false, true
		s.Info = append(s.Info[:len(s.Info):len(s.Info)], "held")
	default:
		if _, ok := in.Action.(envs.Box); !ok || in.Action.DType() != tensor.Float32 {
			return fmt.Errorf("meta: choose: a mixture of actions %v: expected a box of float32", in.Action)
		}
		// Scores, of which the softmax are the shares: one expert of five can have 0.9998.
		s.Action, s.Masked = envs.NewBox(-5, 5, n), false
	}
	k := float64(e.c.Segment)
	bonus := e.c.Diversity.KLCoefMax*e.c.Diversity.KLClip + e.c.Diversity.UsageCoef*math.Log(float64(e.c.Diversity.UsageWindow+n))
	s.Reward = envs.Range{Low: min(in.Reward.Low, k*in.Reward.Low), High: max(in.Reward.High, k*in.Reward.High) + bonus}
	s.Info = append(s.Info[:len(s.Info):len(s.Info)], "chosen", "kl", "env_steps")
	s.MaxSteps = (in.MaxSteps + e.c.Segment - 1) / e.c.Segment
	e.spec = s
	return s.Validate()
}

// Train implements envs.Trainee: bonuses count the usage of the experts in the last decisions of all
// episodes from now on, and not of each by itself.
func (e *Env) Train() {
	u := newUsage(len(e.experts), e.c.Diversity.UsageWindow)
	e.training = &u
}

// Unwrap returns the environment inside.
func (e *Env) Unwrap() envs.Env { return e.inside }

// Spec implements envs.Env.
func (e *Env) Spec() envs.Spec { return e.spec }

// Experts is the number of experts.
func (e *Env) Experts() int { return len(e.experts) }

// Reset implements envs.Env.
func (e *Env) Reset(key rng.Key, ts *envs.TimeStep) error {
	if e.closed {
		return fmt.Errorf("reset %s: %w", e.spec.Name, envs.ErrClosed)
	}
	e.running = false
	if err := e.inside.Reset(key, e.ts); err != nil {
		return err
	}
	e.usage.reset()
	clear(e.charge)
	if e.held != nil {
		clear(e.held.may)
	}
	if e.books != nil {
		e.books.reset()
	}
	e.chosen, e.kl, e.steps = -1, 0, 0
	e.observe(ts)
	ts.Restart()
	e.running = true
	return nil
}

// Step implements envs.Env.
func (e *Env) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	switch {
	case e.closed:
		return fmt.Errorf("step %s: %w", e.spec.Name, envs.ErrClosed)
	case !e.running:
		return fmt.Errorf("step %s: %w", e.spec.Name, envs.ErrNoEpisode)
	}
	if err := envs.CheckAction(&e.spec, action); err != nil {
		return err
	}
	e.choose(action)
	if e.held != nil {
		e.held.restrict(e.ts)
	}
	e.running = false
	reward, discount := 0.0, 1.0
	clear(ts.Costs)
	for e.steps = 0; e.steps < e.c.Segment; {
		if err := e.decide(e.steps == 0); err != nil {
			return fmt.Errorf("step %s: %w", e.spec.Name, err)
		}
		if e.steps == 0 {
			reward = e.bonus()
		}
		if e.books != nil {
			e.books.cut(e.shares)
		}
		action := e.act()
		if e.watch != nil {
			if err := e.tell(action); err != nil {
				return fmt.Errorf("step %s: %w", e.spec.Name, err)
			}
		}
		if err := e.inside.Step(action, e.ts); err != nil {
			return err
		}
		e.steps++
		reward += e.ts.Reward
		discount *= e.ts.Discount
		for i, c := range e.ts.Costs {
			ts.Costs[i] += c
		}
		if e.books != nil {
			e.books.observe(e.shares)
		}
		if e.ts.Type == envs.Last {
			break
		}
	}
	if e.held != nil {
		e.held.lift(e.ts)
	}
	e.usage.push(e.shares)
	if e.training != nil {
		e.training.push(e.shares)
	}
	copy(e.charge, e.shares)
	e.observe(ts)
	ts.Type, ts.Reward, ts.Discount = e.ts.Type, reward, discount
	e.running = ts.Type != envs.Last
	return nil
}

// choose makes the shares of an action.
func (e *Env) choose(action *tensor.Tensor) {
	clear(e.shares)
	if e.c.Choose != Mixture {
		heads := action.Int64s()
		if e.held != nil {
			heads = e.held.choose(heads)
		}
		if e.chosen = 0; len(heads) > 0 {
			e.chosen = int(heads[0])
		}
		if e.books != nil && !e.allowed[e.chosen] {
			e.chosen = e.nearest(e.chosen)
		}
		e.shares[e.chosen] = 1
		return
	}
	most, sum := math.Inf(-1), 0.0
	for i, x := range action.Float32s() {
		if e.books == nil || e.allowed[i] {
			if x := float64(x); x > most {
				most, e.chosen = x, i
			}
		}
	}
	for i, x := range action.Float32s() {
		if e.books == nil || e.allowed[i] {
			e.shares[i] = math.Exp(float64(x) - most)
			sum += e.shares[i]
		}
	}
	for i := range e.shares {
		e.shares[i] /= sum
	}
}

// nearest is what an action that the mask excludes is taken for: the next expert that is allowed.
func (e *Env) nearest(i int) int {
	for !e.allowed[i] {
		i = (i + 1) % len(e.allowed)
	}
	return i
}

// decide asks the experts whose decisions are needed: all of them at the beginning of a segment
// whose divergence counts, and those that remember at every step.
func (e *Env) decide(begins bool) (err error) {
	all := e.always || begins && e.mean != nil
	if err := e.frame.Put(0, e.ts); err != nil {
		return err
	}
	for i, p := range e.experts {
		if !all && e.shares[i] == 0 {
			continue
		}
		if e.decisions[i], err = p.Act(context.Background(), rng.Key{}, e.frame.Batch()); err != nil {
			return fmt.Errorf("expert %d: %w", i, err)
		}
		if begins && e.mean != nil {
			if err := e.take(i, e.decisions[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// act is the action of the environment inside.
func (e *Env) act() *tensor.Tensor {
	if e.c.Choose != Mixture {
		copy(e.action.Bytes(), e.decisions[e.chosen].Actions.Bytes())
		return e.action
	}
	to := e.action.Float32s()
	clear(to)
	for i, s := range e.shares {
		if s > 0 {
			for k, a := range e.decisions[i].Actions.Float32s() {
				to[k] += float32(s) * a
			}
		}
	}
	// Convex, but for rounding.
	box := e.inside.Spec().Action.(envs.Box)
	for k := range to {
		r := box.Bounds(k)
		to[k] = min(max(to[k], float32(r.Low)), float32(r.High))
	}
	return e.action
}

// tell says what is about to be done.
func (e *Env) tell(action *tensor.Tensor) error {
	i := Inner{TimeStep: e.ts, Action: action, Begins: e.steps == 0, Shares: e.shares, Factor: 1, Mask: e.ts.Mask}
	if h := e.held; h != nil {
		i.Held = h.may
		if i.Begins && h.mask != nil {
			i.Mask = h.mask
		}
	}
	if e.books != nil {
		i.Allowed, i.Factor = e.allowed, e.books.factor(e.shares)
	}
	return e.watch(i)
}

// bonus is what the decision earns for being different.
func (e *Env) bonus() float64 {
	d, u, sum := &e.c.Diversity, &e.usage, 0.0
	if e.training != nil {
		u = e.training
	}
	if e.mean != nil {
		e.kl = min(e.of(e.shares), d.KLClip)
		sum += (d.KLCoef + (d.KLCoefMax-d.KLCoef)*u.concentration()) * e.kl
	}
	if d.UsageCoef > 0 {
		sum += d.UsageCoef * u.surprise(e.shares)
	}
	return sum
}

// observe writes observation, mask and diagnostics.
func (e *Env) observe(ts *envs.TimeStep) {
	for i, from := range e.ts.Obs {
		if w := e.spec.Observation[i].Window; w != nil {
			ts.SetWindow(i, w, int(e.ts.Rows[i]))
		} else {
			copy(ts.Obs[i].Bytes(), from.Bytes())
		}
	}
	n := len(e.experts)
	table := ts.Obs[e.field].Float32s()
	wide := len(table) / n
	for i := range n {
		row := table[i*wide:]
		row[columnCharge], row[columnUsage] = float32(e.charge[i]), float32(e.usage.of(i))
		if e.books != nil {
			row[columnDrawdown], row[columnCVaR] = e.books.losses(i)
		}
	}
	if e.books != nil {
		e.books.allow(e.allowed)
	}
	k := copy(ts.Info, e.ts.Info)
	if ts.Mask != nil {
		mask := ts.Mask.Bools()
		if e.held != nil {
			ts.Info[k] = e.held.number()
			k++
			mask = e.held.observe(e.ts, mask)
		}
		copy(mask, e.allowed)
	}
	ts.Info[k], ts.Info[k+1], ts.Info[k+2] = float64(e.chosen), e.kl, float64(e.steps)
}

// Close implements envs.Env.
func (e *Env) Close() error {
	e.running = false
	if e.closed {
		return nil
	}
	e.closed = true
	errs := []error{e.inside.Close()}
	for _, p := range e.experts {
		errs = append(errs, p.Close())
	}
	return errors.Join(append(errs, e.frame.Close())...)
}
