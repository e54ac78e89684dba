package offline_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/offline/offlinetest"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// keep copies an episode.
func keep(e *offline.Episode) offline.Episode {
	c := *e
	c.Obs, c.Rows = nil, nil
	for f := range e.Obs {
		c.Obs, c.Rows = append(c.Obs, slices.Clone(e.Obs[f])), append(c.Rows, slices.Clone(e.Rows[f]))
	}
	c.Mask, c.Action, c.Cost = slices.Clone(e.Mask), slices.Clone(e.Action), slices.Clone(e.Cost)
	c.Reward, c.Discount, c.LogProb = slices.Clone(e.Reward), slices.Clone(e.Discount), slices.Clone(e.LogProb)
	return c
}

// episodesOf reads all episodes of a data set.
func episodesOf(t *testing.T, d *offline.Dataset) (list []offline.Episode) {
	t.Helper()
	if err := d.Each(t.Context(), func(e *offline.Episode) error {
		list = append(list, keep(e))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// elements are the elements of a space's type in bytes.
func elements(d tensor.DType, b []byte) any {
	x := tensor.New(d, len(b)/d.Size())
	copy(x.Bytes(), b)
	switch d {
	case tensor.Float32:
		return x.Float32s()
	case tensor.Float64:
		return x.Float64s()
	case tensor.Int64:
		return x.Int64s()
	}
	out := make([]int, len(b))
	for i, v := range b {
		out[i] = int(v)
	}
	return out
}

// logOf writes episodes as a log in which as many as width alternate.
func logOf(t *testing.T, spec envs.Spec, list []offline.Episode, width int) string {
	t.Helper()
	var text bytes.Buffer
	show := func(e *offline.Episode, at int) map[string]any {
		obs := map[string]any{}
		for f, field := range spec.Observation {
			if field.Window != nil {
				obs[field.Name] = e.Rows[f][at]
				continue
			}
			size := len(e.Obs[f]) / (e.Len() + 1)
			obs[field.Name] = elements(field.Space.DType(), e.Obs[f][at*size:(at+1)*size])
		}
		if spec.Masked {
			n := envs.MaskLen(spec.Action)
			obs[agents.MaskInput] = elements(tensor.Bool, e.Mask[at*n:(at+1)*n])
		}
		return obs
	}
	for group := range slices.Chunk(list, width) {
		for step, more := 0, true; more; step++ {
			more = false
			for k := range group {
				e := &group[k]
				if step >= e.Len() {
					continue
				}
				more = true
				size := len(e.Action) / e.Len()
				line := map[string]any{"episode": fmt.Sprint("episode ", e.Number), "step": step, "obs": show(e, step), "action": elements(spec.Action.DType(), e.Action[step*size:(step+1)*size]), "reward": e.Reward[step], "log_prob": e.LogProb[step], "info": "x"}
				if n := len(spec.Costs); n > 0 {
					line["cost"] = e.Cost[step*n : (step+1)*n]
				}
				if step == e.Len()-1 {
					line["terminated"], line["truncated"], line["final_obs"] = e.Terminated, e.Truncated, show(e, e.Len())
				}
				if err := json.NewEncoder(&text).Encode(line); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	path := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func manifestOf(spec envs.Spec) offline.Manifest {
	m := offline.Describe(spec)
	m.Behaviours = []offline.Behaviour{{Algorithm: "logged"}}
	return m
}

// TestLog: episodes come back from a log bit by bit, and in the order of their ends.
func TestLog(t *testing.T) {
	episodes := 0
	for what, spec := range sorted.All(specs(t)) {
		list := episodesOf(t, offlinetest.Dataset(t, spec, 20))
		dir := filepath.Join(t.TempDir(), "log")
		m, left, err := offline.ImportLog(t.Context(), logOf(t, spec, list, 4), manifestOf(spec), dir, nil)
		if err != nil || left != (offline.LogReport{}) {
			t.Fatal(what, left, err)
		}
		d, err := offline.Open(dir)
		if err != nil || d.Fits(spec) != nil || m.Episodes != 20 {
			t.Fatal(what, err)
		}
		got := episodesOf(t, d)
		slices.SortStableFunc(list, func(a, b offline.Episode) int {
			if a.Number/4 != b.Number/4 {
				return int(a.Number - b.Number)
			}
			return a.Len() - b.Len()
		})
		for i := range list {
			list[i].Number = int64(i)
			if a, b := fmt.Sprintf("%+v", got[i]), fmt.Sprintf("%+v", list[i]); a != b {
				t.Fatalf("%s: episode %d is\n%s\nand was\n%s", what, i, a, b)
			}
			episodes++
		}
	}
	if episodes != 7*20 {
		t.Errorf("%d episodes", episodes)
	}
}

// TestLogCuts: what a log does not say is left out, and counted.
func TestLogCuts(t *testing.T) {
	spec := envs.Spec{Name: "two", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(1)}}, Action: envs.Discrete{N: 2}, MaxSteps: 10}
	path := filepath.Join(t.TempDir(), "log.jsonl")
	text := `{"episode":1,"obs":{"x":1},"action":0,"reward":1}
{"episode":"b","obs":{"x":5},"action":1,"reward":5}
{"episode":1,"obs":{"x":2},"action":1,"reward":2,"truncated":true}

{"episode":2,"obs":{"x":3},"action":1,"reward":3,"truncated":true}
{"episode":1,"obs":{"x":4},"action":1,"reward":4,"terminated":true}
{"episode":"b","obs":{"x":[[6]]},"action":[0],"reward":6}
{"episode":"b","obs":{"x":7},"action":0,"rew`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "log")
	_, left, err := offline.ImportLog(t.Context(), path, manifestOf(spec), dir, nil)
	if err != nil || left != (offline.LogReport{Cut: 2, Dropped: 1, Torn: true}) {
		t.Fatal(left, err)
	}
	d, err := offline.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, e := range episodesOf(t, d) {
		got += fmt.Sprintf("%v %v %v %t %t; ", elements(tensor.Float32, e.Obs[0]), e.Reward, e.Discount, e.Terminated, e.Truncated)
	}
	if want := "[1 2] [1] [1] false true; [4 4] [4] [0] true false; [5 6] [5] [1] false true; "; got != want {
		t.Errorf("%s, expected %s", got, want)
	}
	if r, err := d.Inspect(t.Context(), nil); err != nil || r.Found != 0 {
		t.Error(r.Problems, err)
	}
}

// TestLogRefuses: each line that is wrong is named, and nothing is left.
func TestLogRefuses(t *testing.T) {
	spec := envs.Spec{Name: "two", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(2)}}, Action: envs.Discrete{N: 2}, MaxSteps: 10, Masked: true}
	good := `{"episode":1,"step":0,"obs":{"x":[1,2],"mask":[1,1]},"action":0,"reward":1}` + "\n"
	n := 0
	for line, want := range sorted.All(map[string]string{
		`{"obs":{"x":[1,2],"mask":[1,1]},"action":0,"reward":1}`:                        "episode: required",
		`{"episode":1,"obs":{"x":[1,2],"mask":[1,1]},"action":0}`:                       "reward: required",
		`{"episode":1,"step":2,"obs":{"x":[1,2],"mask":[1,1]},"action":0,"reward":1}`:   "step 2 of episode 1, expected 1",
		`{"episode":1,"obs":{"y":[1,2]},"action":0,"reward":1}`:                         `obs.y: the environment has the fields ["x"]`,
		`{"episode":1,"obs":{"x":[1]},"action":0,"reward":1}`:                           "obs.x: 1 numbers, expected 2",
		`{"episode":1,"obs":{"x":[1,null]},"action":0,"reward":1}`:                      "obs.x: <nil>, expected numbers",
		`{"episode":1,"obs":{"x":[1,2]},"action":0,"reward":1}`:                         "obs.mask: it is missing",
		`{"episode":1,"obs":{"x":[1,2],"mask":[1,2]},"action":0,"reward":1}`:            "obs.mask",
		`{"episode":1,"obs":{"x":[1,1e99],"mask":[1,1]},"action":0,"reward":1}`:         "out of range",
		`{"episode":1,"obs":{"x":[1,2],"mask":[1,1]},"action":0.5,"reward":1}`:          "action:",
		`{"episode":1,"obs":{"x":[1,2],"mask":[1,1]},"reward":1}`:                       "action: it is missing",
		`{"episode":1,"obs":{"x":[1,2],"mask":[1,1]},"action":0,"reward":1,"more":2}`:   `"more"`,
		`{"episode":1,"obs":{"x":[1,2],"mask":[1,1]},"action":0,"reward":1,"cost":[2]}`: "cost: 1 numbers, expected 0",
		`{"episode":1,"obs":{"x":[1,2],"mask":[1,1]},"action":0,"reward":NaN}`:          "reward: NaN, expected finite numbers",
		`{"episode":1,"obs":{"x":[1,-Infinity],"mask":[1,1]},"action":0,"reward":1}`:    "x: Infinity, expected finite numbers",
		`{"episode":1,"obs":{"x":[1,2],"mask":[1,1]},"action":0,"reward":[1,2]}`:        "reward: 2 numbers, expected 1",
		`{"episode":1,"obs":[1,2],"action":0,"reward":1}`:                               `obs: [1,2]…, expected an object with the fields ["x" "mask"]`,
		// Data that agents cannot learn from have their line when the episode is whole.
		`{"episode":2,"obs":{"x":[1,2],"mask":[1,1]},"action":2,"reward":1,"terminated":true}`:              "action: 2, expected 0 to 1",
		`{"episode":2,"obs":{"x":[1,2],"mask":[0,1]},"action":0,"reward":1,"terminated":true}`:              "the action 0 is not valid",
		`{"episode":2,"obs":{"x":[1,2],"mask":[1,1]},"action":0,"reward":1,"log_prob":2,"terminated":true}`: "log_prob: the log-probability is 2",
		`{"episode":1,"obs":{"x":[1,2],"mask":[1,1]},"action":0,"reward":1,"final_obs":{}}`:                 "final_obs: the episode goes on",
		`{"episode":1} {}`: "something follows",
		`[1]`:              "cannot unmarshal",
	}) {
		path, dir := filepath.Join(t.TempDir(), "log.jsonl"), filepath.Join(t.TempDir(), "out")
		if err := os.WriteFile(path, []byte(good+line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := offline.ImportLog(t.Context(), path, manifestOf(spec), dir, nil)
		agenttest.Has(t, err, path, "line 2", want)
		if list, _ := filepath.Glob(dir + "*"); len(list) > 0 {
			t.Errorf("%s: %q is left", line, list)
		}
		n++
	}
	if n != 23 {
		t.Errorf("%d cases", n)
	}
}

// TestLogPlain: the observation of an environment with one field needs no name, a reward may be a
// list of one number, and an episode that both terminated and was cut off has terminated.
func TestLogPlain(t *testing.T) {
	spec := envs.Spec{Name: "one", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(2)}}, Action: envs.Discrete{N: 2}, MaxSteps: 10}
	var want []offline.Episode
	for _, obs := range []string{`{"x":[1,2]}`, `[1,2]`} {
		path, dir := filepath.Join(t.TempDir(), "log.jsonl"), filepath.Join(t.TempDir(), "out")
		text := fmt.Sprintf(`{"episode":1,"obs":%s,"action":0,"reward":[0.5]}
{"episode":1,"obs":%[1]s,"action":1,"reward":1,"terminated":true,"truncated":true,"final_obs":%[1]s}
`, obs)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := offline.ImportLog(t.Context(), path, manifestOf(spec), dir, nil); err != nil {
			t.Fatal(obs, err)
		}
		d, err := offline.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		got := episodesOf(t, d)
		if want == nil {
			want = got
		}
		if e := got[0]; len(got) != 1 || !e.Terminated || e.Truncated || !slices.Equal(e.Reward, []float64{0.5, 1}) || !slices.Equal(e.Discount, []float64{1, 0}) || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v", obs, got)
		}
	}
}

// replayed is the replay of a data set as a checkpoint has it.
func replayed(t *testing.T, d *offline.Dataset, spec envs.Spec) *checkpoint.Checkpoint {
	t.Helper()
	l := replay.LayoutOf(spec, replay.Column{Name: "action", DType: spec.Action.DType(), Shape: spec.Action.Shape()})
	c := replay.Config{Capacity: int(d.Transitions+d.Episodes) + 1, Envs: 1, Gamma: 1}
	if _, ok := spec.Action.(envs.Box); ok {
		l.Action.DType, c.Action = tensor.Float32, network.StoredOf
	}
	l.LogProb = true
	u, err := replay.NewUniform(l, c)
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, u)
	if err := d.Fill(t.Context(), offline.Part{}, spec, u); err != nil {
		t.Fatal(err)
	}
	s, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path, err := s.Save(checkpoint.Meta{Kind: "test", Step: 1}, u)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	k, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// TestSnapshot: what a learner's replay has of whole episodes is those episodes, but for the
// precision of rewards and actions.
func TestSnapshot(t *testing.T) {
	episodes := 0
	for what, spec := range sorted.All(specs(t)) {
		d := offlinetest.Dataset(t, spec, 20)
		dir := filepath.Join(t.TempDir(), "snapshot")
		m, err := offline.ImportReplay(t.Context(), replayed(t, d, spec).Reader(), spec, manifestOf(spec), dir, nil)
		if err != nil || m.Episodes != 20 || m.Transitions != d.Transitions {
			t.Fatal(what, m, err)
		}
		back, err := offline.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		want := episodesOf(t, d)
		for i, e := range episodesOf(t, back) {
			w := want[i]
			near(t, what, e.Reward, w.Reward)
			near(t, what, e.LogProb, w.LogProb)
			near(t, what, e.Cost, w.Cost)
			if box, ok := spec.Action.(envs.Box); ok {
				near(t, what, numbersOf(box.Of, e.Action), numbersOf(box.Of, w.Action))
				e.Action, w.Action = nil, nil
			}
			e.Reward, w.Reward, e.LogProb, w.LogProb, e.Cost, w.Cost = nil, nil, nil, nil, nil, nil
			if a, b := fmt.Sprintf("%+v", e), fmt.Sprintf("%+v", w); a != b {
				t.Fatalf("%s: episode %d is\n%s\nand was\n%s", what, i, a, b)
			}
			episodes++
		}
	}
	if episodes != 7*20 {
		t.Errorf("%d episodes", episodes)
	}
}

func numbersOf(d tensor.DType, b []byte) (list []float64) {
	if d == tensor.Float64 {
		return elements(d, b).([]float64)
	}
	for _, x := range elements(tensor.Float32, b).([]float32) {
		list = append(list, float64(x))
	}
	return list
}

// near compares numbers in the precision of float32.
func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, expected %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Abs(got[i]-want[i]) > 1e-6*(1+math.Abs(want[i])) {
			t.Fatalf("%s: %v, expected %v", what, got[i], want[i])
		}
	}
}

