package offpolicy

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs/vector"
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
	// Squashed says that tanh of what is drawn is an action. Then the network that is exported
	// gives Mean and LogStd, too.
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
				l.Output(agents.LogStdOutput, p.LogStd)
			}
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

// Uniform makes the log-probabilities in Decision.Logits those of all valid Discrete actions alike.
func (a *Actor) Uniform(b *vector.Batch) {
	all := a.Decision.Logits.Float32s()
	n := len(all) / a.N
	for i := range a.N {
		row := all[i*n:][:n]
		for k := range row {
			if row[k] = 0; b.Mask != nil && !b.Mask.Bools()[i*n+k] {
				row[k] = rlmath.Excluded
			}
		}
		rlmath.LogSoftmax(row, row, nil)
	}
}

// Choose takes a Discrete action for each row by the log-probabilities in Decision.Logits, the best
// one or, exploring, one that is drawn, and writes the logarithm of its probability to logProb.
func (a *Actor) Choose(logProb []float32) error {
	all := a.Decision.Logits.Float32s()
	n := len(all) / a.N
	for i := range a.N {
		row, choice := all[i*n:][:n], 0
		if a.Mode.Draws() {
			choice = a.Stream.Categorical(row)
		} else {
			choice = rlmath.Argmax(row)
		}
		if choice < 0 {
			return fmt.Errorf("the log-probabilities of environment %d are %v", i, row)
		}
		a.Decision.Actions.Int64s()[i], logProb[i] = int64(choice), row[choice]
	}
	return nil
}
