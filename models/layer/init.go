package layer

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Init says how a parameter is initialised. For the fans of a parameter, the first axis counts the
// outputs and the others together the inputs, as in PyTorch; of a vector, each element is an output
// with one input.
type Init struct {
	kind initKind
	// scale is the gain of the matrix forms, the standard deviation of normal, half the width of
	// uniform, and the value of constant.
	scale float64
}

type initKind int

const (
	constant initKind = iota
	orthogonal
	xavier
	kaiming
	normal
	uniform
	fanIn
	identity
)

// The gains of common activations, as PyTorch's nn.init.calculate_gain gives them.
var (
	GainReLU = math.Sqrt2
	GainTanh = 5.0 / 3
)

// Constant fills with a value.
func Constant(v float64) Init { return Init{constant, v} }

// Zeros fills with 0, the usual bias.
func Zeros() Init { return Init{constant, 0} }

// Ones fills with 1, the usual scale of a normalisation.
func Ones() Init { return Init{constant, 1} }

// Identity is 1 on the diagonal of a matrix and 0 elsewhere: a layer that does nothing yet.
func Identity() Init { return Init{kind: identity} }

// Orthogonal makes the rows of the weight, or its columns where they are fewer, orthogonal with
// length gain (Saxe et al. 2014, arXiv 1312.6120). It is what PPO and A2C use: √2 for hidden
// layers, 0.01 for the policy's output and 1 for the value's.
func Orthogonal(gain float64) Init { return Init{orthogonal, gain} }

// Xavier draws uniformly from ±gain·√(6/(fan_in + fan_out)) (Glorot & Bengio 2010).
func Xavier(gain float64) Init { return Init{xavier, gain} }

// Kaiming draws from a normal distribution of standard deviation gain/√fan_in (He et al. 2015,
// arXiv 1502.01852); a gain of √2 is for ReLU.
func Kaiming(gain float64) Init { return Init{kaiming, gain} }

// Normal draws from a normal distribution with mean 0.
func Normal(std float64) Init { return Init{normal, std} }

// Uniform draws uniformly from ±bound.
func Uniform(bound float64) Init { return Init{uniform, bound} }

// FanIn draws uniformly from ±1/√fanIn, which is the default of PyTorch's linear and convolutional
// layers, weights and biases alike, and so what Stable-Baselines3's SAC and TD3 begin with.
func FanIn(fanIn int) Init { return Uniform(1 / math.Sqrt(float64(fanIn))) }

// LinearDefault is FanIn of whatever inputs a linear layer has: [Graph.Linear] begins the weight
// with it, and the bias too, as PyTorch does where nothing else is asked for.
func LinearDefault() Init { return Init{kind: fanIn, scale: 1} }

// bias returns how the bias of a linear layer of so many inputs begins whose weight begins with i.
func (i Init) bias(in int) Init {
	if i.kind == fanIn {
		return FanIn(in)
	}
	return Zeros()
}

// Moments returns the mean and the standard deviation of the elements of a parameter of a shape,
// for tests of initialisation.
func (i Init) Moments(shape []int) (mean, std float64) {
	in, out := fans(shape)
	switch i.kind {
	case orthogonal:
		// The sum of all squares is gain² times the number of orthogonal vectors.
		return 0, i.scale * math.Sqrt(float64(min(in, out))/float64(in*out))
	case xavier:
		return 0, i.scale * math.Sqrt(2/float64(in+out))
	case kaiming:
		return 0, i.scale / math.Sqrt(float64(in))
	case normal:
		return 0, i.scale
	case uniform:
		return 0, i.scale / math.Sqrt(3)
	case fanIn:
		return 0, i.scale / math.Sqrt(3*float64(in))
	case identity:
		mean = float64(min(in, out)) / float64(in*out)
		return mean, math.Sqrt(mean - mean*mean)
	}
	return i.scale, 0
}

// Fixed reports whether the values are the same for all seeds.
func (i Init) Fixed() bool { return i.kind == constant || i.kind == identity }

// String names the initialisation.
func (i Init) String() string {
	return fmt.Sprintf("%s(%g)", [...]string{"constant", "orthogonal", "xavier", "kaiming", "normal", "uniform", "fan_in", "identity"}[i.kind], i.scale)
}

func fans(shape []int) (in, out int) {
	in = 1
	for _, d := range shape[1:] {
		in *= d
	}
	return in, shape[0]
}

func (i Init) fill(s *rng.Stream, t *tensor.Tensor) {
	x := t.Float32s()
	in, out := fans(t.Shape())
	switch i.kind {
	case constant:
		for j := range x {
			x[j] = float32(i.scale)
		}
	case orthogonal:
		fillOrthogonal(s, x, in, out, i.scale)
	case xavier:
		b := float32(i.scale * math.Sqrt(6/float64(in+out)))
		s.FillUniform32(x, -b, b)
	case kaiming:
		s.FillNormal32(x, 0, i.scale/math.Sqrt(float64(in)))
	case normal:
		s.FillNormal32(x, 0, i.scale)
	case uniform:
		s.FillUniform32(x, float32(-i.scale), float32(i.scale))
	case fanIn:
		b := float32(i.scale / math.Sqrt(float64(in)))
		s.FillUniform32(x, -b, b)
	case identity:
		for j := range min(in, out) {
			x[j*in+j] = 1
		}
	}
}

// fillOrthogonal writes a random matrix [out, in] whose rows, or columns where they are fewer, are
// orthogonal and of the given length, uniformly distributed over all of them: a Gaussian matrix,
// orthogonalised by Gram and Schmidt, twice, which leaves errors of the order of float64's
// rounding.
func fillOrthogonal(s *rng.Stream, x []float32, in, out int, gain float64) {
	n, length := out, in
	if in < out {
		n, length = in, out
	}
	v := make([][]float64, n)
	for i := range v {
		v[i] = make([]float64, length)
		for {
			for j := range v[i] {
				v[i][j] = s.Normal()
			}
			for range 2 {
				for _, u := range v[:i] {
					d := dot(u, v[i])
					for j := range u {
						v[i][j] -= float64(d * u[j])
					}
				}
			}
			// Of many random vectors, the last may have next to nothing left after its projection;
			// then another one is drawn.
			if norm := math.Sqrt(dot(v[i], v[i])); norm > 1e-6 {
				for j := range v[i] {
					v[i][j] /= norm
				}
				break
			}
		}
	}
	for i := range v {
		for j, e := range v[i] {
			if in < out {
				x[j*in+i] = float32(gain * e)
			} else {
				x[i*in+j] = float32(gain * e)
			}
		}
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += float64(x * b[i])
	}
	return sum
}
