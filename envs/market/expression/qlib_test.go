package expression

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// reference is what pyqlib computes: cmd/peers/qlib_expression.py.
type reference struct {
	Fields      map[string][]*float64
	Expressions []struct {
		Name, Text string
		Every      int
		Values     []*float64
	}
}

// or is a number of a document, NaN where it has none.
func or(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

var fields = []string{"open", "high", "low", "close", "volume", "vwap"}

func load(t testing.TB) (reference, [][]float64) {
	t.Helper()
	raw, err := os.ReadFile("testdata/qlib_reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var ref reference
	if err := json.Unmarshal(raw, &ref); err != nil {
		t.Fatal(err)
	}
	bars := make([][]float64, len(ref.Fields["close"]))
	for i := range bars {
		for _, f := range fields {
			bars[i] = append(bars[i], or(ref.Fields[f][i]))
		}
	}
	return ref, bars
}

func compile(t testing.TB, texts ...string) *Program {
	t.Helper()
	var list []*Expr
	for _, text := range texts {
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	p, err := Compile(fields, list...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run computes expressions over bars: result[bar][expression].
func run(p *Program, bars [][]float64) [][]float64 {
	s := p.New()
	result := make([][]float64, len(bars))
	for i, b := range bars {
		result[i] = make([]float64, len(p.outputs))
		s.Next(b, result[i])
	}
	return result
}

// Every operator and every factor has Qlib's values. Qlib computes in float32 in places, so that a
// correlation of small quotients differs by some 1e-6.
func TestQlib(t *testing.T) {
	ref, bars := load(t)
	var texts []string
	for _, e := range ref.Expressions {
		texts = append(texts, e.Text)
	}
	p := compile(t, texts...)
	values := run(p, bars)
	n, worst := 0, 0.0
	for i, e := range ref.Expressions {
		scale := math.SmallestNonzeroFloat64
		for _, v := range e.Values {
			if v != nil {
				scale = max(scale, math.Abs(*v))
			}
		}
		for k, v := range e.Values {
			want, got := or(v), values[k*e.Every][i]
			n++
			if want != want && !present(got) {
				continue
			}
			d := math.Abs(got-want) / scale
			if !(d <= 5e-6) {
				t.Errorf("%s, %s, bar %d: %v, Qlib has %v (%.2g of the largest)", e.Name, e.Text, k*e.Every, got, want, d)
			}
			worst = max(worst, d)
		}
	}
	t.Logf("%d values, the worst differs by %.2g of the largest of its kind", n, worst)
	if n != 17726 {
		t.Errorf("compared %d values", n)
	}
	used := map[*operator]bool{}
	for _, n := range p.nodes {
		used[n.op] = true
	}
	for i := range operators {
		if !used[&operators[i]] {
			t.Errorf("%s is in no expression of the reference", operators[i].name)
		}
	}
}

// The sets are Qlib's: as many factors, with its names in its order.
func TestSets(t *testing.T) {
	ref, _ := load(t)
	at := len(ref.Expressions) - 158 - 360
	for _, name := range Sets {
		list, err := Set(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			want := ref.Expressions[at]
			at++
			a, err := Parse(f.Text)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Parse(want.Text)
			if err != nil {
				t.Fatal(err)
			}
			if f.Name != want.Name || a.String() != b.String() {
				t.Errorf("%s is %s, %s is %s in Qlib", f.Name, a, want.Name, b)
			}
		}
	}
	if at != len(ref.Expressions) {
		t.Errorf("%d factors are missing", len(ref.Expressions)-at)
	}
	if _, err := Set("alpha101"); err == nil {
		t.Error("an unknown set")
	}
}
