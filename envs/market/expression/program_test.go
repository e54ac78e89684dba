package expression

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/state"
)

// samples has every operator with a window, at two lengths, and a nested expression for each.
func samples() []string {
	texts := []string{"EMA($close, 0.4)", "Mean(Ref(Std($close, 5), 3)/Mean($volume, 7), 4)"}
	for i := range operators {
		o := &operators[i]
		if !o.windowed() {
			continue
		}
		for _, n := range []int{4, 9} {
			x, y, q := "$close", "", ""
			if o.pairs != nil {
				y = ", $volume"
			}
			if o.quantile {
				q = ", 0.3"
			}
			texts = append(texts, fmt.Sprintf("%s(%s%s, %d%s)", o.name, x, y, n, q), fmt.Sprintf("%s(%s%s, %d%s)", o.name, "Delta($open, 2)", y, n, q))
		}
	}
	return texts
}

// randomBars are bars with missing values and runs of equal ones.
func randomBars(n int) [][]float64 {
	r := rand.New(rand.NewPCG(1, 2))
	bars := make([][]float64, n)
	for i := range bars {
		bars[i] = make([]float64, len(fields))
		for k := range bars[i] {
			switch {
			case r.IntN(12) == 0:
				bars[i][k] = math.NaN()
			case i > 0 && r.IntN(4) == 0:
				bars[i][k] = bars[i-1][k]
			default:
				bars[i][k] = r.Float64() * 10
			}
		}
	}
	return bars
}

func same(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b }

// After its warm-up a value has the same bits wherever the data begin, and so it has after a save
// and a restore; one bar less of warm-up would not do.
func TestWindowsStandAlone(t *testing.T) {
	bars := randomBars(260)
	n := 0
	for _, text := range samples() {
		p := compile(t, text)
		whole := run(p, bars)
		needed := false
		for _, begin := range []int{1, 7, 40} {
			part := run(p, bars[begin:])
			for i := range part {
				equal := same(part[i][0], whole[begin+i][0])
				if i >= p.Warmup(0) && !equal {
					t.Fatalf("%s, bar %d from bar %d on: %v, and %v with all bars", text, i, begin, part[i][0], whole[begin+i][0])
				}
				needed = needed || i == p.Warmup(0)-1 && !equal
				n++
			}
		}
		if p.Warmup(0) > 0 && !needed && !strings.HasPrefix(text, "EMA") {
			t.Logf("%s: fewer than %d bars would do on these data", text, p.Warmup(0))
		}
		for _, at := range []int{0, 3, 100} {
			a, out := p.New(), make([]float64, 1)
			for _, b := range bars[:at] {
				a.Next(b, out)
			}
			w := state.Writer(nil)
			a.State(w)
			restored, r := p.New(), state.Reader(w.Bytes())
			restored.State(r)
			if r.Err() != nil || len(r.Bytes()) > 0 {
				t.Fatalf("%s: %v, %d bytes left", text, r.Err(), len(r.Bytes()))
			}
			for i, b := range bars[at:] {
				if restored.Next(b, out); !same(out[0], whole[at+i][0]) {
					t.Fatalf("%s: restored after %d bars, bar %d differs", text, at, at+i)
				}
				n++
			}
		}
	}
	if n < 60_000 {
		t.Errorf("compared %d values", n)
	}
}

// Parts that expressions share are computed once, and the result is what each has alone.
func TestCompileShares(t *testing.T) {
	bars := randomBars(80)
	texts := samples()
	all := run(compile(t, texts...), bars)
	for i, text := range texts {
		for k, row := range run(compile(t, text), bars) {
			if !same(row[0], all[k][i]) {
				t.Fatalf("%s, bar %d: %v alone, %v among others", text, k, row[0], all[k][i])
			}
		}
	}
	p := compile(t, "Mean($close,5)/$close", "Mean( $close, 5 )-1", "(Mean($close, 2+3))*1e0")
	if len(p.nodes) != 6 {
		var list []string
		for _, n := range p.nodes {
			list = append(list, n.String())
		}
		t.Errorf("%d nodes: %v", len(p.nodes), list)
	}
	e, err := Parse("$turn/2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(fields, e); err == nil || !strings.Contains(err.Error(), "$turn is not there; the data have [open") {
		t.Error(err)
	}
}

func BenchmarkAlpha158(b *testing.B) {
	list, err := Set("alpha158")
	if err != nil {
		b.Fatal(err)
	}
	var texts []string
	for _, f := range list {
		texts = append(texts, f.Text)
	}
	p := compile(b, texts...)
	bars, s, out := randomBars(500), p.New(), make([]float64, len(texts))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Next(bars[i%len(bars)], out)
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	p := compile(t, samples()...)
	bars, s, out := randomBars(50), p.New(), make([]float64, len(p.outputs))
	i := 0
	if n := testing.AllocsPerRun(100, func() { s.Next(bars[i%50], out); i++ }); n != 0 {
		t.Errorf("%v allocations a bar", n)
	}
}
