package publish

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs/meta"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The sizes of [routerOf55].
const (
	benchAssets  = 55
	benchExperts = 5
	benchWindow  = 60 * benchAssets * 6
)

// routerOf55 is a router of five experts over 55 assets and the cash, with all limits on risk. All
// of them read an encoding of 256 numbers, which is the input or, with a base, what one frozen
// layer makes of a window of 60 bars.
func routerOf55(tb testing.TB, base bool) bake.Router {
	tb.Helper()
	mlp := func(seed int, router bool) *onnx.Model {
		g := layer.New("policy", rng.New(uint64(seed)), layer.Options{})
		var z onnx.Value
		if base {
			z = g.In("base").MLP(g.Observation("window", benchWindow), []int{256}, "tanh", layer.Normal(0.01))
		} else {
			z = g.Observation("encoding", 256)
		}
		z = g.Concat(1, z, g.Observation("position", benchAssets), g.Observation("cash", 1))
		if router {
			table := g.Observation(meta.ExpertsField, 4*benchExperts)
			mask := g.Batched(agents.MaskInput, tensor.Bool, benchExperts)
			z = g.In("body").MLP(g.Concat(1, z, table), []int{64, 64}, "tanh", layer.Orthogonal(1))
			c := head.NewCategorical(g, head.Logits(g, z, layer.Orthogonal(1), benchExperts), mask, benchExperts)
			g.Output(agents.ActionOutput, g.Squeeze(c.Mode(), 1))
			g.Output(agents.LogProbsOutput, c.LogProbs)
		} else {
			z = g.In("body").MLP(z, []int{256, 256}, "relu", layer.Orthogonal(1))
			g.Output(agents.ActionOutput, g.Linear("mean", z, benchAssets+1, layer.Orthogonal(1)))
		}
		net, values, err := g.Network(models.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		if base {
			for name, t := range sorted.All(values) {
				if !strings.HasPrefix(name, "base.") {
					continue
				}
				stream := rng.New(1).Split(name).Stream()
				for i := range t.Float32s() {
					t.Float32s()[i] = 0.01 * float32(stream.Normal())
				}
			}
		}
		list := []bake.Wrapper{}
		if !router {
			list = append(list, &bake.Simplex{Output: agents.ActionOutput, Project: true})
		}
		m, err := bake.Agent(net, func(name string) *tensor.Tensor { return values[name] }, nil, list...)
		if err != nil {
			tb.Fatal(err)
		}
		return m
	}
	r := bake.Router{
		Model: mlp(1, true), Action: agents.ActionOutput, Scores: agents.LogProbsOutput, Table: meta.ExpertsField, Mask: agents.MaskInput, Segment: 5, UsageWindow: 1000, Account: "account",
		Drawdown: &bake.RouterDrawdown{Limit: 0.15, Resume: 0.075, Days: 30},
		CVaR:     &bake.RouterCVaR{Limit: 0.05, Resume: 0.025, Level: 0.95, Cut: 0.5, Days: 250, Least: 20, Exposure: 1},
	}
	for i := range benchExperts {
		r.Experts = append(r.Experts, mlp(2+i, false))
	}
	return r
}

// baseOf55 is the base alone.
func baseOf55(tb testing.TB) *onnx.Model {
	tb.Helper()
	g := layer.New("base", rng.New(1), layer.Options{})
	g.Output(agents.ActionOutput, g.In("base").MLP(g.Observation("window", benchWindow), []int{256}, "tanh", layer.Normal(0.01)))
	m, err := g.Model()
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// TestSharedBase asks that a base that router and experts have in common is stored and computed
// once.
func TestSharedBase(t *testing.T) {
	longtest.Slow(t)
	large, products := 0, 0
	m, err := routerOf55(t, true).Compose()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Graph.Initializer {
		if len(p.Dims) == 2 && p.Dims[0]*p.Dims[1] == benchWindow*256 {
			large++
		}
	}
	for _, n := range m.Graph.Node {
		for _, v := range n.Input {
			if v == "window" {
				products++
			}
		}
	}
	if large != 1 || products != 1 {
		t.Errorf("%d weights of the base, and the window is read %d times; want 1 and 1", large, products)
	}
}

// BenchmarkWhole measures one decision of a router with its experts, their books and masks: on a
// given encoding, and with a base that makes it, on one thread, the fastest of all, as a multiple
// of what the base, the router and the experts take each alone, to which books and masks come.
func BenchmarkWhole(b *testing.B) {
	c := single{testengines.Fastest(b)}
	for _, x := range []struct {
		name string
		base bool
	}{{"encoding", false}, {"base", true}} {
		b.Run(x.name, func(b *testing.B) {
			r := routerOf55(b, x.base)
			m, err := r.Compose()
			if err != nil {
				b.Fatal(err)
			}
			p, err := served.New(b.Context(), m, c, 1)
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			fill(p)
			day := p.Input("account").Float32s()
			step := func(i int) {
				day[0], day[1] = 1+0.01*float32(i%7), float32(i)
				if err := p.Run(); err != nil {
					b.Fatal(err)
				}
				p.Advance()
			}
			for i := range 300 {
				step(i + 1)
			}
			b.ReportAllocs()
			n, least := 300, time.Duration(math.MaxInt64)
			for b.Loop() {
				n++
				at := time.Now()
				step(n)
				least = min(least, time.Since(at))
			}
			took := float64(least.Nanoseconds()) / 1e3
			b.ReportMetric(float64(len(m.Graph.Node)), "nodes")
			b.ReportMetric(took, "µs-least")
			parts := routerOf55(b, false)
			alone := fastest(b, c, parts.Model)
			for _, m := range parts.Experts {
				alone += fastest(b, c, m)
			}
			if x.base {
				alone += fastest(b, c, baseOf55(b))
			}
			b.ReportMetric(alone, "µs-parts")
			b.ReportMetric(took/alone, "×parts")
			bare := kernels(b, c, m, p)
			b.ReportMetric(bare, "µs-kernels")
			b.ReportMetric(took/bare, "×kernels")
		})
	}
}

// fill gives a policy an observation.
func fill(p *served.Policy) {
	s := rng.New(1).Stream()
	for _, name := range p.Inputs() {
		if t := p.Input(name); t.DType() == tensor.Float32 && !p.Remembers(name) {
			for i := range t.Float32s() {
				t.Float32s()[i] = float32(s.Float64())
			}
		}
	}
}

// single is an engine of one thread.
type single struct{ engine.Compiler }

func (c single) Compile(m *onnx.Model, o engine.Options) (engine.Session, error) {
	o.Threads = 1
	return c.Compiler.Compile(m, o)
}

// fastest is the least time of a run of a model of one row, in microseconds.
func fastest(b *testing.B, c engine.Compiler, m *onnx.Model) float64 {
	p, err := served.New(b.Context(), m, c, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	fill(p)
	least := time.Duration(math.MaxInt64)
	for range 3000 {
		at := time.Now()
		if err := p.Run(); err != nil {
			b.Fatal(err)
		}
		least = min(least, time.Since(at))
	}
	return float64(least.Nanoseconds()) / 1e3
}
