package onpolicy

import (
	"errors"
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
	// Masks are the dropout masks that the graphs which act and learn have as inputs.
	Masks []models.DropoutMask

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

// Graph returns an empty graph of a policy that is published: it has no dropout.
func (n *Networks) Graph(name string) *layer.Graph { return layer.New(name, n.key, layer.Options{}) }

// Training returns an empty graph that acts in rollouts, or learns from them: dropout is in force.
func (n *Networks) Training(name string) *layer.Graph {
	return layer.New(name, n.key, layer.Options{Training: true})
}

// Complete takes the graph that ends in the policy's outputs as Policy. draw appends the same
// network again, to find its dropout.
func (n *Networks) Complete(p *layer.Graph, o models.Options, draw func(g *layer.Graph) error) (err error) {
	if n.Policy, n.Values, err = p.Network(o); err != nil {
		return err
	}
	if !Trainable(n.Policy) {
		return errors.New("train and freeze leave no parameter to train")
	}
	g := n.Training("dropout")
	if err := draw(g); err != nil {
		return err
	}
	n.Masks = g.Masks()
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
