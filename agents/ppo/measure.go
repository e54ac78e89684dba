package ppo

import (
	"math"

	"github.com/onnxrl/onnxrl/agents/rlmath"
)

// sums add up the diagnostics of an update, over its minibatches; kl only of the last epoch.
type sums struct {
	policy, value, entropy, clipped, kl float64
	batches, klBatches                  float64
	// loss is that of the last minibatch.
	loss float64
}

// values returns the sums in the order in which they are saved, and set takes them back.
func (s *sums) values() []float64 {
	return []float64{s.policy, s.value, s.entropy, s.clipped, s.kl, s.batches, s.klBatches, s.loss}
}

func (s *sums) set(v []float64) {
	*s = sums{policy: v[0], value: v[1], entropy: v[2], clipped: v[3], kl: v[4], batches: v[5], klBatches: v[6], loss: v[7]}
}

// diagnose computes the statistics of a minibatch from what its program gave, and returns its
// approx_kl: the k3 estimate, mean (ρ − 1) − log ρ.
func (l *learner) diagnose(now coefficients) float64 {
	m := l.learn
	var policy, value, entropy, clipped, kl float64
	for row := range m.samples {
		if !m.valid[row] {
			continue
		}
		log := float64(l.out.logProb[row] - l.in.old[row])
		rho := math.Exp(log)
		kl += rho - 1 - log
		if math.Abs(rho-1) > now.clip {
			clipped++
		}
		policy += max(float64(l.in.policy[row])*rho, float64(l.in.floor[row]))
		v := float64(l.out.value[row])
		if l.in.valueLow != nil {
			v = min(max(v, float64(l.in.valueLow[row])), float64(l.in.valueHigh[row]))
		}
		d := v - float64(l.in.returns[row])
		value += d * d
		entropy += float64(l.out.entropy[row])
	}
	n := float64(m.n)
	value, entropy, kl = value/n, entropy/n, kl/n
	s := &l.sums
	s.policy, s.value, s.entropy, s.clipped = s.policy+policy, s.value+value, s.entropy+entropy, s.clipped+clipped/n
	s.batches++
	s.kl, s.klBatches = s.kl+kl, s.klBatches+1
	s.loss = policy - l.c.EntropyCoef*entropy + l.c.ValueCoef*value
	return kl
}

// measure computes the metrics of the update.
func (l *learner) measure(now coefficients) {
	s, m := &l.sums, l.metrics
	m["train/loss"], m["train/policy_gradient_loss"], m["train/value_loss"] = s.loss, s.policy/s.batches, s.value/s.batches
	m["train/entropy_loss"], m["train/clip_fraction"] = -s.entropy/s.batches, s.clipped/s.batches
	m["train/approx_kl"] = s.kl / s.klBatches
	m["train/learning_rate"], m["train/clip_range"] = now.learningRate, now.clip
	if l.c.ClipRangeVF > 0 {
		m["train/clip_range_vf"] = now.clipVF
	}
	m["train/n_updates"] = float64(l.epochs)
	if t := l.params.View(l.g.logStd); t != nil {
		sum := 0.0
		for _, x := range t.Float32s() {
			sum += math.Exp(float64(x))
		}
		m["train/std"] = sum / float64(t.Len())
	}
	// It is not defined when all returns are equal.
	delete(m, "train/explained_variance")
	if v := rlmath.ExplainedVariance(l.r.value, l.target); !math.IsNaN(v) && !math.IsInf(v, 0) {
		m["train/explained_variance"] = v
	}
}
