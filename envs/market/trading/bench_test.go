package trading_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// benchSource is a market of the specification's size: 16 assets, 11 years of days, 30 features.
func benchSource(b *testing.B) *trading.Source {
	b.Helper()
	s, err := trading.NewSource(randomMarket(1, 2768, 16, 30), trading.Defaults())
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// scripts are random actions, drawn beforehand.
func scripts(n, assets int) []*tensor.Tensor {
	s := rng.New(2).Stream()
	list := make([]*tensor.Tensor, n)
	for i := range list {
		list[i] = tensor.New(tensor.Int64, assets)
		for j := range list[i].Int64s() {
			list[i].Int64s()[j] = int64(s.IntN(3))
		}
	}
	return list
}

// scores are random actions of environments of weights, drawn beforehand.
func scores(n, assets int) []*tensor.Tensor {
	s := rng.New(2).Stream()
	list := make([]*tensor.Tensor, n)
	for i := range list {
		list[i] = tensor.New(tensor.Float32, assets)
		for j := range list[i].Float32s() {
			list[i].Float32s()[j] = float32(2*s.Float64() - 1)
		}
	}
	return list
}

func BenchmarkStep16(b *testing.B) {
	for name, change := range sorted.All(map[string]func(*trading.Config){
		"orders":     nil,
		"softmax":    func(c *trading.Config) { c.Actions = trading.Weights },
		"projection": func(c *trading.Config) { c.Actions, c.Weights.Simplex = trading.Weights, trading.Projection },
		"lots and costs": func(c *trading.Config) {
			c.Actions, c.Execution.Lot, c.Account.Settlement = trading.Weights, 1, 1
			c.Costs.Minimum, c.Costs.Participation, c.Costs.Slippage = 0.1, 0.1, trading.Slippage{BP: 2}
			c.Weights.MaxTurnover = 0.5
		},
		"limits on risk": func(c *trading.Config) { c.Actions, c.Risk = trading.Weights, limits },
	}) {
		b.Run(name, func(b *testing.B) { benchStep16(b, change) })
	}
}

func benchStep16(b *testing.B, change func(*trading.Config)) {
	c := trading.Defaults()
	actions := scripts(256, 16)
	if change != nil {
		change(&c)
		actions = scores(256, 17)
	}
	s, err := trading.NewSource(randomMarket(1, 2768, 16, 30), c)
	if err != nil {
		b.Fatal(err)
	}
	e, err := s.Env(trading.Range{First: 0, Last: 2767})
	if err != nil {
		b.Fatal(err)
	}
	ts, i := envs.NewTimeStep(e.Spec()), 0
	ts.Type = envs.Last
	b.ReportAllocs()
	for b.Loop() {
		if ts.Type == envs.Last {
			err = e.Reset(rng.New(1), ts)
		} else {
			err = e.Step(actions[i&255], ts)
		}
		if err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
}

func BenchmarkVector16x64(b *testing.B) {
	const n = 64
	s, list := benchSource(b), make([]envs.Env, n)
	for i := range list {
		var err error
		if list[i], err = s.Env(trading.Range{First: 0, Last: 2767}); err != nil {
			b.Fatal(err)
		}
	}
	v, err := vector.New(list, vector.Options{Workers: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	if err := v.Reset(rng.New(1)); err != nil {
		b.Fatal(err)
	}
	r, a := rng.New(3).Stream(), v.Batch().Actions.Int64s()
	for i := range a {
		a[i] = int64(r.IntN(3))
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := v.Step(v.Batch().Actions); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "steps/s")
}
