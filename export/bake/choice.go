package bake

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Margin is how far apart the two best scores of a choice must be for the baked model to have to
// make the same one: rounding may turn a closer choice either way.
const Margin = 1e-4

// MaxTies is the largest accepted share of closer choices.
const MaxTies = 0.01

// ErrTies is wrapped by the error for a network that is undecided in more choices than MaxTies.
var ErrTies = errors.New("too many choices are nearly tied")

// Choice says that an output is, for each of several heads, the place of the best of the head's
// scores, from Start on, which are another output.
type Choice struct {
	// Output is int64, int32 or bool, [batch, heads], or [batch] for one head.
	Output string
	// Scores is float32 [batch, Σ Heads], such as log-probabilities: those of the heads one after
	// the other.
	Scores string
	// Heads are the numbers of alternatives.
	Heads []int
	// Start is the first alternative of each head as the output has it; nil is 0 for all.
	Start []int64
}

// choice is a Choice with its scores as the number of an output.
type choice struct {
	heads  []int
	scores int
}

// choose checks a choice against the outputs of the trained form.
func (v *Prover) choose(c Choice, outputs []engine.Port) error {
	find := func(name string) int {
		return slices.IndexFunc(outputs, func(p engine.Port) bool { return p.Name == name })
	}
	at, scores := find(c.Output), find(c.Scores)
	if at < 0 || scores < 0 {
		return fmt.Errorf("choice %q by %q: the network's outputs are %v", c.Output, c.Scores, outputs)
	}
	total := 0
	for _, n := range c.Heads {
		if n < 1 {
			return fmt.Errorf("choice %q: heads of %v alternatives", c.Output, c.Heads)
		}
		total += n
	}
	a, s := outputs[at], outputs[scores]
	whole := a.DType == tensor.Int64 || a.DType == tensor.Int32 || a.DType == tensor.Bool
	if !whole || s.DType != tensor.Float32 || per(a.Shape) != len(c.Heads) || per(s.Shape) != total {
		return fmt.Errorf("choice %q by %q: they are %v and %v, heads of %v alternatives need whole numbers [batch %d] and float32[batch %d]", c.Output, c.Scores, a, s, c.Heads, len(c.Heads), total)
	}
	v.choices[at] = choice{heads: c.Heads, scores: scores}
	return nil
}

// per returns the number of elements of a row.
func per(shape []int) int {
	n := 1
	for _, d := range shape[min(1, len(shape)):] {
		n *= d
	}
	return n
}

// choices compares what was chosen. Scores are the trained form's.
func (r *Report) choices(c choice, want, got *tensor.Tensor, scores []float32, e ParityError, place func(row int) int) error {
	heads := len(c.heads)
	at := 0
	for k := range want.Len() {
		n := c.heads[k%heads]
		tied := margin(scores[at:at+n]) <= Margin
		at += n
		r.Choices++
		if tied {
			r.Ties++
		}
		w, g := index(want, k), index(got, k)
		if w == g {
			continue
		}
		if !tied {
			e.Row, e.Want, e.Got = place(k/heads), float64(w), float64(g)
			return &e
		}
		r.Changed++
	}
	return nil
}

// margin returns how much the best score exceeds the second best; a single score has no rival and
// no margin to fall short of.
func margin(scores []float32) float64 {
	if len(scores) == 1 {
		return 1
	}
	best, second := scores[0], scores[1]
	if second > best {
		best, second = second, best
	}
	for _, s := range scores[2:] {
		if s > best {
			best, second = s, best
		} else if s > second {
			second = s
		}
	}
	return float64(best) - float64(second)
}

func index(t *tensor.Tensor, k int) int {
	switch t.DType() {
	case tensor.Bool:
		if t.Bools()[k] {
			return 1
		}
		return 0
	case tensor.Int32:
		return int(t.Int32s()[k])
	}
	return int(t.Int64s()[k])
}

// checkTies refuses a network that is undecided too often.
func (r *Report) checkTies(allow bool) error {
	if allow || float64(r.Ties) <= MaxTies*float64(r.Choices) {
		return nil
	}
	return fmt.Errorf("prove parity: %w: in %d of %d the two best scores are less than %g apart, and %d were made differently; more than %g %% must be allowed explicitly", ErrTies, r.Ties, r.Choices, Margin, r.Changed, 100*MaxTies)
}

// LeastMargin returns the smallest margin among the heads of one row of scores: how decided the row
// is.
func LeastMargin(scores []float32, heads []int) float64 {
	least, at := 1.0, 0
	for _, n := range heads {
		least = min(least, margin(scores[at:at+n]))
		at += n
	}
	return least
}
