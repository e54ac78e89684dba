package agenttest

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// array is a tensor of a fixture.
type array struct {
	Shape []int     `json:"shape"`
	Data  []float64 `json:"data"`
}

// Fill copies an array's numbers into a tensor of any type.
func (a array) Fill(t testing.TB, dst *tensor.Tensor) {
	t.Helper()
	for i, x := range a.Data {
		switch dst.DType() {
		case tensor.Float32:
			dst.Float32s()[i] = float32(x)
		case tensor.Int64:
			dst.Int64s()[i] = int64(x)
		case tensor.Bool:
			dst.Bools()[i] = x != 0
		default:
			t.Fatalf("numbers into %v", dst)
		}
	}
}

// Fixture is what another implementation's updates did; cmd/peers/sac_td3_vectors.py,
// d3rlpy_vectors.py and qrdqn_vectors.py write it.
// Each algorithm has some of the options.
type Fixture struct {
	Name    string `json:"name"`
	Options struct {
		EntCoef     string `json:"ent_coef"`
		UseSDE      bool   `json:"use_sde"`
		Hidden      []int  `json:"hidden"`
		Actions     int    `json:"actions"`
		Masked      bool   `json:"masked"`
		PolicyDelay int    `json:"policy_delay"`
		Critics     int    `json:"n_critics"`

		NActionSamples     int     `json:"n_action_samples"`
		ConservativeWeight float64 `json:"conservative_weight"`
		AlphaThreshold     float64 `json:"alpha_threshold"`
		AlphaLearningRate  float64 `json:"alpha_learning_rate"`
		SoftQBackup        bool    `json:"soft_q_backup"`
		Beta               float64 `json:"beta"`

		NQuantiles  int     `json:"n_quantiles"`
		Tau         float64 `json:"tau"`
		MaxGradNorm float64 `json:"max_grad_norm"`
	} `json:"options"`
	Initial map[string]array `json:"initial"`
	Updates []struct {
		Obs      array              `json:"obs"`
		Next     array              `json:"next"`
		Action   array              `json:"action"`
		Reward   array              `json:"reward"`
		Discount array              `json:"discount"`
		Mask     array              `json:"mask"`
		NextMask array              `json:"next_mask"`
		Noise    []array            `json:"noise"`
		Metrics  map[string]float64 `json:"metrics"`
	} `json:"updates"`
	Final      map[string]array `json:"final"`
	LogEntCoef float64          `json:"log_ent_coef"`
}

// Settings are those of the fixture's updates over a configuration's own.
func (f *Fixture) Settings(s *offpolicy.Settings) {
	s.LearningRate, s.Gamma, s.Tau, s.BatchSize = 1e-2, 0.9, 0.1, len(f.Updates[0].Reward.Data)
}

// spec is that of the fixture's environment.
func (f *Fixture) spec() envs.Spec { return Spec(f.Options.Actions, f.Options.Masked) }

// Spec is that of a fixture's environment, with so many Discrete actions, or 0 for a Box.
func Spec(actions int, masked bool) envs.Spec {
	s := envs.Spec{Name: "toy", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(3)}}, Action: envs.NewBox(-1, 1, 2), Reward: envs.Range{Low: -9, High: 9}}
	if actions > 0 {
		s.Action, s.Masked = envs.Discrete{N: actions}, masked
	}
	return s
}

// init gives an agent the fixture's parameters.
func (f *Fixture) init(t testing.TB) func(map[string]*tensor.Tensor) error {
	return func(values map[string]*tensor.Tensor) error {
		n := 0
		for name, v := range f.Initial {
			if offpolicy.Below(name, offpolicy.TargetScope) {
				continue
			}
			if values[name] == nil {
				t.Fatalf("the agent has no parameter %q", name)
			}
			v.Fill(t, values[name])
			n++
		}
		if n != len(values) {
			t.Errorf("%d parameters in the fixture, %d in the agent", n, len(values))
		}
		return nil
	}
}

