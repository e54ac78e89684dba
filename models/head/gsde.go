package head

import (
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// gsdeEpsilon is added to the variance of [GSDE], as in Stable-Baselines3.
const gsdeEpsilon = 1e-6

// GSDE is generalised state-dependent exploration (Raffin et al. 2021, arXiv 2005.05719): actions
// are μ(s) + z(s)·E, where z are a network's last features and E [features, A] is a matrix of
// independent normal numbers that is kept for several steps, so that the noise is a function of the
// state and moves are smooth. Over the choice of E, actions in one state are distributed as the
// embedded Gaussian, whose components have the variance Σ z²·σ² + gsdeEpsilon: log-probability,
// entropy, KL and mode are its.
type GSDE struct {
	*DiagGaussian
	// Latent is z [batch, L], Matrix is log σ [L, A].
	Latent, Matrix onnx.Value
}

// MatrixLogStd returns log σ of the elements of gSDE's matrix as a parameter [latent, A], called
// log_std like that of [SharedLogStd].
func MatrixLogStd(g *layer.Graph, initial float64, latent, a int) onnx.Value {
	return g.Param("log_std", layer.Constant(initial), latent, a)
}

// NewGSDE appends the distribution with mean [batch, A], latent [batch, L] and logStd [L, A].
// Whether gradients flow from the deviations into the features is the caller's choice: pass the
// features themselves (SAC in Stable-Baselines3), or the output of an Identity that the objective
// stops at (PPO and A2C there).
func NewGSDE(g *layer.Graph, mean, latent, logStd onnx.Value) *GSDE {
	d := &GSDE{DiagGaussian: &DiagGaussian{Mean: mean, g: g}, Latent: latent, Matrix: logStd}
	m, z, s := g.Dims(mean), g.Dims(latent), g.Dims(logStd)
	if g.Err() != nil {
		return d
	}
	if len(m) != 2 || len(z) != 2 || len(s) != 2 || !m[1].IsKnown() || z[1] != s[0] || m[1] != s[1] {
		g.Failf("state-dependent exploration needs a mean [batch,A], features [batch,L] and log σ [L,A], got %v, %v and %v", g.Type(mean), g.Type(latent), g.Type(logStd))
		return d
	}
	variance := g.MatMul(g.Square(latent), g.Exp(g.Scale(logStd, 2)))
	d.LogStd = g.Scale(g.Op("Log", []onnx.Value{g.Shift(variance, gsdeEpsilon)}), 0.5)
	return d
}

// Sample appends actions μ + z·(σ∘noise) [batch, A], through which gradients flow, and their
// log-density [batch]. noise [L, A] is standard normal and the same for all rows. It replaces the
// embedded Gaussian's, whose noise is of the actions.
func (d *GSDE) Sample(noise onnx.Value) (actions, logProb onnx.Value) {
	g := d.g
	actions = g.Add(d.Mean, g.MatMul(d.Latent, g.Mul(g.Exp(d.Matrix), noise)))
	return actions, d.LogProb(actions)
}

// Squash returns the distribution of tanh(u) with u from d. With gSDE, u is what [GSDE.Sample]
// appends, and its density that of [Squashed.LogProbOf].
func Squash(d *DiagGaussian) *Squashed { return &Squashed{Gaussian: d, g: d.g} }
