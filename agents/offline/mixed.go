package offline

import (
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// mixed is a learner's own replay beside a data set, from which a share of every batch is drawn
// (Ball et al. 2023, arXiv 2302.02948, with a half). Until the learner has recorded a transition
// all of it is. The rows of the data set come first.
type mixed struct {
	*replay.Uniform
	data     *replay.Uniform
	identity string
	share    float64
	// of is the batch that first and rest are the rows of.
	of          *replay.Batch
	first, rest replay.Batch
}

// Len implements replay.Buffer.
func (m *mixed) Len() int { return m.Uniform.Len() + m.data.Len() }

// Sample implements replay.Buffer.
func (m *mixed) Sample(s *rng.Stream, b *replay.Batch) error {
	if m.Uniform.Len() == 0 {
		return m.data.Sample(s, b)
	}
	n := len(b.Reward)
	k := int(math.Round(m.share * float64(n)))
	if m.of != b {
		m.of, m.first, m.rest = b, part(b, 0, k), part(b, k, n)
	}
	if k > 0 {
		if err := m.data.Sample(s, &m.first); err != nil {
			return err
		}
	}
	if k == n {
		return nil
	}
	return m.Uniform.Sample(s, &m.rest)
}

// part is the rows from lo to hi of a batch.
func part(b *replay.Batch, lo, hi int) replay.Batch {
	of := func(t *tensor.Tensor) *tensor.Tensor {
		if t == nil {
			return nil
		}
		return t.Rows(lo, hi)
	}
	each := func(list []*tensor.Tensor) (out []*tensor.Tensor) {
		for _, t := range list {
			out = append(out, of(t))
		}
		return out
	}
	rows := func(list [][]int64) (out [][]int64) {
		for _, r := range list {
			out = append(out, cut(r, lo, hi))
		}
		return out
	}
	return replay.Batch{
		Obs: each(b.Obs), NextObs: each(b.NextObs), Mask: of(b.Mask), NextMask: of(b.NextMask), Rows: rows(b.Rows), NextRows: rows(b.NextRows), Action: of(b.Action),
		Reward: cut(b.Reward, lo, hi), Discount: cut(b.Discount, lo, hi), Cost: of(b.Cost), LogProb: cut(b.LogProb, lo, hi), Weight: cut(b.Weight, lo, hi), Ended: cut(b.Ended, lo, hi),
		Logits: of(b.Logits), Skill: of(b.Skill),
	}
}

// cut is the elements from lo to hi; nil for nil.
func cut[T any](list []T, lo, hi int) []T {
	if list == nil {
		return nil
	}
	return list[lo:hi:hi]
}

// SampleSequences implements replay.Buffer. Sequences of both would be of different lengths.
func (m *mixed) SampleSequences(*rng.Stream, *replay.Batch, int) error {
	return errors.New("sequences are not drawn from a data set and a replay at once; leave out vtrace.length, or the data set")
}

// SetReturns implements replay.Buffer.
func (m *mixed) SetReturns(nSteps int, gamma float64) error {
	return errors.Join(m.Uniform.SetReturns(nSteps, gamma), m.data.SetReturns(nSteps, gamma))
}

// identityEntry is the data set beside which the replay of a checkpoint was filled.
const identityEntry = "dataset"

// SaveState implements checkpoint.Stater.
func (m *mixed) SaveState(w *checkpoint.Writer) error {
	w.PutJSON(identityEntry, m.identity)
	return m.Uniform.SaveState(w)
}

// LoadState implements checkpoint.Stater.
func (m *mixed) LoadState(r *checkpoint.Reader) error {
	var was string
	if err := r.JSON(identityEntry, &was); err != nil {
		return err
	}
	if was != m.identity {
		return fmt.Errorf("the checkpoint's learner drew from the data set %q, and this one draws from %q", was, m.identity)
	}
	return m.Uniform.LoadState(r)
}

// Close implements replay.Buffer.
func (m *mixed) Close() error { return errors.Join(m.Uniform.Close(), m.data.Close()) }
