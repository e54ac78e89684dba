package diversity_test

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/diversity"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/sac"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// probe tells skills from one row of each finished episode, and learns from each once: its
// estimates are of episodes that it has not seen.
type probe struct {
	t        testing.TB
	e        *diversity.Estimator
	x, z, r  []float32
	shuffled bool
	s        *rng.Stream
}

func newProbe(t testing.TB, n, x, skills int, shuffled bool) *probe {
	c := diversity.Defaults()
	c.Features, c.Hidden, c.LearningRate = []string{"x"}, []int{32}, 3e-3
	b := &replay.Batch{Obs: make([]*tensor.Tensor, 2), NextObs: make([]*tensor.Tensor, 2), Reward: make([]float32, n)}
	e, err := diversity.New(c, &agents.Setup{Engine: testengines.Fastest(t), Key: rng.New(4), Spec: envs.Spec{
		Name: "probe", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(x)}, {Name: wrap.SkillField, Space: envs.NewBox(0, 1, skills)}}, Action: envs.NewBox(-1, 1, 1),
	}}, b)
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, e)
	return &probe{t, e, b.NextObs[0].Float32s(), b.Obs[1].Float32s(), b.Reward, shuffled, rng.New(6).Stream()}
}

// see takes what a row of each episode shows, and its skill.
func (p *probe) see(x, z []float32) {
	copy(p.x, x)
	copy(p.z, z)
	if n, k := len(p.r), len(z)/len(p.r); p.shuffled {
		p.s.Shuffle(n, func(i, j int) {
			for c := range k {
				p.z[i*k+c], p.z[j*k+c] = p.z[j*k+c], p.z[i*k+c]
			}
		})
	}
	if err := p.e.Pay(p.r, 0, 0); err != nil {
		p.t.Fatal(err)
	}
}

// TestMarket: skills of portfolios in a market are recognised by the portfolios at the end of
// episodes. They are not told when they are shuffled among the episodes, nor from the calendar and
// the prices of the last day, which would say that they were told from the times at which they were
// drawn.
func TestMarket(t *testing.T) {
	longtest.Slow(t)
	const worlds, skills, length = 64, 4, 6
	cfg, _, err := experiment.Load("demo", []string{"env.window=2", "env.actions=weights", "env.mask=market", "env.data.assets=[AAPL, IBM, MSFT]"})
	if err != nil {
		t.Fatal(err)
	}
	_, factory, _, err := kinds.All().Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, factory)
	market := factory.(trading.Opened)
	c := market.Source().Config()
	c.Episode = trading.Episode{Kind: trading.Random, Length: length, End: trading.Truncate}
	source, err := trading.NewSource(market.Data().Market, c)
	if err != nil {
		t.Fatal(err)
	}
	v := agenttest.Vector(t, worlds, func() (*wrap.Skill, error) {
		e, err := source.Env(market.Data().Splits[envs.Train])
		if err != nil {
			return nil, err
		}
		return wrap.NewSkill(e, wrap.Skills{Dim: skills})
	})
	d := diversity.Defaults()
	d.Features, d.Hidden, d.LearningRate, d.Beta = []string{trading.PositionField}, []int{32}, 3e-3, 1
	conf := sac.Defaults()
	conf.Hidden, conf.LearningRate, conf.BatchSize, conf.BufferSize, conf.LearningStarts, conf.GradientSteps, conf.Gamma, conf.EntCoef, conf.Diversity = []int{32}, 3e-3, 64, 50_000, 600, 4, 0.5, sac.EntCoef{Value: 0.02}, &d
	conf.CrossAsset.Mix = "none"
	if conf.Encoder, err = configs.NewKinded("mlp", map[string]any{"hidden": []int{16}}); err != nil {
		t.Fatal(err)
	}
	m, err := sac.NewMaker(conf)
	if err != nil {
		t.Fatal(err)
	}
	r := agenttest.NewTraining(t, agenttest.Agent(t, m, v, testengines.Fastest(t), 1), v)
	r.Run(t, 400)
	b, spec := v.Batch(), v.Spec()
	position, skill := spec.Observation.Index(trading.PositionField), spec.Observation.Index(wrap.SkillField)
	window := spec.Observation[0].Window
	table := window.Table()
	row := table.Len() / table.Shape()[0]
	prices := make([]float32, worlds*(row+1))
	probes := map[string]*probe{
		"portfolio": newProbe(t, worlds, spec.Observation[position].Space.Shape()[0], skills, false), "shuffled": newProbe(t, worlds, spec.Observation[position].Space.Shape()[0], skills, true),
		"calendar and prices": newProbe(t, worlds, row+1, skills, false),
	}
	measured := map[string]agents.Metrics{}
	episodes := 0
	for batch := range 400 {
		r.Round(t)
		for len(b.Ended) == 0 {
			r.Round(t)
		}
		if len(b.Ended) != worlds {
			t.Fatalf("%d of %d episodes have ended", len(b.Ended), worlds)
		}
		episodes += len(b.Ended)
		for i := range worlds {
			at := int(b.FinalRows[0][i])
			copy(prices[i*(row+1):], table.Float32s()[at*row:][:row])
			prices[(i+1)*(row+1)-1] = float32(at) / float32(table.Shape()[0])
		}
		for what, p := range sorted.All(probes) {
			x := b.Final[position].Float32s()
			if what == "calendar and prices" {
				x = prices
			}
			p.see(x, b.Final[skill].Float32s())
			if batch == 199 || batch == 399 {
				measured[what] = agents.Metrics{}
				p.e.Measure(measured[what])
			}
		}
	}
	for what, m := range sorted.All(measured) {
		mi, accuracy := m["diversity/mi"], m["diversity/accuracy"]
		t.Logf("%s: %.3f of %.3f nats, accuracy %.3f", what, mi, m["diversity/bound"], accuracy)
		if told := what == "portfolio"; told && !(mi > 0.7*math.Log(skills)) || !told && !(mi < 0.02 && math.Abs(accuracy-1.0/skills) < 0.03) {
			t.Errorf("%s: %g nats, accuracy %g", what, mi, accuracy)
		}
	}
	if len(measured) != 3 || episodes != 400*worlds {
		t.Errorf("%d probes of %d episodes", len(measured), episodes)
	}
}
