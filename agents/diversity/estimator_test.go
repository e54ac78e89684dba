package diversity

import (
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// made returns an estimator of a skill from a vector x, and the places of both in a batch.
func made(t testing.TB, c Config, batch, x int, skill envs.Space) (e *Estimator, features, skills []float32, rewards []float32) {
	t.Helper()
	c.Features = []string{"x"}
	s := agents.Setup{Engine: testengines.Fastest(t), Key: rng.New(1), Spec: envs.Spec{
		Name: "test", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(x)}, {Name: wrap.SkillField, Space: skill}}, Action: envs.NewBox(-1, 1, 1),
	}}
	b := &replay.Batch{Obs: make([]*tensor.Tensor, 2), NextObs: make([]*tensor.Tensor, 2), Reward: make([]float32, batch)}
	e, err := New(c, &s, b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, b.NextObs[0].Float32s(), b.Obs[1].Float32s(), b.Reward
}

// paid takes updates on batches that draw makes, and returns the metrics of the last ones.
func paid(t testing.TB, e *Estimator, rewards []float32, updates, last int, draw func()) agents.Metrics {
	t.Helper()
	m := agents.Metrics{}
	for i := range updates {
		if i == updates-last {
			e.Measure(m)
		}
		draw()
		if err := e.Pay(rewards, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	e.Measure(m)
	return m
}

// TestStaircase is the toy of Poole et al. (2019): two vectors of 20 dimensions, correlated so that
// they share so many nats. InfoNCE of 64 pairs follows 2 nats, and cannot follow 10.
func TestStaircase(t *testing.T) {
	longtest.Slow(t)
	c := Defaults()
	c.Kind, c.LearningRate, c.Hidden = InfoNCE, 5e-4, []int{128}
	e, x, z, rewards := made(t, c, 64, 20, envs.Unbounded(20))
	s, noise := rng.New(2).Stream(), make([]float32, len(x))
	n := 0
	for _, want := range []struct{ nats, low, high float64 }{{2, 1.6, 2.05}, {10, 3.9, math.Log(64)}} {
		rho := math.Sqrt(1 - math.Exp(-2*want.nats/20))
		m := paid(t, e, rewards, 2500, 300, func() {
			s.FillNormal32(x, 0, 1)
			s.FillNormal32(noise, 0, 1)
			for i := range z {
				z[i] = float32(rho*float64(x[i]) + math.Sqrt(1-rho*rho)*float64(noise[i]))
			}
		})
		t.Logf("%g nats: %v", want.nats, m)
		if mi := m["diversity/mi"]; !(mi >= want.low && mi <= want.high) || m["diversity/bound"] != math.Log(64) {
			t.Errorf("%g nats: an estimate of %g, expected %g to %g", want.nats, mi, want.low, want.high)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d levels", n)
	}
}

// TestExactCritic: with the critic that is the conditional density, of one dimension with the
// correlation 0.8, 10,000 pairs give −½·ln 0.36 = 0.511.
func TestExactCritic(t *testing.T) {
	const n, rows, rho = 10_000, 250, 0.8
	g := layer.New("exact", rng.New(1), layer.Options{})
	dims := []onnx.Dim{onnx.Known(rows), onnx.Known(n)}
	own, hit := choice(g, g.Input("scores", tensor.Float32, dims...), g.Input("own", tensor.Float32, dims...))
	g.Output("own_log_prob", own)
	g.Output("hit", hit)
	net, _, err := g.Network(models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	params, err := models.NewParams(net, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer params.Close()
	p, err := program.New(net, params, program.Config{Engine: testengines.Fastest(t), Batch: rows, BatchSymbol: layer.Batch})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, x, z := rng.New(3).Stream(), make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = s.Normal()
		z[i] = rho*x[i] + math.Sqrt(1-rho*rho)*s.Normal()
	}
	sum, pairs := 0.0, 0
	scores, chosen, out := p.Input("scores").Float32s(), p.Input("own").Float32s(), p.Output("own_log_prob").Float32s()
	for first := 0; first < n; first += rows {
		clear(chosen)
		for i := range rows {
			for k, z := range z {
				d := x[first+i] - rho*z
				scores[i*n+k] = float32(-d * d / (2 * (1 - rho*rho)))
			}
			chosen[i*n+first+i] = 1
		}
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
		for _, l := range out {
			sum += float64(l) + math.Log(n)
			pairs++
		}
	}
	if mi := sum / n; math.Abs(mi-0.511) > 0.02 || pairs != n {
		t.Errorf("%g nats of %d pairs, expected 0.511", mi, pairs)
	}
}

// TestDIAYN: features that are the skill pay up to the bound, features that have nothing to do with
// it pay nothing, for both kinds of skill, by both kinds of estimator.
func TestDIAYN(t *testing.T) {
	cases := 0
	for _, kind := range []string{DIAYN, InfoNCE} {
		for _, sphere := range []bool{false, true} {
			for _, telling := range []bool{true, false} {
				c, skill := Defaults(), envs.NewBox(0, 1, 4)
				if sphere {
					skill = envs.NewBox(-1, 1, 4)
				}
				c.Kind, c.Hidden, c.LearningRate, c.Normalize, c.Beta = kind, []int{32}, 3e-3, false, 0.25
				e, x, z, rewards := made(t, c, 64, 4, skill)
				s := rng.New(4).Stream()
				m := paid(t, e, rewards, 800, 100, func() {
					clear(z)
					clear(rewards)
					for i := 0; i < len(z); i += 4 {
						if !sphere {
							z[i+s.IntN(4)] = 1
							continue
						}
						s.FillNormal32(z[i:i+4], 0, 1)
						norm := 0.0
						for _, v := range z[i : i+4] {
							norm += float64(v * v)
						}
						for k := range 4 {
							z[i+k] /= float32(math.Sqrt(norm))
						}
					}
					if s.FillNormal32(x, 0, 1); telling {
						copy(x, z)
					}
				})
				t.Logf("%s, sphere %t, telling %t: %v", kind, sphere, telling, m)
				// A quarter of 64 transitions have the same one of 4 skills.
				most := m["diversity/bound"]
				if kind == InfoNCE && !sphere {
					most = math.Log(4)
				}
				mi := m["diversity/mi"]
				if telling && !(mi > 0.9*most) || !telling && !(math.Abs(mi) < 0.1*most) || mi > m["diversity/bound"] {
					t.Errorf("%s, sphere %t, telling %t: %g of %g", kind, sphere, telling, mi, most)
				}
				if b := m["diversity/bonus"]; math.Abs(b-0.25*mi) > 1e-9 || m["diversity/scale"] != 1 {
					t.Errorf("%g was paid for %g", b, mi)
				}
				mean := 0.0
				for _, r := range rewards {
					mean += float64(r) / float64(len(rewards))
				}
				if math.Abs(mean-0.25*mi) > 0.25 {
					t.Errorf("rewards are %g", mean)
				}
				cases++
			}
		}
	}
	if cases != 8 {
		t.Errorf("%d cases", cases)
	}
}

// TestHypergeometric compares with closed forms: ₀F₁(; ½; x²/4) = cosh x, ₀F₁(; 3/2; x²/4) =
// sinh(x)/x.
func TestHypergeometric(t *testing.T) {
	for _, x := range []float64{0.01, 1, 5, 60, 400} {
		_, a := hypergeometric(0.5, x*x/4)
		_, b := hypergeometric(1.5, x*x/4)
		cosh := x + math.Log1p(math.Exp(-2*x)) - math.Ln2
		sinh := x + math.Log1p(-math.Exp(-2*x)) - math.Log(2*x)
		if math.Abs(a-cosh) > 1e-9 || math.Abs(b-sinh) > 1e-9 {
			t.Errorf("%g: %g and %g, expected %g and %g", x, a, b, cosh, sinh)
		}
	}
}

// TestMisfits: features that there are not or that must not be, and skills that there are not.
func TestMisfits(t *testing.T) {
	table := tensor.New(tensor.Float32, 10, 2)
	w, err := envs.NewWindow(table, 4)
	if err != nil {
		t.Fatal(err)
	}
	spec := envs.Spec{Name: "market", Observation: envs.Dict{
		{Name: "window", Space: envs.Unbounded(4, 2), Window: w}, {Name: "position", Space: envs.NewBox(0, 1, 1)}, {Name: wrap.SkillField, Space: envs.NewBox(0, 1, 3)},
	}, Action: envs.NewBox(-1, 1, 1)}
	n := 0
	for says, features := range sorted.All(map[string][]string{
		`agent.diversity.features[1]: "positon" is no field of the observation of market; expected action or one of ["position"]`: {"action", "positon"},
		`agent.diversity.features[0]: "window" [4 2] of market is a window: prices`:                                               {"window"},
		`agent.diversity.features[0]: "skill" is what is to be told`:                                                              {"skill"},
		`agent.diversity.features[1]: "position" is given twice`:                                                                  {"position", "position"},
	}) {
		c := Defaults()
		c.Features = features
		if _, err := New(c, &agents.Setup{Spec: spec}, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", features, err)
		}
		n++
	}
	spec.Observation = spec.Observation[:2]
	if _, err := New(Defaults(), &agents.Setup{Spec: spec}, nil); err == nil || !strings.Contains(err.Error(), "the observations of market have none; give them one by wrappers.skill") {
		t.Error(err)
	}
	if n != 4 {
		t.Errorf("%d cases", n)
	}
}
