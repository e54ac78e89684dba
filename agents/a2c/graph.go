package a2c

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Inputs and outputs of the graphs that learn, beside observations and mask.
const (
	actionsInput = "a2c.actions"
	returnsInput = "a2c.returns"
	// The weights of a sample in the three terms of the loss, signs and coefficients included; see
	// loss.
	policyWeight  = "a2c.policy_weight"
	valueWeight   = "a2c.value_weight"
	entropyWeight = "a2c.entropy_weight"

	// rowsInput and featuresName are the values of the encoder alone: rows [series, L, F] and the
	// features of windows, one name for each encoder.
	rowsInput    = "a2c.rows"
	featuresName = "a2c.features"
)

// graphs are the networks of an agent. Act, Learn and Evaluate read observations or, where these
// have windows of a table, the features of each window.
type graphs struct {
	onpolicy.Networks
	// encode computes the features of chunk consecutive windows, and encodeGrad is the same with
	// the features' cotangents as inputs; nil without windows of a table. chunk is 1 unless
	// overlapping windows are encoded together.
	encode, encodeGrad *models.Network
	chunk              int
	// alone says why chunk is 1; nil when that is what the configuration asks for.
	alone error
	// dropped says that the encoder has dropout: what it makes of a window is then another thing in
	// each environment, and is computed with the rest of the network.
	dropped bool
	// features names the outputs of encode, width is that of each.
	features []string
	width    int
}

// design builds graphs.
type design struct {
	c Config
	f *network.Frame
	// torso is the critic's, acting the actor's, which reads no privileged fields.
	torso, acting *network.Torso
	encoder       encoder.Encoder
}

// newGraphs builds every network of an agent.
func newGraphs(c Config, f *network.Frame, kinds []encoder.Kind, key rng.Key) (*graphs, error) {
	g := &graphs{Networks: onpolicy.NewNetworks(f, key)}
	d := &design{c: c, f: f}
	gain := c.HiddenGain
	if gain == 0 {
		gain = layer.Gain(c.Activation)
	}
	var err error
	if d.torso, err = network.NewTorso(c.network(), f, kinds, onpolicy.Orthogonal(c.OrthoInit, gain)); err != nil {
		return nil, err
	}
	if d.acting, err = d.torso.Acting(); err != nil {
		return nil, err
	}
	if d.acting.Frame().Series != f.Series {
		return nil, fmt.Errorf("privileged: %q is a window, which A2C's actor and critic both read", f.Spec.Observation[f.Series].Name)
	}
	d.encoder = d.torso.Encoder()
	p := g.Graph("policy")
	dist, value, err := d.heads(p, nil)
	if err != nil {
		return nil, err
	}
	p.Output(agents.ActionOutput, dist.Mode())
	dist.Output()
	p.Output(agents.ValueOutput, value)
	if err := g.Complete(p, c.Options, func(l *layer.Graph) error { _, _, err := d.heads(l, nil); return err }); err != nil {
		return nil, err
	}
	if len(c.Privileged) > 0 {
		p := g.Graph("policy")
		in, actor := d.acting.Inputs(p, ""), p.In(onpolicy.ActorScope)
		z, err := d.acting.Build(actor, in)
		if err != nil {
			return nil, err
		}
		if err := g.Export(p, d.distribution(actor, in, z), func() {}); err != nil {
			return nil, err
		}
	}
	if f.Window() != nil {
		if g.dropped, err = d.dropped(); err != nil {
			return nil, err
		}
	}
	var sharer encoder.Sharer
	if c.ShareWindows != Off {
		if sharer, g.alone = d.sharer(); g.dropped {
			g.alone = errors.New("the encoder has dropout, drawn for each environment")
		}
		if g.alone != nil && c.ShareWindows == On {
			return nil, fmt.Errorf("share_windows: on: %w", g.alone)
		}
	}
	var features []int
	if f.Window() != nil && !g.dropped {
		if err := d.addEncoder(g, sharer); err != nil {
			return nil, err
		}
		features = []int{g.width}
	}
	if err := d.addAct(g, features); err != nil {
		return nil, err
	}
	if c.Correction == VTrace {
		if err := d.addEvaluate(g, features); err != nil {
			return nil, err
		}
	}
	return g, d.addTrain(g, features)
}

