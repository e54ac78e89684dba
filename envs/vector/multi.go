package vector

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Multi steps worlds of several agents in this process. Row w·k + i is agent i of world w, of k
// agents each, which may be absent (Batch.Present). A world whose episode ends, because no agent is
// left, begins its next one within the same step; world w draws its e-th from
// key.Split("episode", w, e).
type Multi struct {
	places
	worlds []world
	// agents is the number of them in one world.
	agents  int
	opts    Options
	limit   int
	key     rng.Key
	running bool
	closed  bool

	crew crew
	// ret and length are of the rows' episodes.
	ret    []float64
	length []int
}

// world is one of the worlds and what it is called with.
type world struct {
	envs.Multi
	actions      []*tensor.Tensor
	steps, first []*envs.TimeStep
	// has says which agents have a step.
	has []bool
	// began is the number of episodes since Reset, length the steps of the present one, and over
	// says that the newest step has ended one.
	began, length int
	over          bool
}

var (
	_ Env   = (*Multi)(nil)
	_ Saver = (*Multi)(nil)
)

// NewMulti returns a vector of m·k rows, of m worlds with equal specs and agents. It owns them from
// then on; after an error they remain the caller's. Options.Limit and Options.Truncate are of the
// worlds' episodes, Options.Log is not used.
func NewMulti(list []envs.Multi, o Options) (*Multi, error) {
	v, err := newMulti(list, o)
	if err != nil {
		return nil, fmt.Errorf("vector of worlds: %w", err)
	}
	return v, nil
}

func newMulti(list []envs.Multi, o Options) (*Multi, error) {
	if len(list) == 0 {
		return nil, errors.New("none is given")
	}
	spec, names := list[0].Spec(), list[0].Agents()
	limit, err := o.limit(spec.MaxSteps)
	if err == nil {
		err = errors.Join(envs.CheckAgents(names), spec.Validate())
	}
	if err != nil {
		return nil, err
	}
	for i, w := range list[1:] {
		if s := w.Spec(); !spec.Equal(&s) || !slices.Equal(w.Agents(), names) {
			return nil, fmt.Errorf("world %d (%s, agents %q) is described differently from world 0 (%s, agents %q)", i+1, s.Name, w.Agents(), spec.Name, names)
		}
	}
	if limit > 0 && (spec.MaxSteps == 0 || limit < spec.MaxSteps) {
		spec.MaxSteps = limit
	}
	k := len(names)
	n := len(list) * k
	p, err := newPlaces(spec, n, o.Windows)
	if err != nil {
		return nil, err
	}
	p.batch.Present, p.batch.Agents = make([]bool, n), slices.Repeat(names, len(list))
	v := &Multi{places: p, worlds: make([]world, len(list)), agents: k, opts: o, limit: limit, ret: make([]float64, n), length: make([]int, n)}
	for i := range v.worlds {
		w := world{Multi: list[i], has: make([]bool, k)}
		for r := i * k; r < (i+1)*k; r++ {
			w.actions, w.steps, w.first = append(w.actions, v.rows[r].action), append(w.steps, &v.rows[r].step), append(w.first, &v.rows[r].first)
		}
		v.worlds[i] = w
	}
	v.crew = newCrew(v.advance, len(list), o.Workers)
	return v, nil
}

// Spec implements Env.
func (v *Multi) Spec() envs.Spec { return v.spec }

// Len implements Env: the number of rows.
func (v *Multi) Len() int { return len(v.rows) }

// Batch implements Env.
func (v *Multi) Batch() *Batch { return v.batch }

// Reset implements Env.
func (v *Multi) Reset(key rng.Key) error {
	if v.closed {
		return fmt.Errorf("reset %s: %w", v.spec.Name, envs.ErrClosed)
	}
	v.key, v.running = key, false
	v.batch.Ended = v.batch.Ended[:0]
	for i := range v.worlds {
		w := &v.worlds[i]
		w.began = 0
		if err := v.begin(i, w.steps); err != nil {
			return err
		}
		for r := i * v.agents; r < (i+1)*v.agents; r++ {
			v.idle(r)
			v.ret[r], v.length[r] = 0, 0
			if !v.batch.Present[r] {
				v.away(r)
			}
		}
	}
	v.running = true
	return nil
}

// begin starts the next episode of world i, whose first steps are written to steps, and makes those
// the present ones.
func (v *Multi) begin(i int, steps []*envs.TimeStep) error {
	w, b := &v.worlds[i], v.batch
	if err := w.Reset(v.key.Split("episode", i, w.began), steps, w.has); err != nil {
		return fmt.Errorf("reset world %d: %w", i, err)
	}
	w.began++
	w.length = 0
	if !slices.Contains(w.has, true) {
		return fmt.Errorf("reset world %d (%s): no agent is present", i, v.spec.Name)
	}
	for k, has := range w.has {
		r, ts := i*v.agents+k, steps[k]
		if b.Present[r] = has; !has {
			v.blank(r)
			continue
		}
		if err := v.enters(r, ts); err != nil {
			return fmt.Errorf("world %d (%s), agent %q, first step of episode %d: %w", i, v.spec.Name, b.Agents[r], w.began-1, err)
		}
		v.publish(r, ts)
	}
	return nil
}

