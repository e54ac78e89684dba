package replay

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestSumTree compares the tree with a list, for weights of which many are 0.
func TestSumTree(t *testing.T) {
	s, cases := rng.New(1).Stream(), 0
	for _, n := range []int{1, 2, 3, 7, 8, 100, 257} {
		tree, list := newSumTree(n), make([]float64, n)
		for range 200 {
			for range 1 + s.IntN(5) {
				i := s.IntN(n)
				list[i] = 0
				if s.IntN(3) > 0 {
					list[i] = s.Float64() * math.Pow(10, float64(s.IntN(6)))
				}
				tree.set(i, list[i])
			}
			sum := 0.0
			for _, w := range list {
				sum += w
			}
			if math.Abs(tree.total()-sum) > 1e-12*sum {
				t.Fatalf("%d weights: sum %g, expected %g", n, tree.total(), sum)
			}
			if sum == 0 {
				continue
			}
			points, at, want := make([]float64, 20), make([]int, 20), make([]int, 20)
			for i := range points {
				points[i] = s.Float64() * tree.total()
				rest := points[i]
				for k, w := range list {
					if want[i] = k; rest < w {
						break
					}
					rest -= w
				}
			}
			tree.find(points, at)
			for i, k := range at {
				// At the very edge of a weight, sums in another order may fall on its neighbour.
				if k != want[i] && math.Abs(float64(k-want[i])) > float64(n)/4 || list[k] == 0 {
					t.Fatalf("%d weights: point %d falls on %d of weight %g, expected %d", n, i, k, list[k], want[i])
				}
				cases++
			}
		}
	}
	if cases < 7*200*10 {
		t.Errorf("%d points", cases)
	}
	// Points at and beyond the end fall on something.
	tree := newSumTree(5)
	tree.set(1, 0.1)
	tree.set(3, 0.2)
	at := make([]int, 2)
	if tree.find([]float64{tree.total(), 7}, at); !slices.Equal(at, []int{3, 3}) {
		t.Errorf("beyond the end: %v", at)
	}
}

func prioritised(t *testing.T, p Priorities, n int) (*Prioritised, *world, Layout) {
	t.Helper()
	v, _ := toys(t, 2)
	l := layoutOfToy(v)
	r, err := NewPrioritised(l, Config{Capacity: 80, Envs: 2, NSteps: n, Gamma: 0.9}, p)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, r)
	return r, newWorld(v, r), l
}

// TestPrioritised compares samples with what happened, while priorities change and the ring goes
// around.
func TestPrioritised(t *testing.T) {
	r, w, l := prioritised(t, Priorities{Alpha: 0.6, Eps: 1e-3}, 2)
	b, s := batchOf(l, 16), rng.New(2).Stream()
	r.SetBeta(0.5)
	for range 300 {
		w.round(t)
		if err := r.Sample(s, b); err != nil {
			t.Fatal(err)
		}
		w.check(t, b, 2, 0.9, map[string]int{})
		for i, x := range b.Weight {
			if !(x > 0 && x <= 1) {
				t.Fatalf("weight %d is %g", i, x)
			}
		}
		if slices.Max(b.Weight) != 1 {
			t.Fatalf("the largest weight is %g", slices.Max(b.Weight))
		}
		e := make([]float32, 16)
		s.FillNormal32(e, 0, 3)
		if err := r.Update(b.Index, e); err != nil {
			t.Fatal(err)
		}
	}
	// The weights of the tree are those of the transitions that are kept, and no others.
	n := 0
	for row := range r.rows.n {
		if r.tree.weight(row) > 0 {
			n++
		}
	}
	if n != r.Len() || !r.Full() {
		t.Errorf("%d rows have a priority, %d transitions are kept", n, r.Len())
	}
}

