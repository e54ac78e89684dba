package replay

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Normalizer is how a learner scales what it learns from, by statistics of its own that change.
type Normalizer interface {
	// Raw is the environments' batch as it was before it was scaled.
	Raw() *vector.Batch
	// ScaleObs scales rows of a field of the observation in place, and nothing where the field is
	// left as it is; ScaleRewards does rewards. ScalesRewards reports whether that changes them.
	ScaleObs(field int, x *tensor.Tensor)
	ScaleRewards(x []float32)
	ScalesRewards() bool
}

// Normalized is a store for a learner whose observations and rewards are normalised. It records
// what the environments gave, which means the same to all who share the store, and scales what it
// draws by the statistics of the time when it is drawn, as Stable-Baselines3's replays do. by
// returns the statistics that the learner has.
func Normalized(given agents.Replay, by func() Normalizer) agents.Replay {
	return normalizedStore{given, by}
}

type normalizedStore struct {
	agents.Replay
	by func() Normalizer
}

// Open implements Store.
func (s normalizedStore) Open(l Layout, c Config) (Buffer, error) {
	x := &normalized{by: s.by}
	if err := x.single(c.NSteps); err != nil {
		return nil, err
	}
	b, err := Open(s.Replay, l, c)
	if err != nil {
		return nil, err
	}
	x.Buffer = b
	sharer, shares := b.(Sharer)
	updater, updates := b.(Updater)
	switch {
	case shares && updates:
		return &struct {
			*normalized
			sharing
			prefers
		}{x, sharer, updater}, nil
	case shares:
		return &struct {
			*normalized
			sharing
		}{x, sharer}, nil
	case updates:
		return &struct {
			*normalized
			prefers
		}{x, updater}, nil
	}
	return x, nil
}

// sharing and prefers are what a Sharer and an Updater have beside a Buffer.
type (
	sharing interface {
		Policy() int32
		Clock() int64
	}
	prefers interface {
		SetPriorities(p Priorities) error
		SetBeta(beta float64)
		Update(index []int64, errors []float32) error
	}
)

// normalized is a buffer of raw transitions that scales what it draws.
type normalized struct {
	Buffer
	by func() Normalizer
}

// Begin implements agents.Recorder.
func (n *normalized) Begin(_ *vector.Batch, d *vector.Decision) error {
	return n.Buffer.Begin(n.by().Raw(), d)
}

// End implements agents.Recorder.
func (n *normalized) End(*vector.Batch) error { return n.Buffer.End(n.by().Raw()) }

// Sample implements Buffer.
func (n *normalized) Sample(s *rng.Stream, b *Batch) error {
	err := n.Buffer.Sample(s, b)
	if err == nil {
		n.scale(b)
	}
	return err
}

// SampleSequences implements Buffer.
func (n *normalized) SampleSequences(s *rng.Stream, b *Batch, length int) error {
	err := n.Buffer.SampleSequences(s, b, length)
	if err == nil {
		n.scale(b)
	}
	return err
}

// SetReturns implements Buffer.
func (n *normalized) SetReturns(nSteps int, gamma float64) error {
	if err := n.single(nSteps); err != nil {
		return err
	}
	return n.Buffer.SetReturns(nSteps, gamma)
}

// single reports samples whose rewards are sums, of which each reward would have to be limited.
func (n *normalized) single(nSteps int) error {
	if nSteps > 1 && n.by().ScalesRewards() {
		return fmt.Errorf("n_steps: is %d, expected 1 where wrappers.normalize.reward scales rewards of a replay that others use too: each reward is limited by itself, and sums are drawn", nSteps)
	}
	return nil
}

func (n *normalized) scale(b *Batch) {
	by := n.by()
	for f, t := range b.Obs {
		if t != nil {
			by.ScaleObs(f, t)
		}
	}
	for f, t := range b.NextObs {
		if t != nil {
			by.ScaleObs(f, t)
		}
	}
	by.ScaleRewards(b.Reward)
}
