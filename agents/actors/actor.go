package actors

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Position is where the environments of an actor are.
type Position struct {
	// Rounds is the number of rounds that they have taken.
	Rounds int64
	// Envs is their state (vector.SaveState), and Costs are the costs of the episodes that go on so
	// far, of all rows. Unsaved says why there is no state: the environments cannot be saved.
	Envs    []byte
	Costs   []float64
	Unsaved string
}

// Keys are where the randomness of a run's actors descends from.
type Keys struct {
	// Act is that of actions, Worlds that of environments.
	Act, Worlds rng.Key
}

// Of returns the keys of one actor of so many. One that is alone has those of the run.
func (k Keys) Of(index, count int) Keys {
	if count == 1 {
		return k
	}
	return Keys{k.Act.Split("actor", index), k.Worlds.Split("actor", index)}
}

// Setup returns what the agent of one actor of so many is made with, where s is what that of the
// learner was, which has the parameters that values returns by name, little-endian, nil for others.
func Setup(s agents.Setup, values func(name string) []byte, index, count int) agents.Setup {
	s.Acting = true
	s.Envs /= count
	s.Threads = max(1, s.Threads/count)
	s.Profile, s.Updating, s.Replay = nil, nil, nil
	if count > 1 {
		s.Key = s.Key.Split("actor", index)
	}
	s.Init = func(drawn map[string]*tensor.Tensor) error {
		for name, v := range drawn {
			x := values(name)
			if x == nil {
				continue // A base, which comes from files.
			}
			if len(x) != 4*v.Len() {
				return fmt.Errorf("parameter %q has %d bytes, expected %v", name, len(x), v.Shape())
			}
			if _, err := binary.Decode(x, binary.LittleEndian, v.Float32s()); err != nil {
				return fmt.Errorf("parameter %q: %w", name, err)
			}
		}
		return nil
	}
	return s
}

// valuesOf returns the parameters that are not of a base.
func valuesOf(p *models.Params) map[string][]byte {
	values := map[string][]byte{}
	for _, s := range p.Segments() {
		if s.Role == models.Base {
			continue
		}
		for i, spec := range s.Specs() {
			off, n := s.Range(i)
			values[spec.Name] = littleEndian(s.Floats()[off : off+n])
		}
	}
	return values
}

// Actor plays unrolls in environments of its own. It is not safe for concurrent use.
type Actor struct {
	keys    Keys
	env     vector.Env
	counter *Counter

	agent agents.Agent
	actor agents.Actor
	// rounds is the number of rounds that the environments have taken, and begun says that they
	// were reset.
	rounds int64
	begun  bool
}

// NewActor opens n environments of the factory, which must outlive the actor.
func NewActor(f envs.Factory, n int, keys Keys, o vector.Options) (*Actor, error) {
	o.Train = true
	env, err := vector.Open(f, envs.Train, n, o)
	if err != nil {
		return nil, err
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Actor{keys: keys, env: env, counter: NewCounter(env.Spec(), n, log)}, nil
}

// Spec describes one of the environments.
func (a *Actor) Spec() envs.Spec { return a.env.Spec() }

// Begin makes an agent, in place of the one that there was, and brings the environments to where
// they are to go on; nil begins.
func (a *Actor) Begin(ctx context.Context, m agents.Maker, s agents.Setup, at *Position) error {
	if err := a.dismiss(); err != nil {
		return err
	}
	if err := a.move(at); err != nil {
		return err
	}
	var err error
	if a.agent, err = m.New(ctx, s); err != nil {
		return err
	}
	if err := Accepts(a.agent.Learner()); err != nil {
		return err
	}
	a.actor, err = a.agent.NewActor(agents.Explore, s.Envs)
	return err
}

// Accepts returns an error that a run is to end with if a learner cannot learn from what actors
// record.
func Accepts(l agents.Learner) error {
	if _, ok := l.(agents.Unroller); !ok {
		return errors.New("train.actors.count: the algorithm of agent.kind cannot learn from what others have recorded; impala and appo can")
	}
	return nil
}

// move brings the environments to where they are to go on.
func (a *Actor) move(at *Position) error {
	switch {
	case at == nil:
		a.begun, a.rounds = false, 0
		a.counter.Costs.Restart()
		if err := a.env.Reset(a.keys.Worlds); err != nil {
			return fmt.Errorf("reset: %w", err)
		}
	case a.begun && (a.rounds == at.Rounds || at.Unsaved != ""):
		// They are there, or cannot go back and go on.
		return nil
	case at.Unsaved != "":
		a.rounds = at.Rounds
		a.counter.Costs.Restart()
		if err := a.env.Reset(a.keys.Worlds.Split("resumed", int(at.Rounds))); err != nil {
			return fmt.Errorf("reset: %w", err)
		}
	default:
		a.begun = false
		if err := vector.LoadState(a.env, at.Envs); err != nil {
			return err
		}
		a.counter.Costs.Restart()
		if len(at.Costs) != len(a.counter.Costs.Values) {
			return fmt.Errorf("%d costs of episodes, expected %d", len(at.Costs), len(a.counter.Costs.Values))
		}
		copy(a.counter.Costs.Values, at.Costs)
		a.rounds = at.Rounds
	}
	a.begun = true
	return nil
}

// position returns where the environments are.
func (a *Actor) position() (Position, error) {
	p := Position{Rounds: a.rounds}
	state, err := vector.SaveState(a.env)
	switch {
	case errors.Is(err, envs.ErrCannotSave):
		p.Unsaved = err.Error()
		return p, nil
	case err != nil:
		return p, err
	}
	a.counter.Costs.Settle()
	p.Envs, p.Costs = state, append([]float64(nil), a.counter.Costs.Values...)
	return p, nil
}

// Play plays an unroll with the newest parameters. After an error, which is ctx's where that has
// ended, Begin is to be called first.
func (a *Actor) Play(ctx context.Context, number int64, w *Weights) (*Played, error) {
	l := a.agent.Learner().(agents.Unroller)
	_, params := l.Policy()
	version, err := w.Pull(params)
	if err != nil {
		return nil, err
	}
	l.Adopt(version)
	if err := a.actor.Sync(ctx); err != nil {
		return nil, err
	}
	p := &Played{Number: number}
	for !l.Ready() {
		if err := agents.Collect(ctx, a.env, a.actor, a.agent.Recorder(), a.keys.Act, int(a.rounds), 1, nil); err != nil {
			if env := (*agents.EnvError)(nil); errors.As(err, &env) {
				a.begun = false
			}
			return nil, err
		}
		a.rounds++
		a.counter.Add(&p.Tally, a.env.Batch(), a.env.Batch())
	}
	if p.Unroll, err = l.Unroll(); err != nil {
		return nil, err
	}
	p.Position, err = a.position()
	return p, err
}

// dismiss closes the agent.
func (a *Actor) dismiss() error {
	var errs []error
	if a.actor != nil {
		errs = append(errs, a.actor.Close())
	}
	if a.agent != nil {
		errs = append(errs, a.agent.Close())
	}
	a.actor, a.agent = nil, nil
	return errors.Join(errs...)
}

// Close frees agent and environments.
func (a *Actor) Close() error { return errors.Join(a.dismiss(), a.env.Close()) }
