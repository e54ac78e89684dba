package head

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Value appends a linear layer to one number per row, [batch]. PPO's implementations use
// layer.Orthogonal(1).
func Value(g *layer.Graph, z onnx.Value, init layer.Init) onnx.Value {
	return g.Squeeze(ValueColumn(g, z, init), 1)
}

// ValueColumn is Value as a column, [batch, 1], which saves small graphs a node.
func ValueColumn(g *layer.Graph, z onnx.Value, init layer.Init) onnx.Value {
	return g.Linear("value", z, 1, init)
}

// Deterministic appends a linear layer and tanh: actions [batch, A] in [−1, 1]. See [Rescale].
func Deterministic(g *layer.Graph, z onnx.Value, init layer.Init, a int) onnx.Value {
	return g.Activate("tanh", g.Linear("action", z, a, init))
}

// Rescale appends the map of actions in [−1, 1] to [low, high], one bound per component.
func Rescale(g *layer.Graph, actions onnx.Value, low, high []float64) onnx.Value {
	n := len(low)
	if got := g.Extent(actions, -1); g.Err() == nil && (len(high) != n || got != n) {
		g.Failf("actions %v cannot be scaled to %d lower and %d upper bounds", g.Type(actions), len(low), len(high))
		return actions
	}
	half, middle := tensor.New(tensor.Float32, n), tensor.New(tensor.Float32, n)
	for i := range n {
		if !(low[i] < high[i]) || high[i]-low[i] > 1e30 {
			g.Failf("component %d of the actions has no finite range: [%v, %v]", i, low[i], high[i])
			return actions
		}
		half.Float32s()[i], middle.Float32s()[i] = float32((high[i]-low[i])/2), float32((high[i]+low[i])/2)
	}
	return g.Add(g.Mul(actions, g.Const(half)), g.Const(middle))
}

// Perceptron describes the hidden layers of a critic.
type Perceptron struct {
	Hidden     []int
	Activation string
	// Init is for the hidden weights and Out for those of the last layer. With Default, all weights
	// and biases are those of PyTorch's layers and neither counts.
	Init, Out layer.Init
	Default   bool
}

// Build appends the layers, and a last one of n columns, [batch, n].
func (p Perceptron) Build(g *layer.Graph, x onnx.Value, n int) onnx.Value {
	widths := append(slices.Clone(p.Hidden), n)
	for i, width := range widths {
		weight, bias := p.Init, layer.Zeros()
		if i == len(p.Hidden) {
			weight = p.Out
		}
		if p.Default {
			weight = layer.FanIn(g.Extent(x, -1))
			bias = weight
		}
		x = g.LinearBias(fmt.Sprintf("fc%d", i), x, width, weight, bias)
		if i < len(p.Hidden) {
			x = g.Activate(p.Activation, x)
		}
	}
	return x
}

// TwinQ appends two critics of state and action, each with parameters of its own (scopes q1 and
// q2): z [batch, D] and actions [batch, A] to two values [batch]. With g.Again() the same critics
// evaluate other actions.
func TwinQ(g *layer.Graph, z, actions onnx.Value, p Perceptron) (q1, q2 onnx.Value) {
	x := g.Concat(-1, z, actions)
	q := [2]onnx.Value{}
	for i := range q {
		l := g.In(fmt.Sprintf("q%d", i+1))
		q[i] = l.Squeeze(p.Build(l, x, 1), 1)
	}
	return q[0], q[1]
}

// QValues appends a linear layer to values for each of n actions: one, [batch, n], or with more than
// one number for each (quantiles) [batch, numbers, n].
func QValues(g *layer.Graph, z onnx.Value, init layer.Init, numbers, n int) onnx.Value {
	return rows(g, g.Linear("q", z, numbers*n, init), numbers, n)
}

// Duelling appends what QValues does as V + A − mean A (Wang et al. 2016, arXiv 1511.06581, equation
// 9), for each number by itself.
func Duelling(g *layer.Graph, z onnx.Value, init layer.Init, numbers, n int) onnx.Value {
	v, a := rows(g, g.Linear("value", z, numbers, init), numbers, 1), rows(g, g.Linear("advantage", z, numbers*n, init), numbers, n)
	mean := g.Op("ReduceMean", []onnx.Value{a, g.Ints(len(g.Dims(a)) - 1)}, onnx.AttrInt("keepdims", 1))
	return g.Add(v, g.Sub(a, mean))
}

// rows appends a reshape of [batch, numbers·n] to [batch, numbers, n], unless there is one number.
func rows(g *layer.Graph, x onnx.Value, numbers, n int) onnx.Value {
	if numbers == 1 {
		return x
	}
	return g.Reshape(x, -1, numbers, n)
}

// Pick appends what belongs to the action taken: [batch] of values [batch, n], or [batch, numbers] of
// values [batch, numbers, n]. The actions are int64 [batch].
func Pick(g *layer.Graph, values, actions onnx.Value) onnx.Value {
	if t := g.Type(actions); g.Err() == nil && (t.DType != tensor.Int64 || len(t.Dims) != 1) {
		g.Failf("the actions are %v, expected int64[batch]", t)
	}
	axis, index := 1, g.Unsqueeze(actions, 1)
	if len(g.Dims(values)) == 3 {
		axis, index = 2, g.Op("Expand", []onnx.Value{g.Unsqueeze(actions, 1, 2), g.Ints(1, g.Extent(values, 1), 1)})
	}
	return g.Squeeze(g.Op("GatherElements", []onnx.Value{values, index}, onnx.AttrInt("axis", axis)), axis)
}
