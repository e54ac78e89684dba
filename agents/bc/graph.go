package bc

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Inputs and outputs of the graphs, beside those of package agents.
const (
	actionInput = "bc.action"
	// weightInput [batch, ensemble] weighs each row of each policy in a mean.
	weightInput = "bc.weight"
	// UncertaintyOutput is float32 [batch], of an ensemble: by how much its policies disagree.
	UncertaintyOutput = "uncertainty"
)

// design draws the networks of an agent.
type design struct {
	*offpolicy.Networks
	c Config
	// values are the initial ones of the policy's parameters.
	values map[string]*tensor.Tensor
}

// newDesign draws every network of an agent.
func newDesign(c Config, f *network.Frame, kinds []encoder.Kind, key rng.Key) (*design, error) {
	if box, ok := f.Spec.Action.(envs.Box); ok && (!box.Bounded() || !box.Of.IsFloat()) {
		return nil, fmt.Errorf("the actions of %s are %v; BC chooses actions in a box of finite bounds, of float32 or float64, or discrete ones", f.Spec.Name, box)
	}
	n, err := offpolicy.NewNetworks(c.Config, f, kinds, key)
	if err != nil {
		return nil, err
	}
	d := &design{Networks: n, c: c}
	for _, add := range []func() error{d.addPolicy, d.addAct, d.addTrain} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// member appends one policy: actions in [−1, 1], [batch, A], or a distribution.
func (d *design) member(a *layer.Graph, in network.Inputs) (onnx.Value, *network.Categorical, error) {
	f := d.Frame
	var z network.Features
	if d.Acting.HasPolicy() {
		x, err := d.Acting.Policy(a, in, f.Parameters())
		if err != nil {
			return "", nil, err
		}
		if f.Continuous() {
			return a.Activate("tanh", x), nil, a.Err()
		}
		z.Given = x
	} else {
		var err error
		if z, err = d.Acting.Build(a, in); err != nil {
			return "", nil, err
		}
		z = d.Hidden(a, z, d.c.Hidden, d.c.Activation)
		if f.Continuous() {
			return a.Activate("tanh", d.Component(a, "action", z)), nil, a.Err()
		}
		if f.Assets == 0 {
			z.Pooled = z.PerAsset
		}
	}
	return "", network.NewCategorical(a, f, z, in.Mask, layer.LinearDefault()), a.Err()
}

// members appends all policies: actions in [−1, 1], or distributions.
func (d *design) members(l *layer.Graph, in network.Inputs) (actions []onnx.Value, dists []*network.Categorical, _ error) {
	for k := range d.c.Ensemble {
		g := l.In(offpolicy.ActorScope)
		if d.c.Ensemble > 1 {
			g = g.In(fmt.Sprintf("m%d", k+1))
		}
		x, c, err := d.member(g, in)
		if err != nil {
			return nil, nil, err
		}
		if c == nil {
			actions = append(actions, x)
		} else {
			dists = append(dists, c)
		}
	}
	return actions, dists, nil
}

// spread appends mean and standard deviation over the policies.
func spread(l *layer.Graph, x []onnx.Value) (mean, std onnx.Value) {
	mean = x[0]
	for _, y := range x[1:] {
		mean = l.Add(mean, y)
	}
	mean = l.Scale(mean, 1/float64(len(x)))
	for _, y := range x {
		if square := l.Square(l.Sub(y, mean)); std == "" {
			std = square
		} else {
			std = l.Add(std, square)
		}
	}
	return mean, l.Op("Sqrt", []onnx.Value{l.Scale(std, 1/float64(len(x)))})
}

// choose appends what all policies together choose: the action in [−1, 1], or the log-probabilities
// of all actions and what the best one has most of; and, of an ensemble, the uncertainty.
func (d *design) choose(l *layer.Graph, in network.Inputs) (action, logProbs, score, uncertainty onnx.Value, _ error) {
	actions, dists, err := d.members(l, in)
	if err != nil {
		return "", "", "", "", err
	}
	kappa := d.c.UncertaintyPenalty
	switch {
	case len(dists) == 1:
		return "", dists[0].LogProbs, dists[0].LogProbs, "", nil
	case len(actions) == 1:
		return actions[0], "", "", "", nil
	case len(actions) > 1:
		m, s := spread(l, actions)
		return l.Div(m, l.Shift(l.Scale(s, kappa), 1)), "", "", l.Mean(s, 1), l.Err()
	}
	var probs []onnx.Value
	for _, c := range dists {
		probs = append(probs, l.Exp(c.LogProbs))
	}
	m, s := spread(l, probs)
	score = l.Sub(m, l.Scale(s, kappa))
	// The logarithm of the least number that there is stands for that of 0.
	logProbs = l.Op("Log", []onnx.Value{l.Max(m, l.Float(1.2e-38))})
	if in.Mask != "" {
		score = l.Where(in.Mask, score, l.Float(head.Excluded))
		logProbs = l.Where(in.Mask, logProbs, l.Float(head.Excluded))
	}
	return "", logProbs, score, l.Mean(s, 1), l.Err()
}

// outputs makes what is chosen outputs of a graph.
func (d *design) outputs(l *layer.Graph, whole bool) error {
	in := d.Acting.Inputs(l, "")
	action, logProbs, score, uncertainty, err := d.choose(l, in)
	if err != nil {
		return err
	}
	if action != "" {
		d.OutputBox(l, agents.ActionOutput, action)
	} else {
		if whole {
			l.Output(agents.ActionOutput, d.mode(l, score))
		}
		l.Output(agents.LogProbsOutput, logProbs)
		if !whole && d.c.Ensemble > 1 {
			l.Output(offpolicy.ScoreOutput, score)
		}
	}
	if whole && uncertainty != "" {
		l.Output(UncertaintyOutput, uncertainty)
	}
	return l.Err()
}

// mode appends the element of the action space that has most of a score.
func (d *design) mode(l *layer.Graph, score onnx.Value) onnx.Value {
	var heads []onnx.Value
	for _, x := range l.Split(score, 1, d.Frame.Heads...) {
		heads = append(heads, l.Op("ArgMax", []onnx.Value{x}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 1)))
	}
	all := heads[0]
	if len(heads) > 1 {
		all = l.Concat(1, heads...)
	}
	switch {
	case d.Frame.Discrete():
		return l.Squeeze(all, 1)
	case d.Frame.Spec.Action.DType() == tensor.Bool:
		return l.Op("Cast", []onnx.Value{all}, onnx.AttrInt("to", int(tensor.Bool)))
	}
	return all
}