// TestPriorities holds frequencies and weights against the paper's formulas.
func TestPriorities(t *testing.T) {
	const alpha, eps, beta = 0.7, 0.1, 0.4
	r, w, l := prioritised(t, Priorities{Alpha: alpha, Eps: eps}, 1)
	for range 30 {
		w.round(t)
	}
	// Transitions that were never judged are equally likely.
	fresh := r.tree.total() / float64(r.Len())
	want := make([]float64, r.rows.n)
	s := rng.New(4).Stream()
	var index []int64
	var errors []float32
	sum := 0.0
	for row := range want {
		p := r.tree.weight(row)
		if p == 0 {
			continue
		}
		if math.Abs(p-fresh) > 1e-12 || p != 1 {
			t.Errorf("a new transition has the priority %g of %g", p, fresh)
		}
		e := 5 * s.Normal()
		index, errors = append(index, int64(row)), append(errors, float32(e))
		want[row] = math.Pow(math.Abs(float64(float32(e)))+eps, alpha)
		sum += want[row]
	}
	if err := r.Update(index, errors); err != nil {
		t.Fatal(err)
	}
	r.SetBeta(beta)
	b, counts, draws := batchOf(l, 20), make([]float64, len(want)), 0
	for range 5000 {
		if err := r.Sample(s, b); err != nil {
			t.Fatal(err)
		}
		top := 0.0
		for _, k := range b.Index {
			counts[k]++
			draws++
			top = max(top, math.Pow(float64(r.Len())*want[k]/sum, -beta))
		}
		for i, k := range b.Index {
			if x := math.Pow(float64(r.Len())*want[k]/sum, -beta) / top; math.Abs(x-float64(b.Weight[i])) > 1e-5 {
				t.Fatalf("weight %g, expected %g", b.Weight[i], x)
			}
		}
	}
	chi, k := 0.0, 0.0
	for row, c := range counts {
		if want[row] > 0 {
			mean := want[row] / sum * float64(draws)
			chi += (c - mean) * (c - mean) / mean
			k++
		} else if c > 0 {
			t.Errorf("row %d, no transition, was drawn %g times", row, c)
		}
	}
	// One sample from each range varies less than independent ones.
	if chi > k+6*math.Sqrt(2*k) || k < 50 {
		t.Errorf("χ² %g of %g transitions", chi, k)
	}
	// The next transition is as likely as the largest error so far.
	highest := 0.0
	for _, e := range errors {
		highest = max(highest, math.Abs(float64(e))+eps)
	}
	row := r.newest(0)
	w.round(t)
	if got := r.tree.weight(row); math.Abs(got-math.Pow(highest, alpha)) > 1e-9 {
		t.Errorf("a new transition has the priority %g, expected %g", got, math.Pow(highest, alpha))
	}
}

func TestPrioritisedRefuses(t *testing.T) {
	n := 0
	for _, p := range []Priorities{{-1, 1}, {1, 0}, {math.Inf(1), 1}, {math.NaN(), 1}} {
		if r, err := NewPrioritised(layoutOfToyStatic, Config{Capacity: 8, Envs: 1}, p); err == nil || r != nil {
			t.Errorf("%v is accepted", p)
		}
		n++
	}
	r, w, _ := prioritised(t, Priorities{Alpha: 1, Eps: 1}, 1)
	w.round(t)
	for want, f := range sorted.All(map[string]func() error{
		"2 priorities for 1":   func() error { return r.Update([]int64{0}, []float32{1, 2}) },
		"has the error NaN":    func() error { return r.Update([]int64{0}, []float32{float32(math.NaN())}) },
		"has the index 999999": func() error { return r.Update([]int64{999999}, []float32{1}) },
	}) {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected %q: %v", want, err)
		}
		n++
	}
	if n != 7 {
		t.Errorf("%d cases", n)
	}
}

var layoutOfToyStatic = Layout{Obs: []Column{{"x", tensor.Float32, []int{2}}}, Action: Column{"action", tensor.Float32, []int{1}}}

// TestResume saves replays in the middle, restores them, and compares all that follows.
func TestResume(t *testing.T) {
	cases := 0
	for _, rounds := range []int{5, 120} {
		for _, prio := range []bool{false, true} {
			v, _ := toys(t, 2)
			l := layoutOfToy(v)
			open := func(c Config) Buffer {
				var b Buffer
				var err error
				if prio {
					b, err = NewPrioritised(l, c, Priorities{Alpha: 0.5, Eps: 0.1})
				} else {
					b, err = NewUniform(l, c)
				}
				if err != nil {
					t.Fatal(err)
				}
				closing(t, b)
				return b
			}
			c := Config{Capacity: 60, Envs: 2, NSteps: 2, Gamma: 0.9}
			one, two := open(c), open(c)
			rec, again := one, two
			w := newWorld(v, rec)
			for range rounds {
				w.round(t)
			}
			path := checkpointed(t, "replay", rec)
			load := func(into checkpoint.Stater) error {
				saved, err := checkpoint.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				closing(t, saved)
				return saved.Load(into)
			}
			if err := load(again); err != nil {
				t.Fatal(err)
			}
			if again.Rounds() != int64(rounds) || two.Len() != one.Len() {
				t.Errorf("%d rounds and %d transitions, expected %d and %d", again.Rounds(), two.Len(), rounds, one.Len())
			}
			// Both record what follows.
			w.rec = both{rec, again}
			b, s := batchOf(l, 8), rng.New(9).Stream()
			d, u := batchOf(l, 8), rng.New(9).Stream()
			for range 50 {
				w.round(t)
				if err := one.Sample(s, b); err != nil {
					t.Fatal(err)
				}
				if err := two.Sample(u, d); err != nil {
					t.Fatal(err)
				}
				w.check(t, d, 2, 0.9, map[string]int{})
				if !slices.Equal(b.Index, d.Index) || !slices.Equal(b.Reward, d.Reward) || !slices.Equal(b.Weight, d.Weight) {
					t.Fatal("the restored replay samples differently")
				}
			}
			other := c
			other.Capacity = 70
			if err := load(open(other)); err == nil || !strings.Contains(err.Error(), "rows") {
				t.Errorf("another capacity: %v", err)
			}
			cases++
		}
	}
	if cases != 4 {
		t.Errorf("%d cases", cases)
	}
}