// enters checks the first step of row r's agent.
func (v *Multi) enters(r int, ts *envs.TimeStep) error {
	if ts.Type != envs.First {
		return fmt.Errorf("a step of type %v of an agent that was not present, expected %v", ts.Type, envs.First)
	}
	if err := v.rows[r].health.check(&v.spec, ts); err != nil || !v.opts.Check {
		return err
	}
	return envs.CheckStep(&v.spec, envs.Last, ts)
}

// Step implements Env.
func (v *Multi) Step(actions *tensor.Tensor) error {
	switch {
	case v.closed:
		return fmt.Errorf("step %s: %w", v.spec.Name, envs.ErrClosed)
	case !v.running:
		return fmt.Errorf("step %s: %w", v.spec.Name, envs.ErrNoEpisode)
	}
	b := v.batch
	if actions != b.Actions {
		if err := b.Actions.CopyFrom(actions); err != nil {
			return fmt.Errorf("step %s: actions: %w", v.spec.Name, err)
		}
	}
	if err := v.crew.all(); err != nil {
		v.running = false
		return err
	}
	b.Ended = b.Ended[:0]
	for r, t := range b.Type {
		if t != envs.Last {
			continue
		}
		w := &v.worlds[r/v.agents]
		e := Episode{Env: r, Number: w.began - 1, Return: v.ret[r], Length: v.length[r], Truncated: b.Discount[r] > 0, WorldGoesOn: !w.over}
		if w.over {
			e.Number--
		}
		b.Ended = append(b.Ended, e)
		v.ret[r], v.length[r] = 0, 0
	}
	return nil
}

// advance steps the worlds [from, to), up to the first that fails.
func (v *Multi) advance(from, to int) error {
	for i := from; i < to; i++ {
		if err := v.one(i); err != nil {
			return err
		}
	}
	return nil
}

func (v *Multi) one(i int) error {
	w, b := &v.worlds[i], v.batch
	if err := w.Step(w.actions, w.steps, w.has); err != nil {
		return fmt.Errorf("world %d: %w", i, err)
	}
	w.length++
	cut := v.limit > 0 && w.length >= v.limit
	w.over = true
	for k := range w.has {
		r := i*v.agents + k
		if err := v.took(r, w.has[k], cut); err != nil {
			return fmt.Errorf("world %d (%s), agent %q, step %d of episode %d: %w", i, v.spec.Name, b.Agents[r], w.length, w.began-1, err)
		}
		w.over = w.over && !b.Present[r]
	}
	if !w.over {
		return nil
	}
	return v.begin(i, w.first)
}

// took makes the step of row r's agent, if it has one, part of the batch. cut says that the world's
// episode is cut off.
func (v *Multi) took(r int, has, cut bool) error {
	b, ts := v.batch, &v.rows[r].step
	acted := b.Present[r]
	b.Present[r] = false
	switch {
	case acted && !has:
		return fmt.Errorf("it was present and has no step, expected one of type %v where it leaves", envs.Last)
	case !acted && has && !cut:
		if err := v.enters(r, ts); err != nil {
			return err
		}
		v.idle(r)
		v.publish(r, ts)
		b.Present[r] = true
		return nil
	case !acted:
		// Who would begin where the world is cut off has not begun.
		v.away(r)
		return nil
	}
	prev := envs.Mid
	if v.length[r] == 0 {
		prev = envs.First
	}
	if cut && ts.Type == envs.Mid {
		ts.Type = envs.Last
	}
	err := checkReward(&v.spec, ts)
	if err == nil {
		err = v.rows[r].health.check(&v.spec, ts)
	}
	if err == nil && v.opts.Check {
		err = envs.CheckStep(&v.spec, prev, ts)
	}
	if err != nil {
		return err
	}
	b.Type[r], b.Reward[r], b.Discount[r] = ts.Type, ts.Reward, ts.Discount
	v.ret[r] += ts.Reward
	v.length[r]++
	if ts.Type == envs.Last {
		v.keepFinal(r)
		v.blank(r)
		return nil
	}
	v.publish(r, ts)
	b.Present[r] = true
	return nil
}

// multiState is the form of a saved vector of worlds.
type multiState struct {
	Name   string    `json:"name"`
	Agents []string  `json:"agents"`
	Key    rng.Key   `json:"key"`
	Began  []int     `json:"began"`
	Steps  []int     `json:"steps"`
	Return []float64 `json:"return"`
	Length []int     `json:"length"`
	Worlds [][]byte  `json:"worlds"`
}

