package gymnasium_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// usePackage makes Python find the stand-in for gymnasium below testdata, for all tests. A Python is
// needed for these: the one of $ONNXRL_PYTHON, or python3.
func usePackage() error {
	dir, err := filepath.Abs(filepath.Join("testdata", "fake"))
	return errors.Join(err, os.Setenv("PYTHONPATH", dir), os.Setenv("PYTHONDONTWRITEBYTECODE", "1"))
}

// rootKey is where episodes descend from where any key will do.
var rootKey = rng.New(1)

// config describes an environment of the stand-in.
func config(id string, kwargs map[string]any) gymnasium.Config {
	c := gymnasium.Defaults()
	c.ID, c.Kwargs, c.Timeout, c.StartTimeout = id, kwargs, time.Minute, time.Minute
	return c
}

func open(t testing.TB, c gymnasium.Config) *gymnasium.Factory {
	t.Helper()
	f, err := gymnasium.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func openVector(t testing.TB, f *gymnasium.Factory, n int, o vector.Options) *gymnasium.Vector {
	t.Helper()
	v, err := vector.Open(f, envs.Train, n, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v.(*gymnasium.Vector)
}

// reset begins episodes or fails the test.
func reset(t testing.TB, v vector.Env, seed uint64) {
	t.Helper()
	if err := v.Reset(rng.New(seed)); err != nil {
		t.Fatal(err)
	}
}

// script draws actions for steps of a vector.
func script(v vector.Env, steps int) []*tensor.Tensor {
	stream := rng.New(77).Stream()
	out := make([]*tensor.Tensor, steps)
	space, like := v.Spec().Action, v.Batch().Actions
	one := tensor.New(space.DType(), space.Shape()...)
	for k := range out {
		out[k] = tensor.New(like.DType(), like.Shape()...)
		for rest := out[k].Bytes(); len(rest) > 0; rest = rest[len(one.Bytes()):] {
			space.Sample(stream, nil, one)
			copy(rest, one.Bytes())
		}
	}
	return out
}

// allocations returns how many a step makes.
func allocations(t *testing.T, v vector.Env) float64 {
	t.Helper()
	reset(t, v, 1)
	actions := script(v, 64)
	k := 0
	return testing.AllocsPerRun(100, func() {
		if err := v.Step(actions[k&63]); err != nil {
			t.Error(err)
		}
		k++
	})
}
