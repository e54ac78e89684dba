package wrap_test

import (
	"errors"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func open(t testing.TB, cells int) envs.Env {
	t.Helper()
	e, err := corridor.New(corridor.Config{Cells: cells})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// opaque hides that an environment is a Saver.
type opaque struct{ envs.Env }

func TestContract(t *testing.T) {
	makers := map[string]func() (envs.Env, error){
		"time limit": func() (envs.Env, error) { return wrap.NewTimeLimit(open(t, 9), 6) },
		"one step":   func() (envs.Env, error) { return wrap.NewTimeLimit(open(t, 3), 1) },
	}
	for name, open := range sorted.All(makers) {
		t.Run(name, func(t *testing.T) {
			if r := envtest.Run(t, open, envtest.Options{Steps: 400}); r.Saved < 15 {
				t.Errorf("too little was checked: %+v", r)
			}
		})
	}
}

// walk plays an episode to the right and returns its last step and its length.
func walk(t *testing.T, e envs.Env, key rng.Key) (*envs.TimeStep, int) {
	t.Helper()
	ts := envs.NewTimeStep(e.Spec())
	if err := e.Reset(key, ts); err != nil {
		t.Fatal(err)
	}
	for n := 1; ; n++ {
		if err := e.Step(tensor.Scalar(int64(corridor.Right)), ts); err != nil {
			t.Fatal(err)
		}
		if ts.Type == envs.Last {
			return ts, n
		}
	}
}

// TestTimeLimit holds that an episode is truncated with its final observation, and terminated when
// it comes to its end in the very step of the limit.
func TestTimeLimit(t *testing.T) {
	truncated, terminated, both := 0, 0, 0
	for k := range 200 {
		key := rng.New(1).Split("k", k)
		_, full := walk(t, open(t, 8), key)
		e, err := wrap.NewTimeLimit(open(t, 8), 4)
		if err != nil {
			t.Fatal(err)
		}
		ts, n := walk(t, e, key)
		if n != min(full, 4) {
			t.Fatalf("%d steps, the end is %d away", n, full)
		}
		// After four steps to the right from a cell that is full away from the end.
		if want := float32(7-full+n) / 7; ts.Obs[0].Float32s()[0] != want {
			t.Errorf("the final position is %g, expected %g", ts.Obs[0].Float32s()[0], want)
		}
		switch {
		case full > 4:
			truncated++
			if !ts.Truncated() || ts.Discount != 1 || ts.Reward != 0 {
				t.Errorf("%d steps from the end: %+v", full, ts)
			}
		default:
			terminated++
			if full == 4 {
				both++
			}
			if !ts.Terminated() || ts.Reward != 1 {
				t.Errorf("%d steps from the end: %+v", full, ts)
			}
		}
	}
	if truncated < 50 || terminated < 50 || both < 10 {
		t.Errorf("%d truncated, %d terminated, %d of them at the limit", truncated, terminated, both)
	}
	if _, err := wrap.NewTimeLimit(open(t, 8), 0); err == nil {
		t.Error("a limit of no steps is accepted")
	}
}

func TestTimeLimitInSpec(t *testing.T) {
	short, err := wrap.NewTimeLimit(open(t, 8), 3)
	if err != nil {
		t.Fatal(err)
	}
	long, err := wrap.NewTimeLimit(short, 5)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := short.Spec().MaxSteps, long.Spec().MaxSteps; a != 3 || b != 3 {
		t.Errorf("limits of %d and %d, expected 3 for both", a, b)
	}
}

func TestFind(t *testing.T) {
	inner := open(t, 8)
	limited, err := wrap.NewTimeLimit(inner, 5)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := wrap.Find[*corridor.Env](limited); !ok || e != inner {
		t.Error("the corridor is not found inside")
	}
	if e, ok := wrap.Find[*wrap.TimeLimit](limited); !ok || e != limited {
		t.Error("the outermost is not found")
	}
	if _, ok := wrap.Find[*wrap.TimeLimit](inner); ok {
		t.Error("something is found that is not there")
	}
}

func TestSavingNeedsASaver(t *testing.T) {
	limited, err := wrap.NewTimeLimit(opaque{open(t, 8)}, 5)
	if err != nil {
		t.Fatal(err)
	}
	ts := envs.NewTimeStep(limited.Spec())
	if err := limited.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	if _, err := envs.SaveState(limited); !errors.Is(err, envs.ErrCannotSave) {
		t.Errorf("saving gives %v", err)
	}
	if err := envs.LoadState(limited, []byte(`{"env":""}`), ts); !errors.Is(err, envs.ErrCannotSave) {
		t.Errorf("loading gives %v", err)
	}
}
