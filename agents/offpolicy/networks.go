package offpolicy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Inputs and outputs of the graphs that learn, beside observations and masks.
const (
	// NextPrefix precedes the names of the fields of obs_t.
	NextPrefix = "next."
	// actionInput is a_tm1: float32 [batch, A] in [−1, 1], or int64 [batch].
	actionInput = "learner.action"
	// NoiseInput is the noise of an action; every graph that has it is given noise of its own.
	NoiseInput = "learner.noise"
	// TargetInput [batch] is what the critics learn, WeightInput [batch] the weight of each row in
	// a mean.
	TargetInput = "learner.target"
	WeightInput = "learner.weight"

	// LossOutput is the number that a graph's own side goes down.
	LossOutput = "loss"
	// QOutput is the least of the critics' values of obs_t, [batch], or [batch, n] for Discrete
	// actions.
	QOutput = "q"

	// ScoreOutput [batch, envs.MaskLen] is what the best action has most of, of each head, where
	// that is not its probability.
	ScoreOutput = "score"
)

// The scopes of parameters. Those below TargetScope follow those of the same name without it.
const (
	ActorScope  = "actor"
	CriticScope = "critic"
	TargetScope = "target"
)

// Below reports whether a parameter lies in a scope.
func Below(name, scope string) bool { return strings.HasPrefix(name, scope+".") }

// Least appends the smallest of values of the same shape, element by element.
func Least(g *layer.Graph, values []onnx.Value) onnx.Value {
	m := values[0]
	for _, x := range values[1:] {
		m = g.Min(m, x)
	}
	return m
}

// Networks are the networks of an actor-critic, all over the same parameters.
type Networks struct {
	Frame *network.Frame
	// Torso is the critics', Acting the actor's, which reads no privileged fields.
	Torso, Acting *network.Torso
	// Specs are all parameters, those of target networks last.
	Specs []models.Spec
	// Policy is complete and exported; Act is what actors need of it.
	Policy, Act *models.Network
	// Squashed says that Act gives what is squashed.
	Squashed bool
	// Targets evaluates obs_t, Critic and Actor are the losses.
	Targets, Critic, Actor *models.Network
	// Ahead, unless nil, is evaluated on the batch without a gradient, for what an algorithm has to
	// know of it beforehand.
	Ahead *models.Network

	// Constraints are those whose costs have critics.
	Constraints []constraint.Config

	config network.Config
	key    rng.Key
	// values are the initial values of the parameters of Specs but those of target networks.
	values map[string]*tensor.Tensor
}

// NewNetworks returns what graphs are drawn with, for the torso that c describes without its hidden
// layers: these are the actor's and the critics', whose initialisation is PyTorch's.
func NewNetworks(c network.Config, f *network.Frame, kinds []encoder.Kind, key rng.Key) (*Networks, error) {
	c.Hidden = nil
	torso, err := network.NewTorso(c, f, kinds, layer.Zeros())
	if err != nil {
		return nil, err
	}
	acting, err := torso.Acting()
	return &Networks{Frame: f, Torso: torso, Acting: acting, config: c, key: key}, err
}

// Graph returns an empty graph.
func (n *Networks) Graph(name string) *layer.Graph { return layer.New(name, n.key, layer.Options{}) }

// Declare finds all parameters. draw appends actor and critics to a graph, each once; followed says
// by its name of a parameter whether it has a target network. Dropout is refused, because no graph
// has its masks; name is the algorithm's in that error.
func (n *Networks) Declare(name string, o models.Options, followed func(name string) bool, draw func(l *layer.Graph) error) error {
	l := n.Graph("agent")
	if err := draw(l); err != nil {
		return err
	}
	whole, values, err := l.Network(o)
	if err != nil {
		return err
	}
	for _, scope := range []string{ActorScope, CriticScope} {
		if len(trainable(whole.Specs, scope)) == 0 {
			return errors.New("train and freeze leave no parameter of the actor, or none of the critics, to train")
		}
	}
	n.Specs, n.values = slices.Clone(whole.Specs), values
	for _, s := range whole.Specs {
		if followed(s.Name) {
			n.Specs = append(n.Specs, models.Spec{Name: TargetScope + "." + s.Name, Shape: s.Shape, Role: models.Frozen})
		}
	}
	l = layer.New("dropout", n.key, layer.Options{Training: true})
	if err := draw(l); err != nil {
		return err
	}
	if masks := l.Masks(); len(masks) > 0 {
		return fmt.Errorf("dropout of %g is not supported by %s; set it to 0", masks[0].Ratio, name)
	}
	return nil
}