// sharer returns the encoder when it can encode overlapping windows together, or an error that says
// why it cannot.
func (d *design) sharer() (encoder.Sharer, error) {
	w := d.f.Window()
	if w == nil {
		return nil, errors.New("the observation is not a window of a table")
	}
	s, ok := d.encoder.(encoder.Sharer)
	if !ok {
		return nil, errors.New("the encoder looks at each window as a whole")
	}
	if err := s.Shares(w.Len()); err != nil {
		return nil, err
	}
	return s, nil
}

// dropped reports whether encoders of windows have dropout.
func (d *design) dropped() (bool, error) {
	g := layer.New("encode", rng.Key{}, layer.Options{Training: true})
	_, features := columns(d.f)
	rows := g.Observation(rowsInput, d.f.Window().Len(), features)
	for _, b := range d.branches(g) {
		if _, err := d.torso.EncodeBy(b, rows, d.encoder.Build); err != nil {
			return false, fmt.Errorf("encoder: %w", err)
		}
	}
	return len(g.Masks()) > 0, g.Err()
}

// branches returns the scopes of encoders and what follows: the graph's own when actor and critic
// share them, else one for each; the critic's alone where the policy is user-supplied.
func (d *design) branches(g *layer.Graph) []*layer.Graph {
	if d.torso.HasPolicy() {
		return []*layer.Graph{g.In(onpolicy.CriticScope)}
	}
	if d.c.Encoders == Separate {
		return []*layer.Graph{g.In(onpolicy.ActorScope), g.In(onpolicy.CriticScope)}
	}
	return []*layer.Graph{g}
}

// featureNames returns the names of the features of each branch.
func (d *design) featureNames() []string {
	if d.c.Encoders == Separate && !d.torso.HasPolicy() {
		return []string{featuresName + ".actor", featuresName + ".critic"}
	}
	return []string{featuresName}
}

// heads appends the network from its inputs to the policy's distribution and the value [batch].
// With features, which has the width of an encoder's result, the encoder is left out and its
// results are inputs.
func (d *design) heads(g *layer.Graph, features []int) (network.Distribution, onnx.Value, error) {
	in := network.Inputs{Obs: make([]onnx.Value, len(d.f.Spec.Observation))}
	for i, field := range d.f.Spec.Observation {
		if !d.torso.Frame().Reads(i) {
			continue
		}
		// A user-supplied policy reads windows themselves.
		if i != d.f.Series || features == nil || d.torso.PolicyReads(i) {
			in.Obs[i] = g.Batched(field.Name, field.Space.DType(), field.Space.Shape()...)
		}
	}
	if d.f.Spec.Masked {
		in.Mask = g.Batched(agents.MaskInput, tensor.Bool, d.f.MaskLen())
	}
	var forActor, forCritic network.Features
	for i, b := range d.branches(g) {
		torso := d.torso
		if i == 0 {
			torso = d.acting
		}
		var z onnx.Value
		var err error
		if features == nil {
			z, err = torso.Encode(b, in)
		} else {
			shape := features
			if n := d.f.Assets + d.f.Among; n > 0 {
				shape = []int{n, features[0]}
			}
			z = g.Observation(d.featureNames()[i], shape...)
		}
		if err == nil {
			forCritic, err = torso.Finish(b, in, z)
		}
		if err != nil {
			return nil, "", err
		}
		if i == 0 {
			forActor = forCritic
		}
	}
	if d.torso.HasPolicy() {
		var err error
		if forActor, err = d.torso.PolicyFeatures(g.In(onpolicy.ActorScope), in, d.c.UseSDE, d.f.Parameters()); err != nil {
			return nil, "", err
		}
	}
	dist := d.distribution(g.In(onpolicy.ActorScope), in, forActor)
	value := head.Value(g.In(onpolicy.CriticScope), forCritic.Pooled, onpolicy.Orthogonal(d.c.OrthoInit, 1))
	return dist, value, g.Err()
}

func (d *design) distribution(actor *layer.Graph, in network.Inputs, z network.Features) network.Distribution {
	return network.NewDistribution(actor, d.f, z, in.Mask, d.c.Exploration, onpolicy.Orthogonal(d.c.OrthoInit, 0.01))
}

