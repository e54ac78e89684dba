package ppo

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// sample is what a diary has of one step.
type sample struct {
	x, final, next    []float64
	mask              []bool
	action            []float64
	logProb, value    float64
	reward, discount  float64
	begins, last      bool
	advantage, target float64
	env               int
}

// diary writes down the records of a recorder, in float64, sample by sample in the order of
// the rounds.
type diary struct {
	agents.Recorder
	spec    envs.Spec
	samples []*sample
}

// row64 returns row e of observations as the torso flattens them: discrete fields as one-hot
// vectors.
func row64(spec envs.Spec, obs []*tensor.Tensor, e int) []float64 {
	var x []float64
	for i, t := range obs {
		if d, ok := spec.Observation[i].Space.(envs.Discrete); ok {
			for k := range d.N {
				v := 0.0
				if t.Int64s()[e] == int64(k) {
					v = 1
				}
				x = append(x, v)
			}
			continue
		}
		n := t.Len() / t.Shape()[0]
		for _, v := range t.Float32s()[e*n : (e+1)*n] {
			x = append(x, float64(v))
		}
	}
	return x
}

func (d *diary) Begin(b *vector.Batch, dec *vector.Decision) error {
	for e := range b.Type {
		s := &sample{x: row64(d.spec, b.Obs, e), logProb: float64(dec.LogProb[e]), value: float64(dec.Value[e]), begins: b.Type[e] != envs.Mid, env: e}
		if b.Mask != nil {
			k := b.Mask.Shape()[1]
			s.mask = slices.Clone(b.Mask.Bools()[e*k : (e+1)*k])
		}
		stored := network.StoredOf(dec)
		n := stored.Len() / len(b.Type)
		for i := e * n; i < (e+1)*n; i++ {
			switch stored.DType() {
			case tensor.Float32:
				s.action = append(s.action, float64(stored.Float32s()[i]))
			case tensor.Bool:
				s.action = append(s.action, float64(stored.Bytes()[i]))
			default:
				s.action = append(s.action, float64(stored.Int64s()[i]))
			}
		}
		d.samples = append(d.samples, s)
	}
	return d.Recorder.Begin(b, dec)
}

func (d *diary) End(b *vector.Batch) error {
	n := len(b.Type)
	for e, s := range d.samples[len(d.samples)-n:] {
		s.reward, s.discount, s.last = b.Reward[e], b.Discount[e], b.Type[e] == envs.Last
		s.final, s.next = row64(d.spec, b.Final, e), row64(d.spec, b.Obs, e)
	}
	return d.Recorder.End(b)
}

// naive is the policy and the value in float64, as plain loops.
type naive struct {
	c     Config
	spec  envs.Spec
	p     map[string][]float64
	fixed *naive // whose features no gradient goes to: those that gSDE's deviations, or the value of a shared memory, come from
}

func newNaive(c Config, spec envs.Spec, params *models.Params) *naive {
	n := &naive{c: c, spec: spec, p: map[string][]float64{}}
	for _, s := range params.Segments() {
		for i, spec := range s.Specs() {
			var list []float64
			for _, x := range s.View(i).Float32s() {
				list = append(list, float64(x))
			}
			n.p[spec.Name] = list
		}
	}
	return n
}

// linear is W·x + b for the parameters of a name.
func (n *naive) linear(name string, x []float64) []float64 {
	w, b := n.p[name+".weight"], n.p[name+".bias"]
	out := make([]float64, len(w)/len(x))
	for i := range out {
		if b != nil {
			out[i] = b[i]
		}
		for k, v := range x {
			out[i] += w[i*len(x)+k] * v
		}
	}
	return out
}

// memory is the state h, c of the LSTMs of actor and critic.
type memory64 map[string][2][]float64

func (n *naive) lstm(owner string, x []float64, m memory64) []float64 {
	s := m[owner]
	gates, recurrent := n.linear(owner+".lstm0.input", x), n.linear(owner+".lstm0.recurrent", s[0])
	k := len(gates) / 4
	h, c := make([]float64, k), make([]float64, k)
	for i := range k {
		gate := func(j int) float64 { return gates[j*k+i] + recurrent[j*k+i] }
		sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
		c[i] = sigmoid(gate(1))*s[1][i] + sigmoid(gate(0))*math.Tanh(gate(3))
		h[i] = sigmoid(gate(2)) * math.Tanh(c[i])
	}
	m[owner] = [2][]float64{h, c}
	return h
}

