package app

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/ope"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// tinyCartPole trains for a moment, and publishes.
const tinyCartPole = `
env: {kind: cartpole, max_steps: 30}
agent: {kind: ppo, hidden: [8], n_steps: 32}
train: {num_envs: 2, total_env_steps: 256, threads: 1, validation: {every_steps: 128}}
eval: {episodes: 2}
publish: {observations: 50}
`

// tinyDQN is a policy that takes its best action.
var tinyDQN = strings.Replace(tinyCartPole, "kind: ppo, hidden: [8], n_steps: 32", "kind: dqn, hidden: [8], batch_size: 16, learning_starts: 20", 1)

// TestEvaluateOffline estimates policies from data that they have recorded themselves, where all
// weights are 1, and from those of others, in a published model and in a checkpoint.
func TestEvaluateOffline(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	ppo, sac, dqn := apptest.Trained(t, tinyCartPole), apptest.Trained(t, tinyPendulum), apptest.Trained(t, tinyDQN)
	const episodes = 10
	data := map[string]string{}
	for name, args := range sorted.All(map[string][]string{
		"ppo": {ppo, "--stochastic"}, "sac": {sac, "--stochastic"}, "noisy": {sac, "--noise", "0.3"}, "random": {dqn, "--random-episodes", "1"}, "greedy": {dqn, "--random-actions", "0.5"},
	}) {
		data[name] = filepath.Join(dir, name)
		apptest.Succeed(t, append([]string{"record", "-o", data[name], "--episodes", strconv.Itoa(episodes)}, args...)...)
	}
	model := []string{"--config", filepath.Join(sac, "config.yaml")}
	cases := 0
	for what, x := range sorted.All(map[string]struct {
		args []string
		data string
		// own says that all weights are 1, and known which estimators have a value.
		own   bool
		known []string
	}{
		"categorical, own":     {[]string{ppo, "--stochastic"}, "ppo", true, ope.Estimators()},
		"squashed, own":        {[]string{sac, "--stochastic"}, "sac", true, ope.Estimators()},
		"squashed, own, model": {append([]string{filepath.Join(sac, "best.onnx"), "--stochastic"}, model...), "sac", true, ope.Estimators()},
		"best of a box":        {[]string{sac}, "sac", false, []string{ope.FQE}},
		"unknown behaviour":    {[]string{sac, "--stochastic"}, "noisy", false, []string{ope.FQE}},
		"best of choices":      {[]string{dqn}, "greedy", false, ope.Estimators()},
		"other policy":         {[]string{ppo, "--stochastic"}, "random", false, ope.Estimators()},
		"asked":                {[]string{ppo, "--stochastic", "--estimators", "wpdis,dr"}, "random", false, []string{ope.WPDIS, ope.DR}},
	}) {
		args := append([]string{"evaluate", "--offline", data[x.data], "--json", "-q", "--fqe-updates", "60", "--fqe-hidden", "8", "--bootstrap", "100"}, x.args...)
		text := apptest.Succeed(t, args...)
		e := apptest.Decode[offlineEvaluation](t, text)
		if e.Episodes != episodes || e.Gamma != 0.99 || e.Stochastic != slices.Contains(x.args, "--stochastic") || e.Rows[0].Estimator != ope.Behaviour || len(e.Policies) != 1 {
			t.Errorf("%s: %+v", what, e)
		}
		var known []string
		for _, r := range e.Rows[1:] {
			if (r.Value == nil || r.Low == nil) && r.Note == "" {
				t.Errorf("%s: %+v", what, r)
			}
			if r.Value != nil {
				known = append(known, r.Estimator)
			}
			if x.own && (r.Estimator == ope.PDIS || r.Estimator == ope.WPDIS) && (math.Abs(*r.Value-*e.Rows[0].Value) > 1e-2*math.Abs(*e.Rows[0].Value) || *r.EffectiveSampleSize < episodes-0.1) {
				t.Errorf("%s: %s is %v by %v episodes, and the data's return %v", what, r.Estimator, *r.Value, *r.EffectiveSampleSize, *e.Rows[0].Value)
			}
		}
		if !slices.Equal(known, x.known) && what != "best of choices" {
			t.Errorf("%s: %v have a value, expected %v", what, known, x.known)
		}
		if what == "asked" && apptest.Succeed(t, args...) != text {
			t.Errorf("%s: the same seed gives other numbers", what)
		}
		cases++
	}
	if cases != 8 {
		t.Errorf("%d cases", cases)
	}
	apptest.Says(t, apptest.Succeed(t, "evaluate", "--offline", data["noisy"], sac, "--stochastic", "-q", "--fqe-updates", "5", "--fqe-hidden", "8"), "10 episodes (10 cut off)", "drawn actions", "behaviour", "95 % interval", "[1] ", "column log_prob", "[2] q has not settled: γ^0 is 1", "10 of 10 episodes were cut off")
}

// TestEvaluateOfflineBad has command lines and data sets that are refused.
func TestEvaluateOfflineBad(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	ppo, sac, dir := apptest.Trained(t, tinyCartPole), apptest.Trained(t, tinyPendulum), t.TempDir()
	data := filepath.Join(dir, "data")
	apptest.Succeed(t, "record", sac, "-o", data, "--episodes", "2")
	cases := [][]string{
		{"evaluate", sac, "--fqe-updates", "3"}, {"--fqe-updates", "--offline"},
		{"evaluate", sac, "--gamma", "1"}, {"--gamma", "--offline"},
		{"evaluate", sac, "--offline", data, "--episodes", "3"}, {"--episodes", "--offline"},
		{"evaluate", sac, "--offline", data, "--out", dir}, {"--out", "--offline"},
		{"evaluate", sac, "--offline", dir}, {"dataset.json"},
		{"evaluate", sac, "--offline", data, "--estimators", "is"}, {"estimators", "pdis"},
		{"evaluate", sac, "--offline", data, "--estimators", "dr", "--stochastic"}, {"dr", "column log_prob", "episode 0, step 0"},
		{"evaluate", sac, "--offline", data, "--estimators", "pdis"}, {"pdis", "no density", "eval.deterministic"},
		{"evaluate", sac, "--offline", data, "--gamma", "2"}, {"gamma"},
		{"evaluate", sac, "--offline", data, "--level", "95"}, {"level"},
	}
	for c := range slices.Chunk(cases, 2) {
		apptest.Refuse(t, c[0], c[1]...)
	}
	if len(cases) != 2*10 {
		t.Errorf("%d cases", len(cases)/2)
	}
	if r := apptest.Run(t, "evaluate", ppo, "--offline", data); r.Code != 1 || !strings.Contains(r.Err, "data set "+data+": observation 0") || !strings.Contains(r.Err, "action: ") {
		t.Errorf("%+v", r)
	}
}
