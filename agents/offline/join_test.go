package offline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/decisionlog"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// corridor is an environment of one number and two actions.
var corridor = envs.Spec{Name: "corridor", Observation: envs.Dict{{Name: "x", Space: envs.NewBox(-10, 10, 1)}}, Action: envs.Discrete{N: 2}, Reward: envs.Range{Low: -10, High: 10}}

var corridorLayout = &decisionlog.Layout{Obs: []decisionlog.Column{{Name: "other", DType: tensor.Uint8, N: 1}, {Name: "x", DType: tensor.Float32, N: 1, List: true}}, Action: decisionlog.Column{Name: "action", DType: tensor.Int64, N: 1}}

// served is a row of a log: of a sequence, with flags s(tart), e(nd), r(eward), t(erminated) and
// c(ut off). What it saw is its place in the log.
type served struct {
	id, sequence, flags string
	reward              float64
	version             string
}

// logOf writes a log of the model m.
func logOf(t *testing.T, list ...served) string {
	t.Helper()
	dir := t.TempDir()
	w, err := decisionlog.NewWriter(dir, "m")
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range list {
		has := func(c string) bool { return strings.Contains(s.flags, c) }
		b := binary.LittleEndian.AppendUint32([]byte{7}, math.Float32bits(float32(i)))
		r := decisionlog.Row{Time: int64(i), Request: s.id, Version: s.version, Digest: "sha256:" + s.version, Sequence: s.sequence, Start: has("s"), End: has("e"), Data: binary.LittleEndian.AppendUint64(b, uint64(i%2)), LogProb: -float64(i), Reward: math.NaN(), Terminated: has("t"), Truncated: has("c")}
		if has("r") {
			r.Reward = s.reward
		}
		if err := w.Add(corridorLayout, &r); err != nil {
			t.Fatal(err)
		}
		if i%3 == 2 { // Sequences go over files.
			if err := w.Publish(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Publish(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// joined imports, and tells the episodes as observation>action:reward for each step.
func joined(t *testing.T, j Join) (string, JoinReport, error) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "set")
	m, r, err := ImportDecisions(t.Context(), j, Describe(corridor), to, nil)
	if err != nil {
		return "", r, err
	}
	d, err := Open(to)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewChecker(d)
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	err = d.Each(t.Context(), func(e *Episode) error {
		s := m.Behaviours[e.Behaviour].SHA256 + " "
		x := func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(e.Obs[0][4*i:])) }
		for i, r := range e.Reward {
			if e.LogProb[i] != -float64(x(i)) {
				return fmt.Errorf("log_prob %v at %v", e.LogProb[i], x(i))
			}
			s += fmt.Sprintf("%v>%d:%v ", x(i), e.Action[8*i], r)
		}
		s += fmt.Sprint(x(e.Len()))
		if e.Terminated {
			s += "."
		}
		text = append(text, strings.TrimSpace(s))
		return c.Check(e)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(text, ", "), r, nil
}

// TestJoin has what becomes of decisions with and without rewards, in sequences and on their own.
func TestJoin(t *testing.T) {
	nan := math.NaN()
	cases := 0
	for what, x := range sorted.All(longtest.Few(t, map[string]struct {
		log     []served
		rewards string
		missing float64
		want    string
		report  JoinReport
	}{
		"on their own":        {[]served{{id: "a"}, {id: "b"}, {id: "c"}}, "a,1\nc,-2\nz,5", nan, "0>0:1 0., 2>0:-2 2.", JoinReport{Unrewarded: 1, Unmatched: 1}},
		"what is missing":     {[]served{{id: "a"}, {id: "b"}}, "a,1", 0, "0>0:1 0., 1>1:0 1.", JoinReport{}},
		"an id twice":         {[]served{{id: "a"}, {id: "b"}, {id: "a"}}, "a,1\nb,2", nan, "1>1:2 1.", JoinReport{Repeated: 2}},
		"versions":            {[]served{{id: "a", version: "v"}, {id: "b", version: "w"}, {id: "c", version: "v"}}, "a,1\nb,2\nc,3", nan, "v 0>0:1 0., v 2>0:3 2., w 1>1:2 1.", JoinReport{}},
		"sequences":           {[]served{{sequence: "p", flags: "s"}, {sequence: "q", flags: "s"}, {sequence: "p", flags: "r", reward: 1}, {sequence: "q", flags: "rte", reward: 2}, {sequence: "p", flags: "rce", reward: 3}}, "", nan, "1>1:2 3., 0>0:1 2>0:3 4", JoinReport{}},
		"rewards by id":       {[]served{{id: "a", sequence: "p", flags: "s"}, {id: "b", sequence: "p"}, {id: "c", sequence: "p", flags: "rt", reward: 9}}, "a,1", nan, "0>0:1 1>1:9 2.", JoinReport{}},
		"no reward":           {[]served{{sequence: "p", flags: "s"}, {sequence: "p", flags: "r", reward: 1}, {sequence: "p"}, {sequence: "p", flags: "rt"}}, "", nan, "0>0:1 1", JoinReport{Unrewarded: 1, Cut: 1, Orphans: 1}},
		"an open end":         {[]served{{sequence: "p", flags: "s"}, {sequence: "p", flags: "r", reward: 1}}, "", nan, "0>0:1 1", JoinReport{Cut: 1}},
		"an end that is mute": {[]served{{sequence: "p", flags: "s"}, {sequence: "p", flags: "re", reward: 1}}, "", nan, "0>0:1 1", JoinReport{Cut: 1}},
		"begun anew":          {[]served{{sequence: "p", flags: "s"}, {sequence: "p", flags: "s"}, {sequence: "p", flags: "rt", reward: 4}}, "", nan, "1>1:4 2.", JoinReport{Cut: 1}},
		"begun before":        {[]served{{sequence: "p", flags: "r"}, {id: "a"}}, "a,1", nan, "1>1:1 1.", JoinReport{Orphans: 1}},
	}, 5)) {
		j := Join{Dir: logOf(t, x.log...), Model: "m", Missing: x.missing}
		if x.rewards != "" {
			j.Rewards = filepath.Join(t.TempDir(), "rewards.csv")
			if err := atomicfile.WriteBytes(j.Rewards, []byte("request,reward\n"+x.rewards+"\n")); err != nil {
				t.Fatal(err)
			}
		}
		got, r, err := joined(t, j)
		if err != nil || got != x.want || r != x.report {
			t.Errorf("%s: %q, %+v, %v; expected %q, %+v", what, got, r, err, x.want, x.report)
		}
		cases++
	}
	if cases != longtest.Cases(t, 11, 5) {
		t.Errorf("%d cases", cases)
	}
}

// TestJoinBad has tables of rewards and logs that are refused, with file and place.
func TestJoinBad(t *testing.T) {
	dir, cases := logOf(t, served{id: "a"}), 0
	for what, x := range sorted.All(map[string]struct{ name, text, says string }{
		"no column":    {"r.csv", "id,reward\na,1\n", `"id" "reward"`},
		"no number":    {"r.csv", "request,reward\na,1\nb,x\n", `line 3: reward: "x"`},
		"not finite":   {"r.csv", "request,reward\na,inf\n", "line 2: reward: +Inf"},
		"twice":        {"r.csv", "request,reward\na,1\na,2\n", `line 3: request "a", row 0: it has a reward already`},
		"row":          {"r.csv", "request,row,reward\na,-1,2\n", "line 2: row: -1"},
		"empty id":     {"r.csv", "request,reward\n\"\",2\n", "line 2: request: it is empty"},
		"empty":        {"r.csv", "", "it is empty"},
		"nothing":      {"r.csv", "request,reward\n", "no reward in it"},
		"form":         {"r.txt", "", ".csv, .jsonl or .parquet"},
		"JSON":         {"r.jsonl", "{\"request\": \"a\"}\n", "line 1: reward: required"},
		"torn JSON":    {"r.jsonl", "{\"request\": \"a\", \"reward\": 1}\n{\"re", "line 2"},
		"torn Parquet": {"r.parquet", "PAR1", "r.parquet"},
		"none fits":    {"r.csv", "request,reward\nb,1\n", "1 decisions without a reward"},
	}) {
		path := filepath.Join(t.TempDir(), x.name)
		if err := atomicfile.WriteBytes(path, []byte(x.text)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := joined(t, Join{Dir: dir, Model: "m", Rewards: path, Missing: math.NaN()}); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, expected %q", what, err, x.says)
		}
		cases++
	}
	wide := corridor
	wide.Observation = envs.Dict{{Name: "y", Space: envs.NewBox(-1, 1, 1)}}
	_, _, err := ImportDecisions(t.Context(), Join{Dir: dir, Model: "m", Missing: 0}, Describe(wide), filepath.Join(t.TempDir(), "set"), nil)
	_, _, other := ImportDecisions(t.Context(), Join{Dir: dir, Model: "n", Missing: 0}, Describe(corridor), filepath.Join(t.TempDir(), "set"), nil)
	if err == nil || !strings.Contains(err.Error(), `obs.y: it is missing: the policy was given ["other" "x"]`) || other == nil || cases != 13 {
		t.Error(errors.Join(err, other), cases)
	}
}

// TestJoinChoices joins decisions of choices that do not begin at 0, and refuses probabilities
// above 1.
func TestJoinChoices(t *testing.T) {
	spec := corridor
	spec.Action = envs.Discrete{N: 3, Start: -1}
	j := Join{Dir: logOf(t, served{id: "a", version: "1"}, served{id: "b", version: "1"}), Model: "m", Missing: 1}
	to := filepath.Join(t.TempDir(), "set")
	if _, _, err := ImportDecisions(t.Context(), j, Describe(spec), to, nil); err != nil {
		t.Fatal(err)
	}
	d, err := Open(to)
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	if err := d.Each(t.Context(), func(e *Episode) error {
		got = append(got, int64s(e.Action)...)
		return nil
	}); err != nil || !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("the decisions 0 and 1 became %v, %v, expected 1 and 2 counted from 0", got, err)
	}
	dir := t.TempDir()
	w, err := decisionlog.NewWriter(dir, "m")
	if err != nil {
		t.Fatal(err)
	}
	b := binary.LittleEndian.AppendUint32([]byte{7}, 0)
	if err := errors.Join(w.Add(corridorLayout, &decisionlog.Row{Request: "a", Version: "1", Data: binary.LittleEndian.AppendUint64(b, 1), LogProb: 0.7, Reward: math.NaN()}), w.Publish()); err != nil {
		t.Fatal(err)
	}
	j.Dir = dir
	if _, _, err := ImportDecisions(t.Context(), j, Describe(corridor), filepath.Join(t.TempDir(), "set"), nil); err == nil || !strings.Contains(err.Error(), "episode 0, step 0: log_prob: the log-probability is 0.7") {
		t.Errorf("error %v", err)
	}
}
