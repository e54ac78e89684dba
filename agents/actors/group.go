package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
)

// Group is the actors of a run, at work between Start and Stop. It is not safe for concurrent use.
type Group struct {
	c    Config
	log  *slog.Logger
	spec envs.Spec
	// list are actors in this process, and remotes those in other processes, of which there are
	// either.
	list    []*Actor
	remotes []*remote
	// positions are where the environments were after the unrolls that were learnt from; nil before
	// the first.
	positions []*Position

	hub     *Hub
	weights *Weights
	cancel  context.CancelFunc
	done    chan struct{}
	// lost counts unrolls.
	lost atomic.Int64
	// silent says that an actor has not answered: nothing that it may use is freed.
	silent bool
}

// tries is how often in a row an actor elsewhere is begun again.
const tries = 3

// NewGroup opens n environments of the factory, which must outlive the group, in equal parts for
// all actors. Where Config has actors elsewhere they are opened there, which remoteTo reaches.
func NewGroup(c Config, f envs.Factory, n int, keys Keys, remoteTo *Remote, o vector.Options) (_ *Group, err error) {
	if c.Count < 1 || n%c.Count != 0 {
		return nil, fmt.Errorf("train.actors.count: %d actors and %d environments, expected a divisor of train.num_envs", c.Count, n)
	}
	g := &Group{c: c, positions: make([]*Position, c.Count), weights: &Weights{}, log: o.Log}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Close())
		}
	}()
	if c.Count > 1 {
		// A group steps its actors at once, so each has one worker.
		o.Workers = 1
	}
	if c.Elsewhere() {
		if remoteTo == nil {
			return nil, errors.New("train.actors.processes: this program starts no processes for actors")
		}
		// Only to know what they are like.
		env, err := vector.Open(f, envs.Train, n/c.Count, o)
		if err != nil {
			return nil, err
		}
		g.spec = env.Spec()
		for i := range c.Count {
			g.remotes = append(g.remotes, &remote{to: remoteTo, index: i, count: c.Count})
		}
		return g, env.Close()
	}
	for i := range c.Count {
		a, err := NewActor(f, n/c.Count, keys.Of(i, c.Count), o)
		if err != nil {
			return nil, g.named(i, err)
		}
		g.spec = a.Spec()
		g.list = append(g.list, a)
	}
	return g, nil
}

// named says which actor an error is of.
func (g *Group) named(i int, err error) error {
	return fmt.Errorf("actor %d of %d: %w", i, g.c.Count, err)
}

// Spec describes one of the environments.
func (g *Group) Spec() envs.Spec { return g.spec }

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
	values := valuesOf(params)
	for i, a := range g.list {
		if err := a.Begin(ctx, m, Setup(s, func(name string) []byte { return values[name] }, i, g.c.Count), g.positions[i]); err != nil {
			return g.named(i, err)
		}
	}
	if err := g.launch(ctx, values); err != nil {
		return err
	}
	next := u.Version()
	if u.Ready() {
		// It was stopped within an update, whose unrolls it has.
		next++
	}
	g.hub = NewHub(g.c.Count, g.c.MaxPolicyLag, u.Version(), next)
	g.weights.Publish(u.Version(), params)
	// Stop ends them, and not the context of whoever starts them.
	ctx, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	g.done = make(chan struct{})
	var wg sync.WaitGroup
	for i := range g.c.Count {
		wg.Go(func() {
			if err := g.work(ctx, i, g.positions[i]); err != nil && ctx.Err() == nil {
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

// launch begins in all processes at once.
func (g *Group) launch(ctx context.Context, values map[string][]byte) error {
	errs := make([]error, len(g.remotes))
	var wg sync.WaitGroup
	for i, r := range g.remotes {
		wg.Go(func() {
			if err := r.begin(ctx, values, g.positions[i]); err != nil {
				errs[i] = g.named(i, err)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// work plays one unroll after the other. at is where the environments of the actor are.
func (g *Group) work(ctx context.Context, i int, at *Position) error {
	ended := 0
	for {
		number, err := g.hub.Permit(ctx, i)
		if err != nil {
			return err
		}
		var p *Played
		if g.remotes == nil {
			p, err = g.list[i].Play(ctx, number, g.weights)
		} else {
			p, err = g.remotes[i].Play(ctx, number, g.weights)
		}
		if lost := (*LostError)(nil); errors.As(err, &lost) {
			g.lost.Add(1)
		}
		for lost := (*LostError)(nil); errors.As(err, &lost); err = g.remotes[i].again(ctx, at) {
			if ended++; ended > tries {
				return fmt.Errorf("it was started again %d times in a row: %w", tries, err)
			}
			g.log.Warn("an actor is lost and is begun again", "actor", i, "try", ended, "error", lost)
		}
		if err != nil {
			return err
		}
		if p == nil {
			continue // It is played again.
		}
		if err := g.hub.Submit(i, p); err != nil {
			return err
		}
		at, ended = &p.Position, 0
	}
}

// Lost returns how many unrolls were lost with the processes that played them since it was called
// last.
func (g *Group) Lost() int64 { return g.lost.Swap(0) }

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
func (g *Group) Stop(patience time.Duration) bool {
	if g.cancel == nil {
		return !g.silent
	}
	g.cancel()
	g.cancel = nil
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-g.done:
	case <-timer.C:
		g.silent = true
		g.log.Warn("an environment of an actor does not answer and is given up", "seconds", patience.Seconds())
	}
	var wg sync.WaitGroup
	for _, r := range g.remotes {
		if !g.silent {
			// How they end does not matter any more.
			wg.Go(func() { _ = r.Close() })
		}
	}
	wg.Wait()
	return !g.silent
}

// Close frees the actors, which must have stopped.
func (g *Group) Close() error {
	if g.silent {
		return nil
	}
	var errs []error
	for _, a := range g.list {
		errs = append(errs, a.Close())
	}
	for _, r := range g.remotes {
		errs = append(errs, r.Close())
	}
	g.list, g.remotes = nil, nil
	return errors.Join(errs...)
}