// Updates is an agent whose updates are compared.
type Updates struct {
	*offpolicy.Learner
	// Noises are where the fixture's noises go; those without a place are left out.
	Noises [][]float32
	// Learn takes an update with the batch and the noises that are there, and returns metrics;
	// these are compared.
	Learn func() (agents.Metrics, error)
	// LogEntCoef, unless nil, is what becomes of a temperature.
	LogEntCoef []float32
}

// ValueBased returns the updates of a learner of the value-based family. Its target network follows
// after an update, as d3rlpy's and Stable-Baselines3's do.
func ValueBased(l *valuebased.Learner) Updates {
	net, _ := l.Policy()
	return Updates{Learner: &offpolicy.Learner{Batch: l.Batch, Networks: &offpolicy.Networks{Specs: net.Specs}, Params: l.Params}, Learn: func() (agents.Metrics, error) {
		if l.Ahead != 1 {
			return nil, fmt.Errorf("%d batches at once", l.Ahead)
		}
		if err := l.Evaluate(); err != nil {
			return nil, err
		}
		err := l.Descend(0, 1)
		l.Follow(l.Updates-1, l.Updates)
		return agents.Metrics{"train/loss": float64(l.Loss[0])}, err
	}}
}

// UpdatesAgree gives learners batches and noise, on every engine, and compares metrics, all
// parameters, target networks and the temperature with those of another implementation. It returns
// the number of updates and of numbers that were compared. changes edit the agents' setups.
func UpdatesAgree(t *testing.T, path string, maker func(f *Fixture) (agents.Maker, error), of func(agents.Agent) Updates, changes ...func(*agents.Setup)) (updates, numbers int) {
	t.Helper()
	SplitSmall(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var fixtures []Fixture
	if err := json.Unmarshal(data, &fixtures); err != nil {
		t.Fatal(err)
	}
	for _, e := range testengines.All(t) {
		for _, threads := range []int{1, 2} {
			for _, f := range fixtures {
				m, err := maker(&f)
				if err != nil {
					t.Fatal(err)
				}
				l := of(Agent(t, m, Toys(t, 1, f.spec()), e, threads, append(changes, func(s *agents.Setup) { s.Init = f.init(t) })...))
				near := func(what string, got, want float64) {
					t.Helper()
					if numbers++; !(math.Abs(got-want) <= 1e-5*(1+math.Abs(want))) {
						t.Errorf("%s, %d threads, %s: %s is %v, expected %v", e.Name(), threads, f.Name, what, got, want)
					}
				}
				for _, u := range f.Updates {
					u.Obs.Fill(t, l.Batch.Obs[0])
					if l.Batch.NextObs != nil {
						u.Next.Fill(t, l.Batch.NextObs[0])
					}
					u.Action.Fill(t, l.Batch.Action)
					u.Reward.Fill(t, tensor.Of(l.Batch.Reward, len(l.Batch.Reward)))
					u.Discount.Fill(t, tensor.Of(l.Batch.Discount, len(l.Batch.Discount)))
					if l.Batch.Mask != nil {
						u.Mask.Fill(t, l.Batch.Mask)
						u.NextMask.Fill(t, l.Batch.NextMask)
					}
					for i, x := range l.Noises {
						u.Noise[i].Fill(t, tensor.Of(x, len(x)))
					}
					got, err := l.Learn()
					if err != nil {
						t.Fatal(err)
					}
					for tag, x := range got {
						near(tag, x, u.Metrics[tag])
					}
					updates++
				}
				if l.LogEntCoef != nil {
					near("log α", float64(l.LogEntCoef[0]), f.LogEntCoef)
				}
				if len(f.Final) != len(l.Networks.Specs) {
					t.Errorf("%s: %d parameters in the fixture, %d in the agent", f.Name, len(f.Final), len(l.Networks.Specs))
				}
				for name, want := range f.Final {
					got := l.Params.View(name)
					if got == nil {
						t.Fatalf("the agent has no parameter %q", name)
					}
					for i, x := range want.Data {
						near(name, float64(got.Float32s()[i]), x)
					}
				}
			}
		}
	}
	return updates, numbers
}
