package prefix

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// table is windows of rows [T, 3].
type table struct {
	rows *tensor.Tensor
	n    int
}

func newTable(t, n int) *table {
	rows := tensor.New(tensor.Float32, t, 3)
	rng.New(4).Stream().FillNormal32(rows.Float32s(), 0, 1)
	return &table{rows, n}
}

func (w *table) Table() *tensor.Tensor      { return w.rows }
func (w *table) Len() int                   { return w.n }
func (w *table) At(last int) *tensor.Tensor { return w.rows.Rows(last-w.n+1, last+1) }

// encoder is two layers over the window of 4 rows, below scopes: the first is frozen below all of
// them, the second trained. between appends what lies between the two.
func encoder(t testing.TB, name string, scopes []string, between func(g *layer.Graph, x onnx.Value) onnx.Value) (*models.Network, map[string]*tensor.Tensor) {
	t.Helper()
	l := layer.New(name, rng.New(3), layer.Options{})
	w, next := l.Observation("w", 4, 3), l.Observation("next.w", 4, 3)
	extra := l.Observation("extra", 2)
	for i, scope := range scopes {
		g, x := l.In(scope), w
		if i%2 == 1 {
			x = next
		}
		x = g.Shift(g.Scale(x, 2), 1)
		x = g.In("first").Activate("tanh", g.In("first").LinearBias("fc", g.Reshape(x, -1, 12), 8, layer.FanIn(12), layer.FanIn(12)))
		x = between(g, x)
		x = g.Concat(1, x, extra)
		l.Output(scope+".y", g.LinearBias("second", x, 2, layer.FanIn(10), layer.FanIn(10)))
	}
	net, values, err := l.Network(models.Options{Freeze: []string{"*first*"}})
	if err != nil {
		t.Fatal(err)
	}
	return net, values
}

func same(_ *layer.Graph, x onnx.Value) onnx.Value { return x }

// frozen is Options.Constant for networks of encoder.
func frozen(name string) (string, bool) { return name, strings.Contains(name, "first") }

func options() Options {
	return Options{Windows: []string{"w", "next.w"}, Batch: layer.Batch, Constant: frozen}
}

// run runs a network on a batch of windows that end with rows, and returns what scope gives. c,
// unless nil, gives what is split off.
func run(t testing.TB, e engine.Compiler, n *models.Network, values map[string]*tensor.Tensor, s *Split, caches []*Cache, w *table, rows []int64, output string) []float32 {
	t.Helper()
	m, err := n.Bake(func(name string) *tensor.Tensor { return values[name] })
	if err != nil {
		t.Fatal(err)
	}
	x, err := e.Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var in, out []*tensor.Tensor
	for _, p := range x.Inputs() {
		p.Shape[0] = len(rows)
		v := tensor.New(p.DType, p.Shape...)
		switch {
		case p.Name == "extra":
			for i := range v.Float32s() {
				v.Float32s()[i] = float32(i)
			}
		case p.Name == "w" || p.Name == "next.w":
			for i, last := range rows {
				copy(v.Float32s()[i*12:], w.At(int(last)).Float32s())
			}
		default:
			found := false
			for k, part := range s.Parts {
				dst := make([]*tensor.Tensor, len(part.Outputs))
				for i, o := range part.Outputs {
					if p.Name == InputName("w", o.Index) || p.Name == InputName("next.w", o.Index) {
						dst[i], found = v, true
					}
				}
				if err := caches[k].Gather(dst, w, rows); err != nil {
					t.Fatal(err)
				}
			}
			if !found {
				t.Fatalf("nobody has input %q", p.Name)
			}
		}
		in = append(in, v)
	}
	out = make([]*tensor.Tensor, len(x.Outputs()))
	if err := x.Run(t.Context(), out, in); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(x.Outputs(), func(p engine.Port) bool { return p.Name == output })
	return out[i].Float32s()
}

