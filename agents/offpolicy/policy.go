package offpolicy

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Distribution is what a stochastic policy draws actions from.
type Distribution struct {
	// Categorical is that of Discrete actions; nil for those in a Box, which have the others: Best
	// are the best ones in [−1, 1], and Mean and LogStd what draws are made of, all [batch, A].
	Categorical        *head.Categorical
	Best, Mean, LogStd onnx.Value
	// LogStd is empty where nothing is drawn. Squashed says that tanh of what is drawn is an action.
	// Then the network that is exported gives Mean and LogStd, too.
	Squashed bool
}

// AddPolicy adds the network that is exported, and that of acting, of a policy that draw appends to
// a graph. Drawing, squashing and rescaling are cheaper in Go: the second has the parameters of the
// distribution alone, and more, unless nil, appends further outputs to it.
func (n *Networks) AddPolicy(draw func(l *layer.Graph) (Distribution, error), more func(l *layer.Graph)) error {
	for _, whole := range []bool{true, false} {
		l := n.Graph(map[bool]string{true: "policy", false: "act"}[whole])
		p, err := draw(l)
		if err != nil {
			return err
		}
		if p.Categorical != nil {
			if whole {
				l.Output(agents.ActionOutput, l.Squeeze(p.Categorical.Mode(), 1))
			}
			l.Output(agents.LogProbsOutput, p.Categorical.LogProbs)
		} else {
			if whole {
				n.OutputBox(l, agents.ActionOutput, p.Best)
			}
			if !whole || p.Squashed {
				l.Output(agents.MeanOutput, p.Mean)
				if p.LogStd != "" {
					l.Output(agents.LogStdOutput, p.LogStd)
				}
			}
			n.Squashed = p.Squashed
		}
		if !whole && more != nil {
			more(l)
		}
		net, err := n.Over(l)
		if err != nil {
			return err
		}
		if whole {
			n.Policy = net
		} else {
			n.Act = net
		}
	}
	return nil
}
