package diversity

import (
	"math"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Inputs are the next observation's fields, with nextPrefix, actionInput and wrap.SkillField.
// bonusOutput [batch] is the estimate of each transition, hitOutput [batch] whether its skill was
// told, or the cosine, and lossOutput the number that is gone down.
const (
	nextPrefix  = "next."
	actionInput = "learner.action"
	bonusOutput = "bonus"
	hitOutput   = "hit"
	lossOutput  = "loss"
)

// hitSlack is how far rounding may part the scores of equal skills.
const hitSlack = 1e-5

// draw appends the whole graph for a batch of a fixed size and returns the largest bonus that it
// can give. fields are those of the next observation; action is nil where it is no feature.
func (c *Config) draw(g *layer.Graph, batch int, fields []envs.Field, action, skill envs.Space) (bound float64) {
	input := func(name string, s envs.Space, d tensor.DType, shape []int) onnx.Value {
		dims := []onnx.Dim{onnx.Known(batch)}
		for _, n := range shape {
			dims = append(dims, onnx.Known(n))
		}
		return network.Flatten(g, g.Input(name, d, dims...), s)
	}
	var parts []onnx.Value
	for _, f := range fields {
		parts = append(parts, input(nextPrefix+f.Name, f.Space, f.Space.DType(), f.Space.Shape()))
	}
	if box, ok := action.(envs.Box); ok {
		// Actions in a Box are recorded as they were drawn: float32, in one row.
		n := 1
		for _, d := range box.Dims {
			n *= d
		}
		parts = append(parts, input(actionInput, envs.Unbounded(n), tensor.Float32, []int{n}))
	} else if action != nil {
		parts = append(parts, input(actionInput, action, tensor.Int64, action.Shape()))
	}
	x, z := g.Concat(1, parts...), input(wrap.SkillField, skill, tensor.Float32, skill.Shape())
	k := skill.Shape()[0]
	side := func(name string, x onnx.Value, n int) onnx.Value {
		g := g.In(name)
		return g.Linear("out", g.MLP(x, c.Hidden, "relu", layer.LinearDefault()), n, layer.LinearDefault())
	}
	var logProb, hit onnx.Value
	switch {
	case c.Kind == InfoNCE:
		n := c.BatchSize
		if n == 0 {
			n = batch
		}
		groups := func(v onnx.Value) onnx.Value { return g.Reshape(v, batch/n, n, c.Embedding) }
		scores := g.MatMul(groups(side("features", x, c.Embedding)), g.Transpose(groups(side("skill", z, c.Embedding)), 0, 2, 1))
		own := tensor.New(tensor.Float32, n, n)
		for i := range n {
			own.Float32s()[i*n+i] = 1
		}
		logProb, hit = choice(g, scores, g.Const(own))
		logProb, hit = g.Reshape(logProb, batch), g.Reshape(hit, batch)
		bound = math.Log(float64(n))
	case spherical(skill):
		logProb, hit, bound = direction(g, side("features", x, k), z, c.Concentration)
		g.Output(bonusOutput, logProb)
	default:
		logProb, hit = choice(g, side("features", x, k), z)
		bound = math.Log(float64(k))
	}
	if c.Kind == InfoNCE || !spherical(skill) {
		g.Output(bonusOutput, g.Shift(logProb, bound))
	}
	g.Output(hitOutput, hit)
	g.Output(lossOutput, g.Scale(g.Sum(logProb, 0), -1/float64(batch)))
	return bound
}

// choice appends the log-probability of the chosen one of the last axis, and whether none is
// likelier.
func choice(g *layer.Graph, scores, chosen onnx.Value) (logProb, hit onnx.Value) {
	axis := len(g.Dims(scores)) - 1
	all := g.Op("LogSoftmax", []onnx.Value{scores}, onnx.AttrInt("axis", -1))
	logProb = g.Sum(g.Mul(all, chosen), axis)
	best := g.Op("ReduceMax", []onnx.Value{all, g.Ints(axis)}, onnx.AttrInt("keepdims", 0))
	hit = g.Op("Cast", []onnx.Value{g.Op("Greater", []onnx.Value{logProb, g.Shift(best, -hitSlack)})}, onnx.AttrInt("to", int(tensor.Float32)))
	return logProb, hit
}

// spherical reports whether skills are directions and not choices.
func spherical(skill envs.Space) bool { return skill.(envs.Box).Bounds(0).Low < 0 }

// direction appends the log-density of z [batch, d] under a von Mises-Fisher distribution over that
// of the uniform one, whose mean has the direction of m and whose concentration rises with its
// length from 0 to most, and the cosine between both. bound is the largest log-density.
func direction(g *layer.Graph, m, z onnx.Value, most float64) (logRatio, cosine onnx.Value, bound float64) {
	square := g.Unsqueeze(g.Sum(g.Square(m), 1), 1)
	root := func(x onnx.Value) onnx.Value { return g.Op("Sqrt", []onnx.Value{x}) }
	// |κ|² over most²: u = |m|²/(|m|² + most²).
	u := g.Div(square, g.Shift(square, most*most))
	product := g.Sum(g.Mul(g.Div(m, root(g.Shift(g.Scale(square, 1/(most*most)), 1))), z), 1)
	terms, constant := hypergeometric(float64(g.Extent(z, 1))/2, most*most/4)
	sum := g.Shift(g.Scale(u, 0), terms[len(terms)-1])
	for i := len(terms) - 2; i >= 0; i-- {
		sum = g.Shift(g.Mul(sum, u), terms[i])
	}
	normal := g.Shift(g.Op("Log", []onnx.Value{g.Squeeze(sum, 1)}), constant)
	cosine = g.Sum(g.Mul(g.Div(m, root(g.Shift(square, 1e-12))), z), 1)
	return g.Sub(product, normal), cosine, most - constant
}

// hypergeometric returns log ₀F₁(; b; x), the logarithm of Σ xᵐ·Γ(b)/(m!·Γ(b + m)), for x > 0, and
// the terms of the sum as parts of it, as far as they count in float32.
func hypergeometric(b, x float64) (terms []float64, log float64) {
	top, logTerm := 0.0, 0.0
	for m := 1.0; logTerm > top-25; m++ {
		terms = append(terms, logTerm)
		top = max(top, logTerm)
		logTerm += math.Log(x / (m * (b + m - 1)))
	}
	sum := 0.0
	for _, t := range terms {
		sum += math.Exp(t - top)
	}
	log = top + math.Log(sum)
	for i, t := range terms {
		terms[i] = math.Exp(t - log)
	}
	return terms, log
}