// trainable lists the parameters in a scope that are trained.
func trainable(specs []models.Spec, scope string) (names []string) {
	for _, s := range specs {
		if s.Role == models.Trainable && Below(s.Name, scope) {
			names = append(names, s.Name)
		}
	}
	return names
}

// Over returns the network of a graph over the parameters.
func (n *Networks) Over(l *layer.Graph) (*models.Network, error) { return network.Over(n.Specs, l) }

// params makes all parameters. Target networks begin equal to those that they follow.
func (n *Networks) params(s *agents.Setup) (*models.Params, error) {
	values := n.values
	n.values = nil
	return network.NewParams(s, n.Specs, values, func() {
		for _, s := range n.Specs {
			if followed, ok := strings.CutPrefix(s.Name, TargetScope+"."); ok {
				values[s.Name] = values[followed]
			}
		}
	})
}

// stored returns the element type and the shape of a recorded action.
func stored(f *network.Frame) (tensor.DType, []int) {
	if f.Continuous() {
		return tensor.Float32, []int{f.Dims}
	}
	return tensor.Int64, nil
}

// Action declares a_tm1.
func (n *Networks) Action(l *layer.Graph) onnx.Value {
	dtype, shape := stored(n.Frame)
	return l.Batched(actionInput, dtype, shape...)
}

// Linear appends a layer that begins as PyTorch's do.
func Linear(l *layer.Graph, name string, x onnx.Value, n int) onnx.Value {
	init := layer.FanIn(l.Extent(x, -1))
	return l.LinearBias(name, x, n, init, init)
}

// Hidden appends an actor's hidden layers over the features that the components of its action come
// from. A component that belongs to no asset has layers of its own, over the portfolio's.
func (n *Networks) Hidden(l *layer.Graph, z network.Features, widths []int, activation string) network.Features {
	z.PerAsset = hidden(l, z.PerAsset, widths, activation)
	if n.Frame.Portfolio() > 0 {
		z.Pooled = hidden(l.In(portfolioScope), z.Pooled, widths, activation)
	}
	return z
}

func hidden(l *layer.Graph, x onnx.Value, widths []int, activation string) onnx.Value {
	for i, width := range widths {
		x = l.Activate(activation, Linear(l, fmt.Sprintf("fc%d", i), x, width))
	}
	return x
}

// portfolioScope has the layers of components that belong to no asset, below the actor's.
const portfolioScope = "portfolio"

// Component appends a number for each component of actions in a Box, [batch, A]. For windows of
// assets it comes from the asset's own features, by a layer that all share.
func (n *Networks) Component(l *layer.Graph, name string, z network.Features) onnx.Value {
	if n.Frame.Assets == 0 {
		return Linear(l, name, z.PerAsset, n.Frame.Dims)
	}
	x := l.Squeeze(Linear(l, name, z.PerAsset, 1), 2)
	if k := n.Frame.Portfolio(); k > 0 {
		x = l.Concat(1, x, Linear(l.In(portfolioScope), name, z.Pooled, k))
	}
	return x
}

// OutputBox makes the elements of the action space from actions in [−1, 1], [batch, A], an output.
func (n *Networks) OutputBox(l *layer.Graph, output string, squashed onnx.Value) {
	box := n.Frame.Spec.Action.(envs.Box)
	var low, high []float64
	for i := range n.Frame.Dims {
		r := box.Bounds(i)
		low, high = append(low, r.Low), append(high, r.High)
	}
	// An engine's tanh may exceed 1 by a rounding, and environments refuse what exceeds their
	// bounds.
	action := within(l, head.Rescale(l, squashed, low, high), low, high)
	action = l.Reshape(action, append([]int{-1}, box.Dims...)...)
	if box.Of != tensor.Float32 {
		action = l.Op("Cast", []onnx.Value{action}, onnx.AttrInt("to", int(box.Of)))
	}
	l.Output(output, action)
}

// within appends x cut off at the bounds of each component, or at the last float32 before them.
func within(l *layer.Graph, x onnx.Value, low, high []float64) onnx.Value {
	from, to := tensor.New(tensor.Float32, len(low)), tensor.New(tensor.Float32, len(low))
	for i := range low {
		a, b := float32(low[i]), float32(high[i])
		if float64(a) < low[i] {
			a = math.Nextafter32(a, b)
		}
		if float64(b) > high[i] {
			b = math.Nextafter32(b, a)
		}
		from.Float32s()[i], to.Float32s()[i] = a, b
	}
	return l.Min(l.Max(x, l.Const(from)), l.Const(to))
}