// addAct adds the network of acting.
func (d *design) addAct(g *graphs, features []int) error {
	a := g.Training("act")
	dist, value, err := d.heads(a, features)
	if err != nil {
		return err
	}
	dist.Acting()
	a.Output(agents.ValueOutput, value)
	g.Act, err = g.Over(a)
	return err
}

// addTrain adds the network of learning. Its loss is
//
//	Σ policy_weight·log π(a|s) + value_weight·(V(s) − G)² + entropy_weight·H(π(·|s))
//
// where log π and H are sums over the heads. Advantages are in the weights and G is an input, so no
// gradient flows through them.
func (d *design) addTrain(g *graphs, features []int) error {
	t := g.Training("train")
	dist, value, err := d.heads(t, features)
	if err != nil {
		return err
	}
	dtype, shape := d.f.Stored()
	logProb, entropy := dist.LogProb(t.Batched(actionsInput, dtype, shape...)), dist.Entropy()
	square := t.Square(t.Sub(value, t.Observation(returnsInput)))
	loss := t.Add(t.Add(t.Dot(t.Observation(policyWeight), logProb), t.Dot(t.Observation(valueWeight), square)), t.Dot(t.Observation(entropyWeight), entropy))
	t.Output(onpolicy.LossOutput, loss)
	t.Output(onpolicy.LogProbOutput, logProb)
	t.Output(onpolicy.EntropyOutput, entropy)
	t.Output(agents.ValueOutput, value)
	g.Stops = dist.Stops()
	g.Learn, err = g.Over(t)
	return err
}

// addEvaluate adds the network that a correction needs.
func (d *design) addEvaluate(g *graphs, features []int) error {
	e := g.Training("evaluate")
	dist, value, err := d.heads(e, features)
	if err != nil {
		return err
	}
	dtype, shape := d.f.Stored()
	e.Output(onpolicy.LogProbOutput, dist.LogProb(e.Batched(actionsInput, dtype, shape...)))
	e.Output(agents.ValueOutput, value)
	g.Evaluate, err = g.Over(e)
	return err
}

// addEncoder adds the networks of the encoder alone, whose batch is the series of a chunk of rows:
// assets are independent of each other there, and so they can be split over cores.
func (d *design) addEncoder(g *graphs, s encoder.Sharer) error {
	w := d.f.Window()
	_, features := columns(d.f)
	if g.chunk = 1; s != nil {
		// A rollout and the observation after it, or all windows there are.
		g.chunk = min(d.c.NSteps+1, w.Table().Shape()[0]-w.Len()+1)
	}
	g.features = d.featureNames()
	for _, grad := range []bool{false, true} {
		e := g.Graph("encode")
		rows := e.Observation(rowsInput, g.chunk+w.Len()-1, features)
		var loss onnx.Value
		for i, b := range d.branches(e) {
			z, err := d.torso.EncodeBy(b, rows, func(g *layer.Graph, x onnx.Value) (onnx.Value, error) { return d.encode(g, s, x, w.Len()) })
			if err != nil {
				return fmt.Errorf("encoder: %w", err)
			}
			g.width = e.Extent(z, -1)
			if !grad {
				e.Output(g.features[i], z)
				continue
			}
			term := e.Dot(e.Observation(g.features[i], g.chunk, g.width), z)
			if loss != "" {
				term = e.Add(loss, term)
			}
			loss = term
		}
		dst := &g.encode
		if grad {
			e.Output(onpolicy.LossOutput, loss)
			dst = &g.encodeGrad
		}
		var err error
		if *dst, err = g.Over(e); err != nil {
			return err
		}
	}
	return nil
}

// encode appends the encoder over rows [batch, L, F] and returns the features of their windows,
// [batch, chunk, D].
func (d *design) encode(g *layer.Graph, s encoder.Sharer, rows onnx.Value, window int) (onnx.Value, error) {
	if s != nil {
		return s.BuildShared(g, rows, window)
	}
	z, err := d.encoder.Build(g, rows)
	if err != nil {
		return "", err
	}
	return g.Unsqueeze(z, 1), g.Err()
}

// columns returns the number of independent series in a row of the table of windows, and of
// features in each.
func columns(f *network.Frame) (series, features int) {
	shape := f.Spec.Observation[f.Series].Space.Shape()
	return max(f.Assets+f.Among, 1), shape[len(shape)-1]
}
