package onpolicy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Networks are the networks of an agent, all over the parameters of Policy.
type Networks struct {
	Frame *network.Frame
	// Policy is complete: observations to actions, the distribution's parameters and value. Values
	// are its initial parameters, until [Learner.Build] has taken them.
	Policy *models.Network
	// Exported, unless nil, is published instead of Policy: the policy alone, whose critic reads
	// more.
	Exported *models.Network
	Values   map[string]*tensor.Tensor
	// Act gives what the sampler needs and the value; Learn the loss, LogProbOutput, EntropyOutput
	// and the value. Evaluate, of the same inputs as Learn, gives log-probabilities of recorded
	// actions and values; nil without a correction.
	Act, Learn, Evaluate *models.Network
	// Stops are the values that the loss is not differentiated through.
	Stops []string

	key rng.Key
}

// Outputs of the graphs that learn, beside the value.
const (
	LossOutput    = "loss"
	LogProbOutput = "log_prob"
	EntropyOutput = "entropy"
)

// The scopes of parameters.
const (
	ActorScope  = "actor"
	CriticScope = "critic"
)

// LogStdParam holds the deviations of a Gaussian policy.
const LogStdParam = ActorScope + "." + network.LogStdParam

// NewNetworks returns what graphs are drawn with; key is what initial parameters descend from.
func NewNetworks(f *network.Frame, key rng.Key) Networks { return Networks{Frame: f, key: key} }

// Graph returns an empty graph.
func (n *Networks) Graph(name string) *layer.Graph { return layer.New(name, n.key, layer.Options{}) }

// Complete takes the graph that ends in the policy's outputs as Policy. draw appends the same
// network again, to find dropout, which is refused because the graphs of acting do not have it;
// name is the algorithm's in that error.
func (n *Networks) Complete(name string, p *layer.Graph, o models.Options, draw func(g *layer.Graph) error) (err error) {
	if n.Policy, n.Values, err = p.Network(o); err != nil {
		return err
	}
	if !Trainable(n.Policy) {
		return errors.New("train and freeze leave no parameter to train")
	}
	g := layer.New("dropout", n.key, layer.Options{Training: true})
	if err := draw(g); err != nil {
		return err
	}
	if masks := g.Masks(); len(masks) > 0 {
		return fmt.Errorf("dropout of %g is asked for, but %s is on-policy: the policy that learns must be the one that acted; set it to 0", masks[0].Ratio, name)
	}
	return nil
}

// Export makes Exported of the policy alone: its distribution in a graph p that has no critic. more
// appends outputs behind those.
func (n *Networks) Export(p *layer.Graph, dist network.Distribution, more func()) (err error) {
	p.Output(agents.ActionOutput, dist.Mode())
	dist.Output()
	more()
	n.Exported, err = n.Over(p)
	return err
}

// Over returns the network of a graph over the policy's parameters.
func (n *Networks) Over(g *layer.Graph) (*models.Network, error) {
	return network.Over(n.Policy.Specs, g)
}

// Trainable reports whether a network has a parameter that is trained.
func Trainable(n *models.Network) bool {
	return slices.ContainsFunc(n.Specs, func(s models.Spec) bool { return s.Role == models.Trainable })
}

// Orthogonal returns how weights of a gain begin: orthogonal, or with ortho false as PyTorch's do.
func Orthogonal(ortho bool, gain float64) layer.Init {
	if !ortho {
		return layer.LinearDefault()
	}
	return layer.Orthogonal(gain)
}
