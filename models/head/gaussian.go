package head

import (
	"math"

	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// halfLog2Pi is ½·log 2π.
const halfLog2Pi = 0.91893853320467274178

// DiagGaussian is a normal distribution with independent components.
type DiagGaussian struct {
	// Mean and LogStd are [batch, A].
	Mean, LogStd onnx.Value
	g            *layer.Graph
}

// Mean appends a linear layer to the mean of A components, [batch, A].
func Mean(g *layer.Graph, z onnx.Value, init layer.Init, a int) onnx.Value {
	return g.Linear("mean", z, a, init)
}

// SharedLogStd returns log σ as a parameter [A] that is the same in every state, as PPO and A2C use
// it.
func SharedLogStd(g *layer.Graph, initial float64, a int) onnx.Value {
	return g.Param("log_std", layer.Constant(initial), a)
}

// Bound is how a network's output becomes a log σ within bounds.
type Bound string

// The bounds: BoundTanh squashes smoothly between them (CleanRL's SAC, from −5 to 2), BoundClip
// cuts off, with gradient 0 outside (Stable-Baselines3's SAC, from −20 to 2).
const (
	BoundTanh Bound = "tanh"
	BoundClip Bound = "clip"
)

// StateLogStd appends a linear layer to log σ within [low, high], [batch, A].
func StateLogStd(g *layer.Graph, z onnx.Value, init layer.Init, a int, b Bound, low, high float64) onnx.Value {
	x := g.Linear("log_std", z, a, init)
	switch b {
	case BoundClip:
		return g.Clip(x, low, high)
	case BoundTanh:
		return g.Shift(g.Scale(g.Activate("tanh", x), (high-low)/2), (low+high)/2)
	}
	g.Failf("the bound of a deviation is tanh or clip, not %q", b)
	return x
}

// NewDiagGaussian appends the distribution with mean [batch, A] and logStd [batch, A], or [A] for
// all rows.
func NewDiagGaussian(g *layer.Graph, mean, logStd onnx.Value) *DiagGaussian {
	d := &DiagGaussian{Mean: mean, LogStd: logStd, g: g}
	m, s := g.Dims(mean), g.Dims(logStd)
	if g.Err() != nil {
		return d
	}
	if len(m) != 2 || !m[1].IsKnown() || len(s) < 1 || len(s) > 2 || s[len(s)-1] != m[1] {
		g.Failf("a diagonal Gaussian needs a mean [batch,A] and a log σ [A] or [batch,A], got %v and %v", g.Type(mean), g.Type(logStd))
		return d
	}
	if len(s) == 1 {
		d.LogStd = g.Op("Expand", []onnx.Value{logStd, g.Op("Shape", []onnx.Value{mean})})
	}
	return d
}

// constant is A·x, summed over the components.
func (d *DiagGaussian) constant(x float64) float64 { return x * float64(d.g.Extent(d.Mean, 1)) }

// LogProb appends the log-density of actions [batch, A]: Σ −½((a−μ)/σ)² − log σ − ½ log 2π,
// [batch].
func (d *DiagGaussian) LogProb(actions onnx.Value) onnx.Value {
	return d.logProbOf(d.g.Mul(d.g.Sub(actions, d.Mean), d.g.Exp(d.g.Neg(d.LogStd))))
}

// logProbOf is the log-density at μ + σ·z.
func (d *DiagGaussian) logProbOf(z onnx.Value) onnx.Value {
	g := d.g
	per := g.Add(g.Scale(g.Square(z), 0.5), d.LogStd)
	return g.Neg(g.Shift(g.Sum(per, 1), d.constant(halfLog2Pi)))
}

// Entropy appends Σ log σ + ½ + ½ log 2π, [batch].
func (d *DiagGaussian) Entropy() onnx.Value {
	return d.g.Shift(d.g.Sum(d.LogStd, 1), d.constant(0.5+halfLog2Pi))
}

// KL appends KL(d‖q), [batch].
func (d *DiagGaussian) KL(q *DiagGaussian) onnx.Value {
	g := d.g
	log := g.Sub(d.LogStd, q.LogStd)
	z := g.Mul(g.Sub(d.Mean, q.Mean), g.Exp(g.Neg(q.LogStd)))
	half := g.Scale(g.Shift(g.Add(g.Exp(g.Scale(log, 2)), g.Square(z)), -1), 0.5)
	return g.Sum(g.Sub(half, log), 1)
}

// Sample appends actions μ + σ·noise [batch, A], through which gradients flow, and their
// log-density [batch]. noise [batch, A] is standard normal.
func (d *DiagGaussian) Sample(noise onnx.Value) (actions, logProb onnx.Value) {
	g := d.g
	return g.Add(d.Mean, g.Mul(g.Exp(d.LogStd), noise)), d.logProbOf(noise)
}

// Mode returns the mean.
func (d *DiagGaussian) Mode() onnx.Value { return d.Mean }

// Squashed is tanh of a DiagGaussian: actions lie in (−1, 1), and densities are those of actions in
// that range, whatever range the environment has. See [Rescale].
type Squashed struct {
	Gaussian *DiagGaussian
	g        *layer.Graph
}

// NewSquashed appends the distribution of tanh(u) with u from the Gaussian of mean and log σ.
func NewSquashed(g *layer.Graph, mean, logStd onnx.Value) *Squashed {
	return Squash(NewDiagGaussian(g, mean, logStd))
}

// Sample appends actions tanh(μ + σ·noise) [batch, A], through which gradients flow, and their
// log-density [batch].
func (s *Squashed) Sample(noise onnx.Value) (actions, logProb onnx.Value) {
	u, l := s.Gaussian.Sample(noise)
	return s.g.Activate("tanh", u), s.g.Sub(l, s.logDet(u))
}

// LogProbOf appends the log-density of the actions tanh(u), given u [batch, A]. Whoever records u
// instead of the action loses nothing to rounding.
func (s *Squashed) LogProbOf(u onnx.Value) onnx.Value {
	return s.g.Sub(s.Gaussian.LogProb(u), s.logDet(u))
}

// edgeEpsilon is how near to ±1 an action may lie for LogProb.
const edgeEpsilon = 1e-6

// LogProb appends the log-density of actions [batch, A] in [−1, 1]. They are first moved
// edgeEpsilon away from the edges, where tanh has no inverse.
func (s *Squashed) LogProb(actions onnx.Value) onnx.Value {
	g := s.g
	a := g.Clip(actions, -1+edgeEpsilon, 1-edgeEpsilon)
	u := g.Scale(g.Op("Log", []onnx.Value{g.Div(g.Shift(a, 1), g.Shift(g.Neg(a), 1))}), 0.5)
	return s.LogProbOf(u)
}

// logDet is Σ log(1 − tanh²(u)) as 2(log 2 − u − softplus(−2u)), which is right where 1 − tanh²
// rounds to 0.
func (s *Squashed) logDet(u onnx.Value) onnx.Value {
	g := s.g
	inner := g.Add(u, g.Activate("softplus", g.Scale(u, -2)))
	return g.Shift(g.Scale(g.Sum(inner, 1), -2), s.Gaussian.constant(2*math.Ln2))
}

// Mode appends tanh of the mean.
func (s *Squashed) Mode() onnx.Value { return s.g.Activate("tanh", s.Gaussian.Mean) }