// tower is what lies between an observation and a head.
func (n *naive) tower(owner string, x []float64, m memory64) []float64 {
	switch {
	case m == nil:
	case owner == "critic" && n.c.Recurrent.Critic == Shared:
		// The policy's memory, which the value does not train.
		own := memory64{"actor": m["critic"]}
		x = n.fixed.lstm("actor", x, own)
		m["critic"] = own["actor"]
	default:
		x = n.lstm(owner, x, m)
	}
	for i := range n.c.Hidden {
		x = n.linear(fmt.Sprintf("%s.hidden.fc%d", owner, i), x)
		for k := range x {
			x[k] = math.Tanh(x[k])
		}
	}
	return x
}

func (n *naive) value(x []float64, m memory64) float64 {
	return n.linear("critic.value", n.tower("critic", x, m))[0]
}

// evaluate returns log-probability and entropy of a sample's action.
func (n *naive) evaluate(s *sample, m memory64) (logProb, entropy float64) {
	z := n.tower("actor", s.x, m)
	sizes := headsOf(n.spec.Action)
	if sizes == nil {
		mean, logStd := n.linear("actor.mean", z), n.p["actor.log_std"]
		if n.c.UseSDE {
			if n.fixed != nil {
				z = n.fixed.tower("actor", s.x, nil)
			}
			sigma := make([]float64, len(mean))
			for j := range sigma {
				v := 1e-6
				for k := range z {
					v += z[k] * z[k] * math.Exp(2*logStd[k*len(mean)+j])
				}
				sigma[j] = math.Log(v) / 2
			}
			logStd = sigma
		}
		return rlmath.GaussianLogProb(s.action, mean, logStd), rlmath.GaussianEntropy(logStd)
	}
	logits, mask := n.linear("actor.logits", z), s.mask
	for h, k := range sizes {
		sum := 0.0
		p := make([]float64, k)
		for a := range k {
			if mask == nil || mask[a] {
				p[a] = math.Exp(logits[a])
				sum += p[a]
			}
		}
		for a := range p {
			if p[a] /= sum; p[a] > 0 {
				entropy -= p[a] * math.Log(p[a])
			}
		}
		logProb += math.Log(p[int(s.action[h])])
		logits = logits[k:]
		if mask != nil {
			mask = mask[k:]
		}
	}
	return logProb, entropy
}

// estimate writes advantages and targets of a rollout by the recursion of GAE, environment by
// environment.
func (n *naive) estimate(samples []*sample, envs int) {
	for e := range envs {
		next, a := 0.0, 0.0
		for i := len(samples) - envs + e; i >= 0; i -= envs {
			s := samples[i]
			switch {
			case s.last:
				next, a = n.value(s.final, nil), 0
			case i+envs >= len(samples):
				next = n.value(s.next, nil)
			default:
				next = samples[i+envs].value
			}
			g := n.c.Gamma * s.discount
			delta := s.reward + g*next - s.value
			if s.last {
				a = delta
			} else {
				a = delta + g*n.c.GAELambda*a
			}
			s.advantage, s.target = a, s.value+a
		}
	}
}

// terms are the loss of a minibatch and what it consists of, all means.
type terms struct{ loss, policy, value, entropy, kl, clipped float64 }

// loss is the definition, over samples with advantages as they are in the minibatch. logProbs,
// entropies and values are of the same samples.
func (n *naive) loss(samples []*sample, advantages, logProbs, entropies, values []float64, now coefficients) terms {
	var t terms
	k := float64(len(samples))
	for i, s := range samples {
		ratio := math.Exp(logProbs[i] - s.logProb)
		t.policy -= min(ratio*advantages[i], min(max(ratio, 1-now.clip), 1+now.clip)*advantages[i]) / k
		v := values[i]
		if n.c.ClipRangeVF > 0 {
			v = s.value + min(max(v-s.value, -now.clipVF), now.clipVF)
		}
		t.value += (v - s.target) * (v - s.target) / k
		t.entropy += entropies[i] / k
		t.kl += (ratio - 1 - math.Log(ratio)) / k
		if math.Abs(ratio-1) > now.clip {
			t.clipped += 1 / k
		}
	}
	t.loss = t.policy + n.c.VFCoef*t.value - n.c.EntCoef*t.entropy
	return t
}

// normalised returns the advantages of samples with mean 0 and deviation 1.
func normalised(samples []*sample) []float64 {
	var mean, square float64
	k := float64(len(samples))
	for _, s := range samples {
		mean += s.advantage / k
	}
	for _, s := range samples {
		square += (s.advantage - mean) * (s.advantage - mean) / (k - 1)
	}
	var out []float64
	for _, s := range samples {
		if len(samples) == 1 {
			return []float64{s.advantage}
		}
		out = append(out, (s.advantage-mean)/(math.Sqrt(square)+1e-8))
	}
	return out
}