// SaveState implements Saver.
func (v *Multi) SaveState() ([]byte, error) {
	if !v.running {
		return nil, fmt.Errorf("save %s: %w", v.spec.Name, envs.ErrNoEpisode)
	}
	s := multiState{Name: v.spec.Name, Agents: v.batch.Agents[:v.agents], Key: v.key, Return: v.ret, Length: v.length}
	for i := range v.worlds {
		w := &v.worlds[i]
		saver, ok := w.Multi.(envs.MultiSaver)
		if !ok {
			return nil, fmt.Errorf("save world %d, %s: %w", i, v.spec.Name, envs.ErrCannotSave)
		}
		data, err := saver.SaveState()
		if err != nil {
			return nil, fmt.Errorf("save world %d: %w", i, err)
		}
		s.Began, s.Steps, s.Worlds = append(s.Began, w.began), append(s.Steps, w.length), append(s.Worlds, data)
	}
	return json.Marshal(s)
}

// LoadState implements Saver. The number of workers does not matter.
func (v *Multi) LoadState(data []byte) error {
	if v.closed {
		return fmt.Errorf("load %s: %w", v.spec.Name, envs.ErrClosed)
	}
	var s multiState
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load %s: %w", v.spec.Name, err)
	}
	m, n := len(v.worlds), len(v.rows)
	if s.Name != v.spec.Name || !slices.Equal(s.Agents, v.batch.Agents[:v.agents]) || len(s.Worlds) != m || len(s.Began) != m || len(s.Steps) != m || len(s.Return) != n || len(s.Length) != n {
		return fmt.Errorf("load %s: the state is of %d worlds %q with agents %q, expected %d with %q", v.spec.Name, len(s.Worlds), s.Name, s.Agents, m, v.batch.Agents[:v.agents])
	}
	v.running = false
	b := v.batch
	for i := range v.worlds {
		w := &v.worlds[i]
		saver, ok := w.Multi.(envs.MultiSaver)
		if !ok {
			return fmt.Errorf("load world %d, %s: %w", i, v.spec.Name, envs.ErrCannotSave)
		}
		if err := saver.LoadState(s.Worlds[i], w.steps, w.has); err != nil {
			return fmt.Errorf("load world %d: %w", i, err)
		}
		w.began, w.length = s.Began[i], s.Steps[i]
		for k, has := range w.has {
			r, ts := i*v.agents+k, w.steps[k]
			if b.Present[r] = has; !has {
				v.away(r)
				continue
			}
			if ts.Type == envs.Last {
				return fmt.Errorf("load world %d: the episode of agent %q has ended", i, b.Agents[r])
			}
			v.idle(r)
			b.Type[r] = ts.Type
			v.publish(r, ts)
		}
		if !slices.Contains(w.has, true) {
			return fmt.Errorf("load world %d: no agent is present", i)
		}
	}
	copy(v.ret, s.Return)
	copy(v.length, s.Length)
	v.key, v.running, b.Ended = s.Key, true, b.Ended[:0]
	return nil
}

// Close implements Env.
func (v *Multi) Close() error {
	var errs []error
	if !v.closed {
		v.closed, v.running = true, false
		v.crew.close()
		for i := range v.worlds {
			if err := v.worlds[i].Close(); err != nil {
				errs = append(errs, fmt.Errorf("close world %d: %w", i, err))
			}
		}
	}
	return errors.Join(append(errs, v.arena.Close())...)
}

// AgentRows is the error of a vector whose rows are not those of whole worlds of so many agents.
func AgentRows(rows, agents int) error {
	return fmt.Errorf("a vector of %d rows, which is train.num_envs, of worlds of %d agents: expected a multiple of that, one row for each agent of each world", rows, agents)
}

// multiMaker makes vectors of a factory's worlds.
type multiMaker struct{ envs.MultiFactory }

// NewVector implements Maker. n counts rows, and is a multiple of the number of agents.
func (m multiMaker) NewVector(split envs.Split, n int, o Options) (Env, error) {
	k := len(m.Agents())
	if k == 0 || n%k != 0 {
		return nil, AgentRows(n, k)
	}
	var list []envs.Multi
	fail := func(err error) (Env, error) {
		for _, w := range list {
			err = errors.Join(err, w.Close())
		}
		return nil, err
	}
	for i := range n / k {
		w, err := m.NewMulti(split, i)
		if err != nil {
			return fail(fmt.Errorf("make world %d of %d for %s: %w", i, n/k, split, err))
		}
		list = append(list, w)
	}
	v, err := NewMulti(list, o)
	if err != nil {
		return fail(err)
	}
	if v.agents != k {
		return nil, errors.Join(fmt.Errorf("worlds of %s have the agents %q, and their factory says %q", v.spec.Name, v.batch.Agents[:v.agents], m.Agents()), v.Close())
	}
	return v, nil
}
