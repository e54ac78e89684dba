package app

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/cmd/internal/offlinebench"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// TestBenchOffline measures the reduced form of a task: every method learns from every data set and
// is evaluated by the data and by acting, the rows that choose are made of these results, and what
// is known already is not measured again.
func TestBenchOffline(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	dir := t.TempDir()
	args := []string{"bench", "offline", "pendulum", "--small", "--seeds", "1,2", "--dir", dir, "--json", "-q"}
	out := apptest.Succeed(t, args...)
	if got, want := apptest.Keys(t, out), []string{"engine", "missed", "tasks"}; !slices.Equal(got, want) {
		t.Errorf("keys %v", got)
	}
	r := apptest.Decode[offlinebench.Report](t, out)
	if len(r.Tasks) != 1 || len(r.Tasks[0].Sets) != 3 {
		t.Fatalf("%+v", r)
	}
	rows, missed := 0, 0
	for _, s := range r.Tasks[0].Sets {
		if s.Transitions < 2000 || s.Episodes != 10 || len(s.Results) != 2*6 || len(s.Rows) != 6+3 || s.Behaviour > -100 {
			t.Errorf("%+v", s)
		}
		best := s.Rows[8]
		for _, x := range s.Rows {
			rows++
			if len(x.Scores) != 2 || !(x.IQM < 0) || !(x.ActionScore < 0) || (x.Chosen != nil) != (strings.HasPrefix(x.Name, "chosen") || x.Name == best.Name) {
				t.Errorf("%+v", x)
			}
			for i, score := range x.Scores {
				if score > best.Scores[i] {
					t.Errorf("%s: %g, and the best in hindsight is %g", x.Name, score, best.Scores[i])
				}
			}
		}
		if s.Passed != (s.Rows[6].IQM >= s.Target) || s.Target < s.Behaviour {
			t.Errorf("%+v", s)
		}
		if !s.Passed {
			missed++
		}
	}
	if rows != 27 || missed != r.Missed {
		t.Errorf("%d rows, %d missed of %d", rows, r.Missed, missed)
	}

	// The same command goes on: the one that is missing is measured again, with the same numbers.
	lost := filepath.Join(dir, "pendulum", "results", "medium-iql-2.json")
	if err := os.Remove(lost); err != nil {
		t.Fatal(err)
	}
	again := apptest.Decode[offlinebench.Report](t, apptest.Succeed(t, args...))
	for i, s := range again.Tasks[0].Sets {
		for k, x := range s.Results {
			was := r.Tasks[0].Sets[i].Results[k]
			if measured := s.Data == "medium" && x.Method == "iql" && x.Seed == 2; measured == (x.Seconds == was.Seconds) {
				t.Errorf("%s, %s, seed %d: measured again: %t", s.Data, x.Method, x.Seed, !measured)
			}
			x.Seconds, x.FQESeconds = was.Seconds, was.FQESeconds
			if !reflect.DeepEqual(x, was) {
				t.Errorf("%+v, and before it was stopped %+v", x, was)
			}
		}
	}
	if text := apptest.Run(t, append(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--json" }), "--check")...); (text.Code != 0) != (r.Missed > 0) || !strings.Contains(text.Out, "chosen by fqe") {
		t.Errorf("exit status %d with %d missed: %s", text.Code, r.Missed, text.Out)
	}
	apptest.Refuse(t, []string{"bench", "offline", "pendulum", "--seeds", "1", "--dir", dir, "-q", "--set", "x"}, "unknown flag")
	apptest.Refuse(t, []string{"bench", "offline", "pendulum"}, `"dir"`)
	apptest.Refuse(t, []string{"bench", "offline", "cart*", "--dir", dir}, `nothing matches "cart*"`)
	apptest.Refuse(t, []string{"bench", "offline", "--seeds", "1,1", "--dir", dir}, `--seeds "1,1": 1 is given twice`)
	if err := os.WriteFile(lost, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	apptest.Refuse(t, args, "medium-iql-2.json: it was measured with other settings or data; remove it, or choose another folder")
}