// TestMerge puts data sets together, also when it is stopped in between.
func TestMerge(t *testing.T) {
	spec := agenttest.Box()
	a, b := offlinetest.Dataset(t, spec, 5), offlinetest.Dataset(t, spec, 7)
	b.Behaviours[0].Algorithm = "other"
	dir := filepath.Join(t.TempDir(), "merged")
	// The last file is missing.
	if err := os.Rename(b.Dir, b.Dir+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := offline.Merge(t.Context(), []*offline.Dataset{a, a, b}, dir, nil); err == nil {
		t.Fatal("a data set without files was merged")
	}
	if err := os.Rename(b.Dir+".away", b.Dir); err != nil {
		t.Fatal(err)
	}
	m, err := offline.Merge(t.Context(), []*offline.Dataset{a, a, b}, dir, nil)
	if err != nil || m.Episodes != 17 || len(m.Behaviours) != 2 || m.Files[0].Behaviour != 0 || m.Files[1].Behaviour != 0 || m.Files[2].Behaviour != 1 {
		t.Fatal(m, err)
	}
	d, err := offline.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := episodesOf(t, d)
	for i, w := range slices.Concat(episodesOf(t, a), episodesOf(t, a), episodesOf(t, b)) {
		w.Number = int64(i)
		if w.Behaviour = 0; i >= 10 {
			w.Behaviour = 1
		}
		if x, y := fmt.Sprintf("%+v", list[i]), fmt.Sprintf("%+v", w); x != y {
			t.Fatalf("episode %d is\n%s\nand was\n%s", i, x, y)
		}
	}
	if r, err := d.Inspect(t.Context(), nil); err != nil || r.Found != 0 {
		t.Error(r.Problems, err)
	}
	_, err = offline.Merge(t.Context(), []*offline.Dataset{a, offlinetest.Dataset(t, agenttest.Choice(), 2)}, dir+"2", nil)
	agenttest.Has(t, err, "does not fit", "action:")
	if _, err := offline.Merge(t.Context(), []*offline.Dataset{a}, dir+"3", nil); err == nil || !strings.Contains(err.Error(), "at least two") {
		t.Error(err)
	}
}