// addPolicy adds the network that is exported, and finds all parameters.
func (d *design) addPolicy() error {
	l := d.Graph("policy")
	if err := d.outputs(l, true); err != nil {
		return err
	}
	var err error
	if d.Policy, d.values, err = l.Network(d.c.Options); err != nil {
		return err
	}
	d.Specs = d.Policy.Specs
	l = layer.New("dropout", rng.Key{}, layer.Options{Training: true})
	if _, _, err := d.members(l, d.Acting.Inputs(l, "")); err != nil {
		return err
	}
	if masks := l.Masks(); len(masks) > 0 {
		return fmt.Errorf("dropout of %g is not supported by BC; set it to 0", masks[0].Ratio)
	}
	return nil
}

// addAct adds the network of acting. Drawing is cheaper in Go.
func (d *design) addAct() (err error) {
	l := d.Graph("act")
	if err := d.outputs(l, false); err != nil {
		return err
	}
	d.Act, err = d.Over(l)
	return err
}

// bounds are the least and the greatest of each component, as the configuration's field has them;
// absent where it names none.
func (d *design) bounds(l *layer.Graph, in network.Inputs) (low, high onnx.Value, err error) {
	name, f := d.c.Bounds, d.Frame
	if name == "" {
		return "", "", nil
	}
	if !f.Continuous() {
		return "", "", fmt.Errorf("bounds: %q: actions of %s are %v, expected a box", name, f.Spec.Name, f.Spec.Action)
	}
	i := f.Spec.Observation.Index(name)
	if i < 0 {
		return "", "", fmt.Errorf("bounds: %s has no field %q in its observation", f.Spec.Name, name)
	}
	if s := f.Spec.Observation[i].Space; s.DType() != tensor.Float32 || !slices.Equal(s.Shape(), []int{2 * f.Dims}) {
		return "", "", fmt.Errorf("bounds: the field %q is %v, expected float32 [%d], the least and the greatest of each of %d components", name, s, 2*f.Dims, f.Dims)
	}
	x := in.Obs[i]
	if x == "" {
		x = l.Observation(name, 2*f.Dims)
	}
	parts := l.Split(x, 1, f.Dims, f.Dims)
	return parts[0], parts[1], l.Err()
}

// addTrain adds the loss, summed up over policies.
func (d *design) addTrain() error {
	l, f := d.Graph("train"), d.Frame
	in := d.Acting.Inputs(l, "")
	actions, dists, err := d.members(l, in)
	if err != nil {
		return err
	}
	dtype, shape := f.Stored()
	taken := l.Batched(actionInput, dtype, shape...)
	var all []onnx.Value
	low, high, err := d.bounds(l, in)
	if err != nil {
		return err
	}
	for _, x := range actions {
		each := l.Mean(l.Square(l.Sub(x, taken)), 1)
		if low != "" {
			beyond := l.Sub(x, l.Min(l.Max(x, low), high))
			each = l.Add(each, l.Scale(l.Mean(l.Square(beyond), 1), d.c.BoundsPenalty))
		}
		all = append(all, each)
	}
	for _, c := range dists {
		square, count := l.Square(c.LogProbs), l.Float(float64(f.MaskLen()))
		if in.Mask != "" {
			square = l.Where(in.Mask, square, l.Float(0))
			count = l.Sum(l.Op("Cast", []onnx.Value{in.Mask}, onnx.AttrInt("to", int(tensor.Float32))), 1)
		}
		all = append(all, l.Sub(l.Scale(l.Div(l.Sum(square, 1), count), d.c.Beta), c.LogProb(taken)))
	}
	weights := l.Observation(weightInput, d.c.Ensemble)
	for k, x := range all {
		all[k] = l.Unsqueeze(x, 1)
	}
	rows := all[0]
	if len(all) > 1 {
		rows = l.Concat(1, all...)
	}
	l.Output(offpolicy.LossOutput, l.Dot(weights, rows))
	d.Actor, err = d.Over(l)
	return err
}
