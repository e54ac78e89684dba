package ope

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/decisionlog"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The bandit has two contexts, equally likely, and three arms, whose rewards are normal around
// mean.
var (
	logging   = [2][3]float64{{0.5, 0.3, 0.2}, {0.2, 0.2, 0.6}}
	candidate = [2][3]float64{{0.2, 0.2, 0.6}, {0.5, 0.3, 0.2}}
	arms      = [2][3]float64{{1, 0, 2}, {3, 1, 0}}
)

// TestServedBandit: decisions that are logged with their propensities, and rewards that are joined
// by id, give the candidate's value. Of intervals of 95 %, a share has it that 95 % gives but once
// in a thousand.
func TestServedBandit(t *testing.T) {
	longtest.Nightly(t)
	const sets, n = 100, 150
	spec := envs.Spec{Name: "bandit", Observation: envs.Dict{{Name: "context", Space: envs.Discrete{N: 2}}}, Action: envs.Discrete{N: 3}, Reward: envs.Range{Low: -20, High: 20}}
	value := 0.0
	for c := range 2 {
		for a, p := range candidate[c] {
			value += p * arms[c][a] / 2
		}
	}
	layout := &decisionlog.Layout{Obs: []decisionlog.Column{{Name: "context", DType: tensor.Int64, N: 1}}, Action: decisionlog.Column{Name: "action", DType: tensor.Int64, N: 1}}
	within, checked := map[string]int{}, 0
	for k := range sets {
		key, dir := rng.New(31).Split("set", k), t.TempDir()
		s := key.Stream()
		w, err := decisionlog.NewWriter(dir, "bandit")
		if err != nil {
			t.Fatal(err)
		}
		var rewards strings.Builder
		rewards.WriteString("request,reward\n")
		for i := range n {
			c := s.IntN(2)
			a := s.Categorical([]float32{float32(math.Log(logging[c][0])), float32(math.Log(logging[c][1])), float32(math.Log(logging[c][2]))})
			r := decisionlog.Row{Time: int64(i), Request: fmt.Sprint(i), Data: binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(c)), uint64(a)), LogProb: math.Log(logging[c][a]), Reward: math.NaN()}
			if err := w.Add(layout, &r); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&rewards, "%d,%v\n", i, arms[c][a]+s.Normal())
		}
		if err := w.Publish(); err != nil {
			t.Fatal(err)
		}
		table, to := filepath.Join(dir, "rewards.csv"), filepath.Join(dir, "set")
		if err := atomicfile.WriteBytes(table, []byte(rewards.String())); err != nil {
			t.Fatal(err)
		}
		if _, report, err := offline.ImportDecisions(t.Context(), offline.Join{Dir: dir, Model: "bandit", Rewards: table, Missing: math.NaN()}, offline.Describe(spec), to, nil); err != nil || report != (offline.JoinReport{}) {
			t.Fatal(report, err)
		}
		set, err := offline.Open(to)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Read(t.Context(), set, spec)
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPolicy(spec)
		if err != nil {
			t.Fatal(err)
		}
		b := frameOf(t, spec)
		for row := range d.rows() {
			d.obs.Put(b, 0, row)
			for _, q := range candidate[b.Obs[0].Int64s()[0]] {
				p.logProbs = append(p.logProbs, float32(math.Log(q)))
			}
		}
		config := Defaults()
		config.Seed, config.Samples, config.Estimators = uint64(k), 200, []string{PDIS, WPDIS}
		var tools Tools
		if k == 0 {
			// A fitted q serves dr and wdr; once is enough for their values.
			config.Estimators, config.FQE.Updates, config.FQE.Hidden = nil, 1500, []int{16}
			tools.Engine = testengines.All(t)[0]
		}
		list, err := Evaluate(t.Context(), config, d, p, tools)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list[1:] {
			if e.Low <= value && value <= e.High {
				within[e.Estimator]++
			}
			if k == 0 {
				if math.Abs(e.Value-value) > 0.6 || e.EffectiveSampleSize > n || e.EffectiveSampleSize < n/4 {
					t.Errorf("%+v, expected %g", e, value)
				}
				checked++
			}
		}
	}
	slack := 3.29 * math.Sqrt(0.95*0.05/sets)
	for _, name := range []string{PDIS, WPDIS} {
		if share := float64(within[name]) / sets; math.Abs(share-0.95) > slack {
			t.Errorf("%s: %.3f of %d intervals have the value, expected 0.95 ± %.3f", name, share, sets, slack)
		} else {
			t.Logf("%s: %.3f", name, share)
		}
	}
	if checked != len(Estimators()) {
		t.Errorf("%d estimators", checked)
	}
}
