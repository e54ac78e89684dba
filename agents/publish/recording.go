package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Recording draws blocks of observations from a factory's environments, in which a model and chance
// act in turns, as a publication does. It is not safe for concurrent use.
type Recording struct {
	preprocessing preprocessing
	env           envs.Env
	actor         *served.Actor
	normal        []wrap.Normalizer
	rows          *recorder
	key           rng.Key
	block         int
	// lost says that the environment does not answer: it and the actor are not freed.
	lost bool
}

// Block is some recorded observations, by input. It is valid until the next one is recorded.
type Block struct {
	Inputs []string
	// Shown are the rows as the network in training is given them, and Taken as the model takes
	// them, nil where that is the same.
	Shown, Taken []*tensor.Tensor
	// Begins marks the rows that begin an episode, of a model that remembers; nil of others.
	Begins []bool
}

// NewRecording joins a published model to environments; size is the number of rows of a block, at
// least 8, and more where a model that remembers needs them for an episode. Blocks are the same for
// the same model, seed and size. Close it before compiler and factory.
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
	if r.env, err = openEnv(f); err != nil {
		return nil, err
	}
	if r.preprocessing, err = newPreprocessing(f, r.env); err != nil {
		return nil, err
	}
	policy, err := served.New(ctx, m, c, 1)
	if err != nil {
		return nil, err
	}
	if _, scales := m.Meta(bake.MetaScales); !scales {
		r.preprocessing.Tables, r.preprocessing.Scalings = nil, nil
	}
	var inputs []string
	for _, name := range policy.Inputs() {
		if name != bake.NoiseInput && !policy.Remembers(name) {
			inputs = append(inputs, name)
		}
	}
	if r.actor, err = served.NewActor(policy, r.preprocessing.spec, r.preprocessing.options()); err != nil {
		return nil, errors.Join(err, policy.Close())
	}
	states, err := models.States(m)
	if err != nil {
		return nil, err
	}
	r.rows, err = newRecorder(&r.preprocessing, len(states) > 0, inputs, nil, size)
	return r, err
}

// Normalize says how observations reach the network in training, from the next block on.
func (r *Recording) Normalize(list []wrap.Normalizer) error {
	rows, err := newRecorder(&r.preprocessing, r.rows.remembers, r.rows.inputs, list, r.rows.size)
	if err == nil {
		r.normal, r.rows = list, rows
	}
	return err
}

// Pair is a network in training and the model m that must equal it, without the rows, with choices
// by outputs.
func (r *Recording) Pair(net *models.Network, params *models.Params, m *onnx.Model) (bake.Pair, error) {
	p := bake.Pair{Network: net, Params: params, Baked: m, Actions: r.preprocessing.actions(), Choices: choicesOf(r.preprocessing.spec, net.Outputs)}
	var err error
	p.Memory, err = models.NamedStates(net.Model.Graph)
	return p, err
}

// Bake returns the policy that a network in training becomes in the recording's environments.
func (r *Recording) Bake(net *models.Network, params *models.Params) (*onnx.Model, error) {
	states, err := models.NamedStates(net.Model.Graph)
	if err != nil {
		return nil, err
	}
	return r.preprocessing.bake(net, params, states, r.normal)
}

// Inputs names what a block consists of, in order.
func (r *Recording) Inputs() []string { return r.rows.inputs }

// Choices says which of the outputs are choices, with scores.
func (r *Recording) Choices(outputs []string) []bake.Choice {
	return choicesOf(r.preprocessing.spec, outputs)
}

// Next records a block.
func (r *Recording) Next(ctx context.Context) (Block, error) {
	key := r.key.Split("block", r.block)
	r.block++
	if err := collect(ctx, r.rows, r.env, r.actor, key); err != nil {
		r.lost = errors.Is(err, errNoAnswer)
		return Block{}, err
	}
	return Block{r.rows.inputs, r.rows.samples, r.rows.unscaled, r.rows.begins}, nil
}

// Close frees model and environment.
func (r *Recording) Close() error {
	if r.lost {
		return nil
	}
	var errs []error
	if r.actor != nil {
		errs = append(errs, r.actor.Close())
	}
	if r.env != nil {
		errs = append(errs, r.env.Close())
	}
	return errors.Join(errs...)
}

// headsKey is the metadata key, below bake.MetaPrefix, with the numbers of alternatives of the
// action's heads, separated by commas.
const headsKey = "heads"

func headsText(h []int) string {
	text := make([]string, len(h))
	for i, n := range h {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ",")
}

// Choices says which outputs of a published model are choices, by its metadata; none where they do
// not tell.
func Choices(m *onnx.Model) ([]bake.Choice, error) {
	text, ok := m.Meta(bake.MetaPrefix + headsKey)
	if !ok {
		return nil, nil
	}
	c := bake.Choice{Output: agents.ActionOutput}
	for n := range strings.SplitSeq(text, ",") {
		k, err := strconv.Atoi(n)
		if err != nil || k < 1 {
			return nil, fmt.Errorf("metadata %s%s is %q, expected numbers of alternatives separated by commas", bake.MetaPrefix, headsKey, text)
		}
		c.Heads = append(c.Heads, k)
	}
	text, _ = m.Meta(artifact.SpacesKey)
	spaces, err := artifact.ParseSpaces(text)
	if err != nil {
		return nil, err
	}
	c.Start = spaces.Outputs[c.Output].Start
	var outputs []string
	for _, v := range m.Graph.Output {
		outputs = append(outputs, v.Name)
	}
	if c.Scores = scores(outputs); c.Scores == "" {
		return nil, nil
	}
	return []bake.Choice{c}, nil
}

// scores is the output by which actions are chosen: their log-probabilities, or their values; empty
// where the network does not tell.
func scores(outputs []string) string {
	for _, name := range []string{agents.LogProbsOutput, agents.QValuesOutput} {
		if slices.Contains(outputs, name) {
			return name
		}
	}
	return ""
}

// choicesOf are the actions of discrete spaces, where the network tells what they are chosen by.
func choicesOf(spec envs.Spec, outputs []string) []bake.Choice {
	h := envs.Heads(spec.Action)
	by := scores(outputs)
	if h == nil || by == "" {
		return nil
	}
	return []bake.Choice{{Output: agents.ActionOutput, Scores: by, Heads: h, Start: envs.Starts(spec.Action)}}
}
