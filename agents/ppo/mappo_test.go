package ppo

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// published is what cmd/peers/mappo_vectors.py writes: rollouts of 6 rounds of 4 rows, and what the
// authors' code of MAPPO makes of the parameters.
type published struct {
	Name       string               `json:"name"`
	Initial    map[string][]float32 `json:"initial"`
	Clip       float64              `json:"clip_param"`
	Gamma      float64              `json:"gamma"`
	Lambda     float64              `json:"gae_lambda"`
	LR         float64              `json:"lr"`
	Epochs     int                  `json:"ppo_epoch"`
	VFCoef     float64              `json:"value_loss_coef"`
	EntCoef    float64              `json:"entropy_coef"`
	HuberDelta float64              `json:"huber_delta"`
	Huber      bool                 `json:"use_huber_loss"`
	Clips      bool                 `json:"use_clipped_value_loss"`
	Normalizes bool                 `json:"use_valuenorm"`
	Updates    []publishedUpdate    `json:"updates"`
}

type publishedUpdate struct {
	Obs       []float32            `json:"share_obs"`
	Available []float64            `json:"available"`
	Rewards   []float64            `json:"rewards"`
	Masks     []float64            `json:"masks"`
	Active    []float64            `json:"active"`
	Values    []float64            `json:"values"`
	Bootstrap []float64            `json:"bootstrap"`
	Actions   []float64            `json:"actions"`
	LogProbs  []float32            `json:"log_probs"`
	Returns   []float64            `json:"returns"`
	Moments   []float64            `json:"moments"`
	Metrics   map[string]float64   `json:"metrics"`
	After     map[string][]float32 `json:"after"`
}

// config is that of a case. Advantages are normalised otherwise there, by the test.
func (p *published) config() Config {
	c := Defaults()
	c.NSteps, c.BatchSize, c.NEpochs, c.Gamma, c.GAELambda, c.LearningRate, c.ClipRange, c.EntCoef = 6, -1, p.Epochs, p.Gamma, p.Lambda, p.LR, p.Clip, p.EntCoef
	c.Hidden, c.Activation, c.LayerNorm, c.Central, c.NormalizeAdvantage, c.MaxGradNorm = []int{5, 5}, "relu", true, true, false, 0
	c.VFClip, c.VFCoef = Larger, p.VFCoef
	if p.Clips {
		c.ClipRangeVF = p.Clip
	}
	if p.Huber {
		c.VFLoss, c.HuberDelta = Huber, p.HuberDelta
	} else {
		// They take half of the square.
		c.VFCoef /= 2
	}
	if p.Normalizes {
		c.NormalizeValue = Running
	}
	return c
}

// TestUpdatesOfTheAuthorsOfMAPPO repeats updates of the authors' code, number by number: returns,
// losses, moving averages and all parameters afterwards.
func TestUpdatesOfTheAuthorsOfMAPPO(t *testing.T) {
	text, err := os.ReadFile("testdata/mappo.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []published
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	s := envs.Spec{
		Name: "published", Observation: envs.Dict{{Name: "own", Space: envs.Unbounded(3)}, {Name: "state", Space: envs.Unbounded(4), Central: true}},
		Action: envs.Discrete{N: 3}, Masked: true, Reward: envs.Range{Low: -100, High: 100}, Random: true,
	}
	n, updates := 0, 0
	near := func(what string, got, want float64) {
		t.Helper()
		if n++; math.Abs(got-want) > 2e-4*(1+math.Abs(want)) || math.IsNaN(got) {
			t.Errorf("%s is %g, expected %g", what, got, want)
		}
	}
	engines := testengines.All(t)
	for _, e := range engines {
		for _, p := range cases {
			v := agenttest.Toys(t, 4, s)
			l := agentOf(t, p.config(), v, e, 1).learner
			seg := l.Params.Segment(models.Trainable)
			if len(seg.Specs()) != len(p.Initial) {
				t.Fatalf("%s: %d parameters, expected %d", p.Name, len(seg.Specs()), len(p.Initial))
			}
			for i, spec := range seg.Specs() {
				if copy(seg.View(i).Float32s(), p.Initial[spec.Name]) != spec.Len() {
					t.Fatalf("%s: there is no %s", p.Name, spec.Name)
				}
			}
			for k, u := range p.Updates {
				l.take(&u)
				if err := l.begin(); err != nil {
					t.Fatal(err)
				}
				var mean, square, there float64
				for i, want := range u.Returns {
					if l.Rollout.Has(i) {
						near(p.Name+": a return", l.Target[i], want)
						mean, square, there = mean+l.Advantage[i], square+l.Advantage[i]*l.Advantage[i], there+1
					}
				}
				mean /= there
				std := math.Sqrt(square/there-mean*mean) + 1e-5
				for i := range l.Advantage {
					l.Advantage[i] = (l.Advantage[i] - mean) / std
				}
				m, err := l.Step(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				loss := m["train/value_loss"]
				if !p.Huber {
					loss /= 2
				}
				near(p.Name+": the value's loss", loss, u.Metrics["value_loss"])
				near(p.Name+": the policy's loss", m["train/policy_gradient_loss"], u.Metrics["policy_loss"])
				near(p.Name+": the entropy", -m["train/entropy_loss"], u.Metrics["dist_entropy"])
				if p.Normalizes {
					near(p.Name+": the mean of returns", m["train/return_mean"], u.Moments[0])
					near(p.Name+": their deviation", m["train/return_std"], u.Moments[1])
				}
				for i, spec := range seg.Specs() {
					for j, x := range seg.View(i).Float32s() {
						if near(spec.Name, float64(x), float64(u.After[spec.Name][j])); t.Failed() {
							t.Fatalf("%s, %s, update %d", e.Name(), p.Name, k)
						}
					}
				}
				updates++
			}
		}
	}
	if updates != 3*3*len(engines) || n < 1500*len(engines) {
		t.Errorf("%d updates, %d numbers", updates, n)
	}
}

// take writes a rollout as if it had been recorded.
func (l *learner) take(u *publishedUpdate) {
	r := l.Rollout
	r.Clear()
	r.T, r.Present = r.Rounds, nil
	own, state := tensor.New(tensor.Float32, 24, 3), tensor.New(tensor.Float32, 24, 4)
	for i := range 24 {
		copy(own.Float32s()[3*i:3*i+3], u.Obs[7*i:])
		copy(state.Float32s()[4*i:4*i+4], u.Obs[7*i+3:])
		for a := range 3 {
			r.Mask.Data[3*i+a] = byte(u.Available[3*i+a])
		}
		action := tensor.New(tensor.Int64, 1)
		action.Int64s()[0] = int64(u.Actions[i])
		copy(r.Actions.Data[r.Actions.Size*i:], action.Bytes())
		l.begins[i] = i < 4 || u.Masks[i-4] == 0
		r.Reward[i], r.Discount[i], r.Ended[i], r.Value[i], r.Final[i] = u.Rewards[i], r.Gamma*u.Masks[i], u.Masks[i] == 0, u.Values[i], 0
		if u.Active[i] == 0 {
			if r.Present == nil {
				r.Present = make([]bool, 24)
				for k := range r.Present {
					r.Present[k] = true
				}
			}
			r.Present[i], r.Reward[i], r.Discount[i], r.Ended[i] = false, 0, 0, true
		}
	}
	copy(r.Fields[0].Data, own.Bytes())
	copy(r.Fields[1].Data, state.Bytes())
	copy(l.logProb, u.LogProbs)
	copy(r.Bootstrap, u.Bootstrap)
}
