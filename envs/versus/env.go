package versus

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Env is a world as one of its agents finds it, whose others are played by members of a pool.
type Env struct {
	t    *table
	pool *Pool
	// owned says that the pool is closed with the environment.
	owned bool
	seats []int
	spec  envs.Spec
	draws rng.Stream
	seat  int
	// reward and discount are those since the last decision, and ended is its last step.
	reward, discount float64
	ended            bool
	// acted says that the learner has taken an action in the episode.
	acted bool
	// pending says that a decision is being carried out, ahead that it is already, see Vector.
	pending, ahead  bool
	running, closed bool
	alone           [1]*Env
}

var (
	_ envs.Env   = (*Env)(nil)
	_ envs.Saver = (*Env)(nil)
)

// The diagnostics.
const (
	infoSeat = iota
	infoOpponent
	infoScore
	infos
)

// newEnv returns an environment around a world, which it owns.
func newEnv(w envs.Multi, pool *Pool, seats []int) *Env {
	e := &Env{t: newTable(w), pool: pool, seats: seats}
	s := e.t.spec
	s.Name, s.Random = "versus-"+s.Name, true
	n := s.MaxSteps
	if s.Masked {
		// Rewards of steps without a choice are summed.
		k := float64(n)
		if n == 0 {
			k = math.Inf(1)
		}
		s.Reward = envs.Range{Low: bound(k, s.Reward.Low), High: bound(k, s.Reward.High)}
	}
	s.Info = append(s.Info[:len(s.Info):len(s.Info)], "seat", "opponent", "score")
	e.spec, e.alone[0] = s, e
	return e
}

// bound is k·x, at least as far from 0 as x.
func bound(k, x float64) float64 {
	if x == 0 {
		return 0
	}
	return x * max(1, k)
}

// Spec implements envs.Env.
func (e *Env) Spec() envs.Spec { return e.spec }

// attempts is how many episodes may end before the learner has had a choice.
const attempts = 100

// Reset implements envs.Env.
func (e *Env) Reset(key rng.Key, ts *envs.TimeStep) error {
	if e.closed {
		return fmt.Errorf("reset %s: %w", e.spec.Name, envs.ErrClosed)
	}
	e.running, e.ahead = false, false
	for n := range attempts {
		if err := e.begin(key.Split("attempt", n)); err != nil {
			return fmt.Errorf("reset %s: %w", e.spec.Name, err)
		}
		if !e.ended {
			e.running = true
			e.write(ts)
			ts.Restart()
			return nil
		}
	}
	return fmt.Errorf("reset %s: %d episodes have ended before %s had a choice", e.spec.Name, attempts, e.t.names[e.seat])
}

// begin begins an episode, and plays it up to the learner's first decision.
func (e *Env) begin(key rng.Key) error {
	e.draws.Seed(key.Split("deal"))
	e.seat = e.seats[e.draws.IntN(len(e.seats))]
	for i := range e.t.players {
		if e.t.players[i] = learner; i != e.seat {
			e.t.players[i] = e.pool.draw(&e.draws)
		}
	}
	if err := e.t.reset(key); err != nil {
		return err
	}
	e.ended, e.acted, e.reward, e.discount = false, false, 0, 1
	e.pending = !e.decides()
	return e.pool.play(e.alone[:])
}

// decides reports whether the learner is to act, and has a choice.
func (e *Env) decides() bool { return e.t.acts[e.seat] && !e.pool.forced(e.t, e.seat) }

// act begins to carry out an action of the learner.
func (e *Env) act(action *tensor.Tensor) error {
	if err := envs.CheckAction(&e.spec, action); err != nil {
		return err
	}
	copy(e.t.actions[e.seat].Bytes(), action.Bytes())
	e.pending, e.acted, e.reward, e.discount = true, true, 0, 1
	return nil
}

// play carries out what is pending in environments, whose models decide for all of them at once.
// After an error those that were pending need a Reset.
func (p *Pool) play(list []*Env) (err error) {
	defer func() {
		if err != nil {
			for _, e := range list {
				e.running, e.pending = e.running && !e.pending, false
			}
		}
	}()
	for {
		n := 0
		for _, e := range list {
			if !e.pending {
				continue
			}
			n++
			if err := p.decide(e.t); err != nil {
				return err
			}
		}
		if n == 0 {
			return nil
		}
		if err := p.answer(); err != nil {
			return err
		}
		for _, e := range list {
			if !e.pending {
				continue
			}
			if err := e.settle(); err != nil {
				return err
			}
		}
	}
}

// settle takes a step of the world.
func (e *Env) settle() error {
	over, err := e.t.step()
	if err != nil {
		return err
	}
	ts := e.t.steps[e.seat]
	switch {
	case e.t.present[e.seat]:
		e.reward += ts.Reward
		e.discount *= ts.Discount
		e.ended = ts.Type == envs.Last
		e.pending = !e.ended && !e.decides()
	case over:
		return fmt.Errorf("the episode of the world has ended without a last step of %s", e.t.names[e.seat])
	}
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
	if !e.ahead {
		if err := e.act(action); err != nil {
			return err
		}
		if err := e.pool.play(e.alone[:]); err != nil {
			return fmt.Errorf("step %s: %w", e.spec.Name, err)
		}
	}
	e.ahead = false
	e.write(ts)
	switch {
	case !e.ended:
		ts.Continue(e.reward)
		ts.Discount = e.discount
	case e.discount == 0:
		ts.Terminate(e.reward)
	default:
		ts.Truncate(e.reward)
		ts.Discount = e.discount
	}
	e.running = !e.ended
	return nil
}

