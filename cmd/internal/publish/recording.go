package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"onnxrl/agents"
	"onnxrl/agents/served"
	"onnxrl/envs"
	"onnxrl/export/bake"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// Recording draws blocks of observations from a factory's environments, in which a model and chance act in turns, as a publication does. It is not safe for concurrent use.
type Recording struct {
	market market
	env    envs.Env
	actor  *served.Actor
	rows   *recorder
	key    rng.Key
	block  int
}

// NewRecording joins a published model to environments; size is the number of rows of a block, at least 8. Blocks are the same for the same model, seed and size. Close it before compiler and factory.
func NewRecording(ctx context.Context, f envs.Factory, m *onnx.Model, c engine.Compiler, seed uint64, size int) (_ *Recording, err error) {
	r := &Recording{key: rng.New(seed).Split("export")}
	defer func() {
		if err != nil {
			err = fmt.Errorf("record observations: %w", errors.Join(err, r.Close()))
		}
	}()
	if size < 2*stretches {
		return nil, fmt.Errorf("blocks of %d rows, expected at least %d", size, 2*stretches)
	}
	if r.market, err = newMarket(f); err != nil {
		return nil, err
	}
	if r.env, err = recorded(f); err != nil {
		return nil, err
	}
	policy, err := served.New(ctx, m, c, 1)
	if err != nil {
		return nil, err
	}
	_, scales := m.Meta(bake.MetaScales)
	if !scales {
		r.market.tables, r.market.scalings = nil, nil
	}
	inputs := slices.Clone(policy.Inputs())
	if r.actor, err = served.NewActor(policy, r.env.Spec(), served.Options{Tables: r.market.tables}); err != nil {
		return nil, errors.Join(err, policy.Close())
	}
	r.rows, err = newRecorder(r.env.Spec(), inputs, r.market.tables, size)
	return r, err
}

// recorded makes the environment that observations are recorded in; data may have no range to validate on.
func recorded(f envs.Factory) (e envs.Env, err error) {
	for _, split := range []envs.Split{envs.Valid, envs.Train} {
		if e, err = f.New(split, 0); err == nil {
			break
		}
	}
	return e, err
}

// Inputs names what a block consists of, in order.
func (r *Recording) Inputs() []string { return r.rows.inputs }

// Wrappers are what the model does itself around the network in training.
func (r *Recording) Wrappers() []bake.Wrapper { return r.market.wrappers() }

// Choices says which of the outputs are choices, with scores.
func (r *Recording) Choices(outputs []string) []bake.Choice {
	return choicesOf(r.env.Spec(), outputs)
}

// Next records a block: the rows as the environment shows them, and as the model takes them where that differs, else nil. They are valid until the next call.
func (r *Recording) Next() (shown, unscaled []*tensor.Tensor, err error) {
	key := r.key.Split("block", r.block)
	r.block++
	if err := r.rows.record(r.env, r.actor, key); err != nil {
		return nil, nil, err
	}
	return r.rows.samples, r.rows.unscaled, nil
}

// Close frees model and environment.
func (r *Recording) Close() error {
	var errs []error
	if r.actor != nil {
		errs = append(errs, r.actor.Close())
	}
	if r.env != nil {
		errs = append(errs, r.env.Close())
	}
	return errors.Join(errs...)
}

// headsKey is the metadata key, below bake.MetaPrefix, with the numbers of alternatives of the action's heads, separated by commas.
const headsKey = "heads"

func headsText(h []int) string {
	text := make([]string, len(h))
	for i, n := range h {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ",")
}

// Choices says which outputs of a published model are choices, by its metadata; none where they do not tell.
func Choices(m *onnx.Model) ([]bake.Choice, error) {
	text, ok := m.Meta(bake.MetaPrefix + headsKey)
	if !ok {
		return nil, nil
	}
	c := bake.Choice{Output: agents.ActionOutput, Scores: agents.LogProbsOutput}
	for n := range strings.SplitSeq(text, ",") {
		k, err := strconv.Atoi(n)
		if err != nil || k < 1 {
			return nil, fmt.Errorf("metadata %s%s is %q, expected numbers of alternatives separated by commas", bake.MetaPrefix, headsKey, text)
		}
		c.Heads = append(c.Heads, k)
	}
	if !slices.ContainsFunc(m.Graph.Output, func(v *onnx.ValueInfo) bool { return v.Name == c.Scores }) {
		return nil, nil
	}
	return []bake.Choice{c}, nil
}

// choicesOf are the actions of discrete spaces, where the network tells their log-probabilities.
func choicesOf(spec envs.Spec, outputs []string) []bake.Choice {
	h := heads(spec.Action)
	if h == nil || !slices.Contains(outputs, agents.LogProbsOutput) {
		return nil
	}
	return []bake.Choice{{Output: agents.ActionOutput, Scores: agents.LogProbsOutput, Heads: h}}
}