// TestSplit: what is split off gives the same results; parts of equal weights are one cache; each
// block is computed once, by many at a time, and whoever asks gets the same bits.
func TestSplit(t *testing.T) {
	for _, e := range testengines.All(t) {
		w := newTable(50, 4)
		scopes := []string{"a", "b", "c"}
		net, values := encoder(t, "net", scopes, same)
		// b has the weights of a, c others.
		for _, p := range []string{"weight", "bias"} {
			copy(values["b.first.fc."+p].Float32s(), values["a.first.fc."+p].Float32s())
		}
		s, err := Of([]*models.Network{net, net}, options())
		if err != nil || s == nil {
			t.Fatal(s, err)
		}
		if len(s.Parts) != 3 || len(s.Rest) != 2 {
			t.Fatalf("%d parts of %d networks, expected 3 of 2", len(s.Parts), len(s.Rest))
		}
		for _, p := range s.Parts {
			if p.FLOPs != 2*12*8 || p.Bytes != 4*8 || len(p.Params()) != 2 {
				t.Errorf("a part of %g FLOPs, %d bytes and the parameters %v", p.FLOPs, p.Bytes, p.Params())
			}
		}
		for _, v := range s.Rest[0].Inputs {
			if v == "w" || v == "next.w" {
				t.Errorf("the rest reads %s", v)
			}
		}
		for _, p := range s.Rest[0].Specs {
			if strings.Contains(p.Name, "first") {
				t.Errorf("the rest has %s", p.Name)
			}
		}
		all := &Caches{}
		var caches []*Cache
		for _, p := range s.Parts {
			c, err := all.Open(e, p, func(name string) *tensor.Tensor { return values[name] }, w)
			if err != nil {
				t.Fatal(err)
			}
			caches = append(caches, c)
		}
		if all.Len() != 2 || caches[0] != caches[1] || caches[0] == caches[2] {
			t.Errorf("%s: %d caches, expected 2", e.Name(), all.Len())
		}
		for _, rows := range [][]int64{{3}, {49, 3, 20, 20}, {31, 17, 8}} {
			for _, scope := range scopes {
				want := run(t, e, net, values, nil, nil, w, rows, scope+".y")
				got := run(t, e, s.Rest[1], values, s, caches, w, rows, scope+".y")
				for i := range want {
					if math.Abs(float64(want[i]-got[i])) > 1e-6*(1+math.Abs(float64(want[i]))) {
						t.Errorf("%s: rows %v of %s: element %d is %g, expected %g", e.Name(), rows, scope, i, got[i], want[i])
					}
				}
			}
		}
		// Another process asks for other rows first, by many at once.
		again := &Caches{}
		c, err := again.Open(e, s.Parts[0], func(name string) *tensor.Tensor { return values[name] }, newTable(50, 4))
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		got := make([]*tensor.Tensor, 4)
		for k := range got {
			got[k] = tensor.New(tensor.Float32, 47, 8)
			wait.Go(func() {
				for i := range 47 {
					row := (i*7 + k*11) % 47
					if err := c.Gather([]*tensor.Tensor{got[k].Rows(row, row+1)}, w, []int64{int64(row + 3)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wait.Wait()
		whole := tensor.New(tensor.Float32, 47, 8)
		for i := range 47 {
			if err := caches[0].Gather([]*tensor.Tensor{whole.Rows(i, i+1)}, w, []int64{int64(i + 3)}); err != nil {
				t.Fatal(err)
			}
		}
		for k := range got {
			if !slices.Equal(got[k].Float32s(), whole.Float32s()) {
				t.Errorf("%s: what a window becomes depends on who asks", e.Name())
			}
		}
		if c.Runs() != 3 || caches[0].Runs() != 3 {
			t.Errorf("%s: %d and %d runs for 47 windows, expected 3", e.Name(), c.Runs(), caches[0].Runs())
		}
		// Windows that are no rows of the table.
		x := tensor.New(tensor.Float32, 18, 4, 3)
		for i := range 18 {
			copy(x.Float32s()[i*12:], w.At(i+9).Float32s())
		}
		apart := tensor.New(tensor.Float32, 18, 8)
		if err := c.Compute([]*tensor.Tensor{apart}, x); err != nil {
			t.Fatal(err)
		}
		for i, y := range apart.Float32s() {
			if z := whole.Float32s()[6*8+i]; math.Abs(float64(y-z)) > 1e-6 {
				t.Errorf("%s: element %d is %g, and %g of the table", e.Name(), i, y, z)
			}
		}
		for _, row := range []int64{-1, 2, 50} {
			if err := c.Gather(make([]*tensor.Tensor, 1), w, []int64{row}); err == nil || !strings.Contains(err.Error(), fmt.Sprint("row ", row)) {
				t.Errorf("row %d: %v", row, err)
			}
		}
		// It stays until all are closed.
		if err := again.Release(c); err != nil || again.Len() != 1 {
			t.Errorf("%d caches are left: %v", again.Len(), err)
		}
		if err := errors.Join(all.Close(), again.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestSplitLeaves: nothing is split off where everything is trained, where what is frozen has no
// product, or where it reads more than the window; values that belong to no row do not cross.
func TestSplitLeaves(t *testing.T) {
	net, _ := encoder(t, "net", []string{"a"}, same)
	none := options()
	none.Constant = func(name string) (string, bool) { return name, false }
	if s, err := Of([]*models.Network{net}, none); s != nil || err != nil {
		t.Errorf("%v, %v of a network that is trained", s, err)
	}
	// The first axis is no longer the batch's.
	turned, _ := encoder(t, "turned", []string{"a"}, func(g *layer.Graph, x onnx.Value) onnx.Value {
		y := g.Transpose(x, 1, 0)
		return g.Transpose(y, 1, 0)
	})
	s, err := Of([]*models.Network{turned}, options())
	if err != nil || s == nil || len(s.Parts) != 1 || len(s.Parts[0].Outputs) != 1 || !slices.Equal(s.Parts[0].Outputs[0].Shape, []int{8}) {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestRowsDepend: a mean over the batch is found out.
func TestRowsDepend(t *testing.T) {
	for _, e := range testengines.All(t) {
		net, values := encoder(t, "net", []string{"a"}, func(g *layer.Graph, x onnx.Value) onnx.Value {
			first := g.Slice(x, 0, 0, 1)
			return g.In("first").Linear("mixed", g.Sub(x, first), 8, layer.FanIn(8))
		})
		s, err := Of([]*models.Network{net}, options())
		if err != nil || s == nil {
			t.Fatal(s, err)
		}
		all := &Caches{}
		found := false
		for _, p := range s.Parts {
			_, err := all.Open(e, p, func(name string) *tensor.Tensor { return values[name] }, newTable(50, 4))
			found = found || errors.Is(err, ErrRowsDepend)
		}
		if !found {
			t.Errorf("%s: rows depend on each other, and nobody noticed", e.Name())
		}
		if err := all.Close(); err != nil {
			t.Error(err)
		}
	}
}