// write gives the learner what its agent sees.
func (e *Env) write(ts *envs.TimeStep) {
	from := e.t.steps[e.seat]
	for i, o := range from.Obs {
		if w := e.spec.Observation[i].Window; w != nil {
			ts.SetWindow(i, w, int(from.Rows[i]))
		} else {
			copy(ts.Obs[i].Bytes(), o.Bytes())
		}
	}
	if ts.Mask != nil {
		copy(ts.Mask.Bytes(), from.Mask.Bytes())
	}
	copy(ts.Costs, from.Costs)
	n := copy(ts.Info, from.Info)
	own := ts.Info[n : n+infos]
	own[infoSeat], own[infoOpponent], own[infoScore] = float64(e.seat), -1, 0
	best := math.Inf(-1)
	for i, p := range e.t.players {
		if i == e.seat {
			continue
		}
		if own[infoOpponent] < 0 {
			own[infoOpponent] = float64(p)
		}
		best = max(best, e.t.returns[i])
	}
	if e.ended {
		own[infoScore] = score(e.t.returns[e.seat], best)
	}
}

// exps returns probabilities of their logarithms.
func exps(logs []float32) []float64 {
	out := make([]float64, len(logs))
	for i, x := range logs {
		out[i] = math.Exp(float64(x))
	}
	return out
}

// score is 1 for who has more than the best of the others, 1/2 for as much, and else 0.
func score(own, best float64) float64 {
	switch {
	case own > best:
		return 1
	case own == best:
		return 0.5
	}
	return 0
}

// Close implements envs.Env.
func (e *Env) Close() error {
	if e.closed {
		return nil
	}
	e.closed, e.running = true, false
	err := e.t.world.Close()
	if e.owned {
		err = errors.Join(err, e.pool.Close())
	}
	return err
}

// saved is the form of a saved episode.
type saved struct {
	Seat    int          `json:"seat"`
	Players []string     `json:"players"`
	Random  []rng.Stream `json:"random"`
	Draws   *rng.Stream  `json:"draws"`
	Returns []float64    `json:"returns"`
	Length  int          `json:"length"`
	Acted   bool         `json:"acted"`
	World   []byte       `json:"world"`
}

// SaveState implements envs.Saver.
func (e *Env) SaveState() ([]byte, error) {
	if !e.running {
		return nil, fmt.Errorf("save %s: %w", e.spec.Name, envs.ErrNoEpisode)
	}
	w, ok := e.t.world.(envs.MultiSaver)
	if !ok {
		return nil, fmt.Errorf("save %s: %w", e.spec.Name, envs.ErrCannotSave)
	}
	s := saved{Seat: e.seat, Random: e.t.random, Draws: &e.draws, Returns: e.t.returns, Length: e.t.length, Acted: e.acted}
	for _, p := range e.t.players {
		name := ""
		if p != learner {
			name = e.pool.members[p].name
		}
		s.Players = append(s.Players, name)
	}
	var err error
	if s.World, err = w.SaveState(); err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// LoadState implements envs.Saver. A seat whose player is not in the pool any more is played on by
// another, who is drawn.
func (e *Env) LoadState(data []byte, ts *envs.TimeStep) error {
	if e.closed {
		return fmt.Errorf("load %s: %w", e.spec.Name, envs.ErrClosed)
	}
	e.running, e.ahead, e.pending = false, false, false
	w, ok := e.t.world.(envs.MultiSaver)
	if !ok {
		return fmt.Errorf("load %s: %w", e.spec.Name, envs.ErrCannotSave)
	}
	s := saved{Draws: &rng.Stream{}}
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load %s: %w", e.spec.Name, err)
	}
	n := len(e.t.names)
	if len(s.Players) != n || len(s.Random) != n || len(s.Returns) != n || !slices.Contains(e.seats, s.Seat) || s.Length < 0 {
		return fmt.Errorf("load %s: the state is of seat %d of %d agents, expected one of %d of %d", e.spec.Name, s.Seat, len(s.Players), e.seats, n)
	}
	if err := w.LoadState(s.World, e.t.steps, e.t.present); err != nil {
		return err
	}
	copy(e.t.acts, e.t.present)
	if e.seat = s.Seat; !e.t.acts[e.seat] {
		return fmt.Errorf("load %s: agent %s is not to act", e.spec.Name, e.t.names[e.seat])
	}
	e.draws = *s.Draws
	copy(e.t.random, s.Random)
	copy(e.t.returns, s.Returns)
	e.t.length = s.Length
	for i, name := range s.Players {
		if e.t.players[i] = learner; i == e.seat {
			continue
		}
		if e.t.players[i] = e.pool.index(name); e.t.players[i] < 0 {
			e.t.players[i] = e.pool.draw(&e.draws)
		}
	}
	e.ended, e.running, e.acted = false, true, s.Acted
	e.write(ts)
	ts.Continue(0)
	if !e.acted {
		ts.Restart()
	}
	return nil
}
