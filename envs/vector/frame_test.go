package vector_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestFrameEqualsVector fills a frame from environments that are stepped by hand and compares it
// with a vector of the same environments, step by step.
func TestFrameEqualsVector(t *testing.T) {
	const bars, n = 40, 3
	m := &trading.Market{Assets: []string{"A", "B"}, Features: []string{"f"}, X: make([]float32, bars*2), Open: make([]float64, bars*2), Close: make([]float64, bars*2), Tradable: make([]trading.Sides, bars*2)}
	s := rng.New(1).Stream()
	for b := range bars {
		m.Dates = append(m.Dates, time.Date(2020, 1, 1+b, 0, 0, 0, 0, time.UTC))
		for i := 2 * b; i < 2*b+2; i++ {
			m.X[i], m.Open[i], m.Close[i], m.Tradable[i] = float32(s.Normal()), 1+s.Float64(), 1+s.Float64(), trading.SidesAt(s.Bernoulli(0.8), 0, 0, 0)
		}
	}
	c := trading.Defaults()
	c.Window = 5
	source, err := trading.NewSource(m, c)
	if err != nil {
		t.Fatal(err)
	}
	make3 := func() []envs.Env {
		list := make([]envs.Env, n)
		for i := range list {
			if list[i], err = source.Env(trading.Range{First: 0, Last: bars - 1}); err != nil {
				t.Fatal(err)
			}
		}
		return list
	}
	compared := 0
	for _, windows := range []bool{false, true} {
		v, err := vector.New(make3(), vector.Options{Workers: 1, Windows: windows})
		if err != nil {
			t.Fatal(err)
		}
		f, err := vector.NewFrame(v.Spec(), n, windows)
		if err != nil {
			t.Fatal(err)
		}
		list, steps := make3(), make([]*envs.TimeStep, n)
		if err := v.Reset(rng.New(2)); err != nil {
			t.Fatal(err)
		}
		for i, e := range list {
			steps[i] = envs.NewTimeStep(v.Spec())
			if err := e.Reset(rng.New(2).Split("episode", i, 0), steps[i]); err != nil {
				t.Fatal(err)
			}
		}
		for range bars - 6 {
			for i, ts := range steps {
				if err := f.Put(i, ts); err != nil {
					t.Fatal(err)
				}
			}
			a, b := f.Batch(), v.Batch()
			for k := range b.Rows {
				if (b.Obs[k] == nil) != (a.Obs[k] == nil) || b.Obs[k] != nil && !bytes.Equal(a.Obs[k].Bytes(), b.Obs[k].Bytes()) {
					t.Fatalf("observation %d differs", k)
				}
				for i := range b.Rows[k] {
					if a.Rows[k][i] != b.Rows[k][i] {
						t.Fatalf("row of window %d differs", k)
					}
				}
			}
			for i := range n {
				if !bytes.Equal(a.Mask.Bytes(), b.Mask.Bytes()) || a.Type[i] != b.Type[i] || a.Reward[i] != b.Reward[i] || a.Info[i][trading.InfoValue] != b.Info[i][trading.InfoValue] {
					t.Fatalf("row %d differs", i)
				}
				compared++
			}
			for i := range b.Actions.Int64s() {
				b.Actions.Int64s()[i] = int64(s.IntN(3))
			}
			for i, e := range list {
				one := tensor.Of(b.Actions.Int64s()[2*i:2*i+2], 2)
				if err := e.Step(one, steps[i]); err != nil {
					t.Fatal(err)
				}
			}
			if err := v.Step(b.Actions); err != nil {
				t.Fatal(err)
			}
		}
		if n := testing.AllocsPerRun(100, func() { _ = f.Put(1, steps[0]) }); n != 0 {
			t.Errorf("Put allocates %g times", n)
		}
		other := *steps[0]
		other.Mask = tensor.New(tensor.Bool, 3)
		if f.Put(0, &other) == nil {
			t.Error("a mask of another length is accepted")
		}
		for _, err := range []error{v.Close(), f.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	}
	if compared != 2*n*(bars-6) {
		t.Errorf("%d rows were compared", compared)
	}
}
