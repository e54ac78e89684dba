package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
)

// Group is the actors of a run, at work between Start and Stop. It is not safe for concurrent use.
type Group struct {
	c    Config
	list []*Actor
	// positions are where the environments were after the unrolls that were learnt from; nil before
	// the first.
	positions []*Position

	hub     *Hub
	weights *Weights
	cancel  context.CancelFunc
	done    chan struct{}
	// lost says that an actor has not answered: nothing that it may use is freed.
	lost bool
}

// NewGroup opens envs environments of the factory, which must outlive the group, in equal parts for
// all actors.
func NewGroup(c Config, f envs.Factory, n int, keys Keys, o vector.Options) (_ *Group, err error) {
	if c.Count < 1 || n%c.Count != 0 {
		return nil, fmt.Errorf("train.actors.count: %d actors and %d environments, expected a divisor of train.num_envs", c.Count, n)
	}
	g := &Group{c: c, positions: make([]*Position, c.Count), weights: &Weights{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	for i := range c.Count {
		// What a group steps at once is its actors.
		if c.Count > 1 {
			o.Workers = 1
		}
		a, err := NewActor(f, n/c.Count, keys.Of(i, c.Count), o)
		if err != nil {
			return nil, g.named(i, err)
		}
		g.list = append(g.list, a)
	}
	return g, nil
}

// named says which actor an error is of.
func (g *Group) named(i int, err error) error {
	return fmt.Errorf("actor %d of %d: %w", i, g.c.Count, err)
}

// Spec describes one of the environments.
func (g *Group) Spec() envs.Spec { return g.list[0].Spec() }

// Positions returns where the environments of each actor were after the unrolls that were learnt
// from, nil before the first. They are not to be changed.
func (g *Group) Positions() []*Position { return g.positions }

// SetPositions has the actors go on from elsewhere with the next Start.
func (g *Group) SetPositions(list []*Position) error {
	if len(list) != g.c.Count {
		return fmt.Errorf("the run has %d actors, expected %d", len(list), g.c.Count)
	}
	g.positions = list
	for _, a := range g.list {
		// Wherever they are, it is in another run.
		a.begun = false
	}
	return nil
}

// Start has the actors work for a learner, whose agent was made by m with s.
func (g *Group) Start(ctx context.Context, m agents.Maker, s agents.Setup, l agents.Learner) error {
	if err := Accepts(l); err != nil {
		return err
	}
	u := l.(agents.Unroller)
	_, params := u.Policy()
	for i, a := range g.list {
		if err := a.Begin(ctx, m, Setup(s, params, i, g.c.Count), g.positions[i]); err != nil {
			return g.named(i, err)
		}
	}
	next := u.Version()
	if u.Ready() {
		// It was stopped within an update, whose unrolls it has.
		next++
	}
	g.hub = NewHub(g.c.Count, g.c.MaxPolicyLag, u.Version(), next)
	g.weights.Publish(u.Version(), params)
	// What ends them is Stop, and not the context of whoever starts them.
	ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	g.done = make(chan struct{})
	var wg sync.WaitGroup
	for i, a := range g.list {
		wg.Go(func() {
			if err := g.work(ctx, i, a); err != nil && ctx.Err() == nil {
				g.hub.Fail(g.named(i, err))
			}
		})
	}
	go func() {
		wg.Wait()
		close(g.done)
	}()
	return nil
}

// work plays one unroll after the other.
func (g *Group) work(ctx context.Context, i int, a *Actor) error {
	for {
		number, err := g.hub.Permit(ctx, i)
		if err != nil {
			return err
		}
		p, err := a.Play(ctx, number, g.weights)
		if err != nil {
			return err
		}
		if err := g.hub.Submit(i, p); err != nil {
			return err
		}
	}
}

// Next waits for the batch of the next update and joins it to the learner, which is ready then. The
// unrolls are the caller's. An error is ctx's, or that of an actor, and nothing was joined.
func (g *Group) Next(ctx context.Context, l agents.Learner) ([]*Played, error) {
	batch, err := g.hub.Take(ctx)
	if err != nil {
		return nil, err
	}
	first := 0
	for i, p := range batch {
		if err := l.(agents.Unroller).Join(p.Unroll, first); err != nil {
			return nil, g.named(i, err)
		}
		first += p.Rows
	}
	for i, p := range batch {
		g.positions[i] = &p.Position
	}
	return batch, nil
}

// Learnt gives the actors the parameters that the learner has now.
func (g *Group) Learnt(l agents.Learner) {
	u := l.(agents.Unroller)
	_, params := u.Policy()
	g.hub.Learnt(func() { g.weights.Publish(u.Version(), params) })
}

// Stop ends the work of the actors, each after its present round. What was played and not taken is
// lost. It reports whether all of them have come back within patience; the group can only be closed
// otherwise, which then frees nothing that one of them may use.
func (g *Group) Stop(patience time.Duration, log *slog.Logger) bool {
	if g.cancel == nil {
		return !g.lost
	}
	g.cancel()
	g.cancel = nil
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-g.done:
	case <-timer.C:
		g.lost = true
		log.Warn("an environment of an actor does not answer and is given up", "seconds", patience.Seconds())
	}
	return !g.lost
}

// Close frees the actors, which must have stopped.
func (g *Group) Close() error {
	if g.lost {
		return nil
	}
	var errs []error
	for _, a := range g.list {
		errs = append(errs, a.Close())
	}
	g.list = nil
	return errors.Join(errs...)
}
