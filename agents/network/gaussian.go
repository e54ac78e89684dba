package network

import (
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// LogStdParam is the name of the log standard deviation below the scope of a [Gaussian]: [Dims], or
// [latent, Dims] with gSDE.
const LogStdParam = "log_std"

// LatentOutput is the output of an acting graph that gSDE's noise is computed from, float32 [batch,
// latent].
const LatentOutput = "sde_latent"

// Gaussian is a Distribution over a Box: independent components, with a deviation that is the same
// in every state, or by gSDE.
type Gaussian struct {
	*head.DiagGaussian
	// latent are the features that gSDE's noise comes from; absent without it.
	latent onnx.Value
	g      *layer.Graph
	f      *Frame
	stops  []string
}

var _ Distribution = (*Gaussian)(nil)

// means appends the mean of each component of a frame, [batch, Dims]. Where features are per asset,
// each has a component, by a layer that they share; a component that belongs to none comes from the
// portfolio's features.
func means(g *layer.Graph, f *Frame, z Features, init layer.Init) onnx.Value {
	switch {
	case z.Given != "":
		return z.Given
	case f.Assets > 0:
		mean := g.Squeeze(head.Mean(g, z.PerAsset, init, 1), 2)
		if n := f.Portfolio(); n > 0 {
			mean = g.Concat(1, mean, head.Mean(g.In("portfolio"), z.Pooled, init, n))
		}
		return mean
	}
	return head.Mean(g, z.Pooled, init, f.Dims)
}

// newGaussian appends the mean and the deviation of a frame. Noise by gSDE comes from the
// portfolio's features.
func newGaussian(g *layer.Graph, f *Frame, z Features, e Exploration, init layer.Init) *Gaussian {
	d := &Gaussian{g: g, f: f}
	mean := means(g, f, z, init)
	if !e.UseSDE {
		d.DiagGaussian = head.NewDiagGaussian(g, mean, head.SharedLogStd(g, e.LogStdInit, f.Dims))
		return d
	}
	d.latent = z.Pooled
	// The deviations do not shape the features, as in Stable-Baselines3 (learn_features: False).
	stopped := g.Op("Identity", []onnx.Value{z.Pooled})
	d.stops = []string{string(stopped)}
	d.DiagGaussian = head.NewGSDE(g, mean, stopped, head.MatrixLogStd(g, e.LogStdInit, g.Extent(z.Pooled, 1), f.Dims)).DiagGaussian
	return d
}

// Mode implements Distribution: the mean, clipped to the bounds.
func (d *Gaussian) Mode() onnx.Value { return clipped(d.g, d.f, d.Mean) }

// clipped appends x [batch, Dims] as elements of a frame's Box.
func clipped(g *layer.Graph, f *Frame, x onnx.Value) onnx.Value {
	box := f.box()
	low, high := make([]float64, f.Dims), make([]float64, f.Dims)
	for i := range low {
		r := box.Bounds(i)
		low[i], high[i] = max(r.Low, -math.MaxFloat32), min(r.High, math.MaxFloat32)
	}
	cast := func(x onnx.Value, t tensor.DType) onnx.Value {
		return g.Op("Cast", []onnx.Value{x}, onnx.AttrInt("to", int(t)))
	}
	constant := func(v []float64) onnx.Value { return g.Const(tensor.Of(v, len(v))) }
	// A bound that has no float32 is met exactly only when the comparison is in float64.
	if box.DType() == tensor.Float64 {
		x = cast(x, tensor.Float64)
	} else {
		constant = func(v []float64) onnx.Value {
			t := tensor.New(tensor.Float32, len(v))
			for i := range v {
				t.Float32s()[i] = float32(v[i])
			}
			return g.Const(t)
		}
	}
	x = g.Min(g.Max(x, constant(low)), constant(high))
	x = g.Reshape(x, append([]int{-1}, box.Dims...)...)
	if box.DType() == tensor.Uint8 {
		x = cast(g.Op("Round", []onnx.Value{x}), box.DType())
	}
	return x
}

// Output implements Distribution.
func (d *Gaussian) Output() {
	d.g.Output(agents.MeanOutput, d.Mean)
	d.g.Output(agents.LogStdOutput, d.LogStd)
}

// Acting implements Distribution.
func (d *Gaussian) Acting() {
	d.g.Output(agents.MeanOutput, d.Mean)
	if d.latent != "" {
		d.g.Output(agents.LogStdOutput, d.LogStd)
		d.g.Output(LatentOutput, d.latent)
	}
}

// Stops implements Distribution.
func (d *Gaussian) Stops() []string { return d.stops }

// box returns the space of the actions of a frame with Dims.
func (f *Frame) box() envs.Box { return f.Spec.Action.(envs.Box) }
