package offline_test

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/offline/offlinetest"
	"github.com/onnxrl/onnxrl/envs"
)

// counted has choices that do not begin at 0.
var counted = envs.Spec{
	Name: "counted", Observation: envs.Dict{{Name: "one", Space: envs.Discrete{N: 4, Start: 10}}, {Name: "two", Space: envs.MultiDiscrete{N: []int{2, 3}, Start: []int64{-5, 0}}}},
	Action: envs.Discrete{N: 3, Start: -1}, Reward: envs.Range{Low: -1, High: 1},
}

// choicesOf are the choices of all episodes, as they are in memory: observations and actions.
func choicesOf(t *testing.T, dir string) (obs, actions []int64) {
	t.Helper()
	d, err := offline.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := offline.NewChecker(d)
	if err != nil {
		t.Fatal(err)
	}
	numbers := func(b []byte) (list []int64) {
		for ; len(b) > 0; b = b[8:] {
			list = append(list, int64(binary.LittleEndian.Uint64(b)))
		}
		return list
	}
	if err := d.Each(t.Context(), func(e *offline.Episode) error {
		obs, actions = append(append(obs, numbers(e.Obs[0])...), numbers(e.Obs[1])...), append(actions, numbers(e.Action)...)
		return c.Check(e)
	}); err != nil {
		t.Fatal(err)
	}
	return obs, actions
}

// TestChoicesKeepTheirStart imports a log in the environment's numbers, writes it in Minari's
// layout and imports that: what leaves the program has the environment's numbers, and what learners
// see counts from 0.
func TestChoicesKeepTheirStart(t *testing.T) {
	const log = `{"episode": 0, "obs": {"one": 13, "two": [-4, 2]}, "action": -1, "reward": 1, "log_prob": -0.5}
{"episode": 0, "obs": {"one": 10, "two": [-5, 0]}, "action": 1, "reward": 0, "terminated": true}
`
	dir := t.TempDir()
	path := filepath.Join(dir, "log.jsonl")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	m := offline.Describe(counted)
	m.Behaviours = []offline.Behaviour{{Algorithm: "somebody"}}
	first := filepath.Join(dir, "first")
	if _, _, err := offline.ImportLog(t.Context(), path, m, first, nil); err != nil {
		t.Fatal(err)
	}
	wantObs, wantActions := []int64{3, 0, 0, 1, 2, 0, 0, 0, 0}, []int64{0, 2}
	if obs, actions := choicesOf(t, first); !slices.Equal(obs, wantObs) || !slices.Equal(actions, wantActions) {
		t.Errorf("%v and %v, expected %v and %v", obs, actions, wantObs, wantActions)
	}
	d, err := offline.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Fits(counted); err != nil {
		t.Error(err)
	}
	lost := counted
	lost.Action = envs.Discrete{N: 3}
	agenttest.Has(t, d.Fits(lost), "action", `"start":[-1]`)
	r, err := d.Inspect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Columns[2]; len(r.Problems) > 0 || c.Name != "action" || c.Low != -1 || c.High != 1 || c.Space != "discrete(3 from -1)" {
		t.Errorf("%+v, %q", c, r.Problems)
	}
	c := converter(t)
	out, second := filepath.Join(dir, "minari"), filepath.Join(dir, "second")
	if err := c.Export(t.Context(), d, out, "counted/log-v0", nil); err != nil {
		t.Fatal(err)
	}
	stream, err := os.ReadFile(filepath.Join(out, "stream"))
	if err != nil {
		t.Fatal(err)
	}
	var raw []byte
	for _, x := range []int64{13, 10, 10, -4, 2, -5, 0, -5, 0, -1, 1} {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(x))
	}
	if !strings.Contains(string(stream), string(raw)) {
		t.Error("Minari is not given the environment's numbers")
	}
	if _, err := c.Import(t.Context(), out, second, nil); err != nil {
		t.Fatal(err)
	}
	if obs, actions := choicesOf(t, second); !slices.Equal(obs, wantObs) || !slices.Equal(actions, wantActions) {
		t.Errorf("from Minari: %v and %v, expected %v and %v", obs, actions, wantObs, wantActions)
	}
}

// TestLogProbabilitiesAboveZero refuses those of choices wherever they are read, and takes
// densities.
func TestLogProbabilitiesAboveZero(t *testing.T) {
	d := offlinetest.Dataset(t, counted, 3)
	episode := func(p float64) (out *offline.Episode) {
		err := d.Each(t.Context(), func(e *offline.Episode) error {
			e.LogProb[0] = p
			out = e
			return errors.New("enough")
		})
		if out == nil {
			t.Fatal(err)
		}
		return out
	}
	c, err := offline.NewChecker(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []float64{0, -3, math.NaN(), 1e-6} {
		if err := c.Check(episode(p)); err != nil {
			t.Error(err)
		}
	}
	agenttest.Has(t, c.Check(episode(2)), "episode 0, step 0", "log_prob", "expected at most 0")
	path := filepath.Join(t.TempDir(), "log.jsonl")
	line := func(action, p string) {
		t.Helper()
		text := `{"episode": 0, "obs": {"x": 1}, "action": ` + action + `, "reward": 1, "log_prob": ` + p + `, "terminated": true}` + "\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range []struct {
		action envs.Space
		taken  bool
	}{{envs.Discrete{N: 2}, false}, {envs.NewBox(-1, 1), true}} {
		line("1", "2.0")
		m := offline.Describe(envs.Spec{Name: "some", Observation: envs.Dict{{Name: "x", Space: envs.NewBox(0, 9)}}, Action: k.action})
		m.Behaviours = []offline.Behaviour{{Algorithm: "somebody"}}
		_, _, err := offline.ImportLog(t.Context(), path, m, filepath.Join(t.TempDir(), "out"), nil)
		if k.taken != (err == nil) {
			t.Errorf("%v: %v", k.action, err)
		}
		if !k.taken {
			agenttest.Has(t, err, "line 1: log_prob: the log-probability is 2, expected at most 0")
		}
	}
}
