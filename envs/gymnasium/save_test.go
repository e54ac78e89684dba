package gymnasium_test

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestSaving saves in mid-episode and continues in vectors of their own, with other numbers of
// workers.
func TestSaving(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	for _, id := range []string{"Masked-v0", "Endless-v0", "Spaces-v0"} {
		t.Run(id, func(t *testing.T) {
			f := open(t, config(id, nil))
			o := vector.Options{Workers: 2, Limit: 9}
			v := openVector(t, f, 3, o)
			actions := script(v, 60)
			reset(t, v, 5)
			var states [][]byte
			var said []string
			for k, a := range actions {
				if k == 0 || k == 11 {
					s, err := vector.SaveState(v)
					if err != nil {
						t.Fatal(err)
					}
					states = append(states, s)
				}
				if err := v.Step(a); err != nil {
					t.Fatal(err)
				}
				said = append(said, photo(v.Batch()))
			}
			for i, from := range []int{0, 11} {
				for _, workers := range []int{1, 3} {
					o.Workers = workers
					other := openVector(t, f, 3, o)
					if err := vector.LoadState(other, states[i]); err != nil {
						t.Fatal(err)
					}
					b := other.Batch()
					for e, ty := range b.Type {
						if from == 0 && ty != envs.First || ty == envs.Last || b.Reward[e] != 0 || b.Discount[e] != 1 || len(b.Ended) != 0 {
							t.Errorf("after loading, environment %d has type %v, reward %g", e, ty, b.Reward[e])
						}
					}
					var got []string
					for _, a := range actions[from:] {
						if err := other.Step(a); err != nil {
							t.Fatal(err)
						}
						got = append(got, photo(b))
					}
					if !slices.Equal(got, said[from:]) {
						t.Errorf("saved after %d steps and continued with %d workers, it becomes another run", from, workers)
					}
				}
			}
		})
	}
}

// TestCannotSave: an environment whose copy goes on differently is not saved, and goes on itself.
func TestCannotSave(t *testing.T) {
	v := openVector(t, open(t, config("Rude-v0", map[string]any{"how": "handle"})), 2, vector.Options{Workers: 1})
	if _, err := v.SaveState(); !errors.Is(err, envs.ErrNoEpisode) {
		t.Errorf("saving before Reset gives %v", err)
	}
	reset(t, v, 1)
	for range 2 {
		if _, err := v.SaveState(); !errors.Is(err, envs.ErrCannotSave) || !strings.Contains(err.Error(), "answers differently") {
			t.Errorf("saving gives %v", err)
		}
		if err := v.Step(script(v, 1)[0]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForeignStates: what is loaded is data; it makes no objects but the environment's own.
func TestForeignStates(t *testing.T) {
	f := open(t, config("Walk-v0", nil))
	v := openVector(t, f, 1, vector.Options{})
	reset(t, v, 1)
	saved, err := v.SaveState()
	if err != nil {
		t.Fatal(err)
	}
	proof := filepath.Join(t.TempDir(), "proof")
	held := func(pickle string) string {
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		w.Write([]byte(pickle))
		w.Close()
		return base64.StdEncoding.EncodeToString(b.Bytes())
	}
	cases := map[string]func(s map[string]any){
		"os.system has no place":  func(s map[string]any) { environment(s)["held"] = held("cos\nsystem\n(S'touch " + proof + "'\ntR.") },
		"eval has no place":       func(s map[string]any) { environment(s)["held"] = held("c__builtin__\neval\n(S'1'\ntR.") },
		"make has no place":       func(s map[string]any) { environment(s)["held"] = held("cgymnasium\nmake\n(S'Walk-v0'\ntR.") },
		"subprocess.Popen has no": func(s map[string]any) { environment(s)["held"] = held("csubprocess\nPopen\n(S'true'\ntR.") },
		"UnpicklingError":         func(s map[string]any) { environment(s)["held"] = held("nonsense") },
		"Error":                   func(s map[string]any) { environment(s)["held"] = "nonsense" },
		"another name":            func(s map[string]any) { s["name"] = "Run-v0" },
		"other observations":      func(s map[string]any) { s["obs"] = []string{"AAAA"} },
		"other observations, ":    func(s map[string]any) { s["obs"] = nil },
		"expected 1":              func(s map[string]any) { s["began"] = []int{1, 2} },
	}
	for want, change := range sorted.All(cases) {
		var s map[string]any
		if err := json.Unmarshal(saved, &s); err != nil {
			t.Fatal(err)
		}
		change(s)
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Replace(want, "another name", `environments "Run-v0"`, 1)
		if err := v.LoadState(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
		if err := v.Step(script(v, 1)[0]); !errors.Is(err, envs.ErrNoEpisode) {
			t.Errorf("after an error of loading, a step gives %v", err)
		}
	}
	if _, err := os.Stat(proof); err == nil {
		t.Error("a saved state has run a program")
	}
	if err := v.LoadState(saved); err != nil {
		t.Errorf("the worker has not survived: %v", err)
	}
}

// environment is the first environment of a decoded state.
func environment(s map[string]any) map[string]any {
	return s["envs"].([]any)[0].(map[string]any)
}
