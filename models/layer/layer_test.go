package layer_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func random(stream uint64, shape ...int) *tensor.Tensor {
	t := tensor.New(tensor.Float32, shape...)
	rng.New(stream).Stream().FillNormal32(t.Float32s(), 0, 1)
	return t
}

// at reads an element of a tensor.
func at(t *tensor.Tensor, index ...int) float64 {
	i := 0
	for axis, n := range t.Shape() {
		i = i*n + index[axis]
	}
	return float64(t.Float32s()[i])
}

// params returns the initial values of a network by name.
func params(t *testing.T, g *layer.Graph) map[string]*tensor.Tensor {
	t.Helper()
	_, v, err := g.Network(models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// forms lists layers next to their definitions.
var forms = []struct {
	name  string
	shape []int // of one row of x
	build func(g *layer.Graph, x onnx.Value) onnx.Value
	want  []int // the shape of one row of the result
	// naive returns one element of the result for row b.
	naive func(p map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64
}{
	{
		"linear of a window", []int{4, 2, 3},
		func(g *layer.Graph, x onnx.Value) onnx.Value {
			return g.LinearBias("fc", x, 5, layer.Xavier(1), layer.Normal(1))
		},
		[]int{4, 2, 5},
		func(p map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64 {
			sum := at(p["fc.bias"], i[2])
			for f := range 3 {
				sum += at(p["fc.weight"], i[2], f) * at(x, b, i[0], i[1], f)
			}
			return sum
		},
	},
	{
		"projection of a window", []int{4, 2, 3},
		func(g *layer.Graph, x onnx.Value) onnx.Value { return g.Projection("fc", x, 5, layer.Xavier(1)) },
		[]int{4, 2, 5},
		func(p map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64 {
			sum := 0.0
			for f := range 3 {
				sum += at(p["fc.weight"], i[2], f) * at(x, b, i[0], i[1], f)
			}
			return sum
		},
	},
	{
		"convolution, valid, dilated", []int{7, 2, 3}, conv(layer.Valid, 3, 2), []int{3, 2, 4},
		naiveConv(3, 2, 0),
	},
	{
		"convolution, causal", []int{5, 3}, conv(layer.Causal, 3, 1), []int{5, 4},
		naiveConv(3, 1, 2),
	},
	{
		"convolution, same, even kernel", []int{5, 3}, conv(layer.Same, 4, 1), []int{5, 4},
		naiveConv(4, 1, 1),
	},
	{
		"convolution of single steps", []int{5, 3}, conv(layer.Valid, 1, 1), []int{5, 4},
		naiveConv(1, 1, 0),
	},
	{
		"gated linear unit", []int{2, 6}, func(g *layer.Graph, x onnx.Value) onnx.Value { return g.GLU(x) }, []int{2, 3},
		func(_ map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64 {
			return at(x, b, i[0], i[1]) / (1 + math.Exp(-at(x, b, i[0], i[1]+3)))
		},
	},
	{
		"mean of windows", []int{6, 2, 2}, pool(layer.Average), []int{4, 2, 2},
		func(_ map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64 {
			return (at(x, b, i[0], i[1], i[2]) + at(x, b, i[0]+1, i[1], i[2]) + at(x, b, i[0]+2, i[1], i[2])) / 3
		},
	},
	{
		"largest of windows", []int{6, 2}, pool(layer.Largest), []int{4, 2},
		func(_ map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64 {
			return max(at(x, b, i[0], i[1]), at(x, b, i[0]+1, i[1]), at(x, b, i[0]+2, i[1]))
		},
	},
	{
		"last of windows", []int{6, 2}, pool(layer.Last), []int{4, 2},
		func(_ map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64 {
			return at(x, b, i[0]+2, i[1])
		},
	},
	{
		"normalisation", []int{4}, func(g *layer.Graph, x onnx.Value) onnx.Value { return g.LayerNorm("n", x) }, []int{4},
		func(_ map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64 {
			mean, squares := 0.0, 0.0
			for f := range 4 {
				mean += at(x, b, f) / 4
			}
			for f := range 4 {
				squares += (at(x, b, f) - mean) * (at(x, b, f) - mean) / 4
			}
			return (at(x, b, i[0]) - mean) / math.Sqrt(squares+1e-5)
		},
	},
	{
		"causal attention with one head", []int{3, 2},
		func(g *layer.Graph, x onnx.Value) onnx.Value {
			return g.SelfAttention("a", x, 1, g.CausalBias(3), layer.Normal(0.7))
		},
		[]int{3, 2}, naiveAttention(func(step int) int { return step + 1 }, 3),
	},
	{
		"sparse attention of two queries", []int{5, 2},
		func(g *layer.Graph, x onnx.Value) onnx.Value {
			return g.ProbSparseAttention("a", x, 1, 2, layer.Normal(0.7))
		},
		[]int{5, 2}, naiveAttention(func(int) int { return 5 }, 2),
	},
	{
		"sparse attention of all queries", []int{5, 2},
		func(g *layer.Graph, x onnx.Value) onnx.Value {
			return g.ProbSparseAttention("a", x, 1, 5, layer.Normal(0.7))
		},
		[]int{5, 2}, naiveAttention(func(int) int { return 5 }, 5),
	},
	{
		"fold and unfold", []int{3, 2, 4}, func(g *layer.Graph, x onnx.Value) onnx.Value { return g.UnfoldAxis(g.FoldAxis(x, 2), 2) }, []int{2, 3, 4},
		func(_ map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64 {
			return at(x, b, i[1], i[0], i[2])
		},
	},
	{
		"gelu", []int{3}, activation("gelu"), []int{3},
		func(_ map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64 {
			v := at(x, b, i[0])
			return v / 2 * (1 + math.Erf(v/math.Sqrt2))
		},
	},
	{
		"silu", []int{3}, activation("silu"), []int{3},
		func(_ map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64 {
			return at(x, b, i[0]) / (1 + math.Exp(-at(x, b, i[0])))
		},
	},
	{
		"sinusoids", []int{3, 4}, func(g *layer.Graph, x onnx.Value) onnx.Value { return g.Add(x, g.Sinusoids(3, 4)) }, []int{3, 4},
		func(_ map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64 {
			angle := float64(i[0]) / []float64{1, 1, 100, 100}[i[1]]
			return at(x, b, i[0], i[1]) + []float64{math.Sin(angle), math.Cos(angle)}[i[1]%2]
		},
	},
}

func conv(p layer.Padding, kernel, dilation int) func(*layer.Graph, onnx.Value) onnx.Value {
	return func(g *layer.Graph, x onnx.Value) onnx.Value {
		return g.Conv1D("c", x, 4, kernel, dilation, p, layer.Kaiming(1))
	}
}

func pool(p layer.Pool) func(*layer.Graph, onnx.Value) onnx.Value {
	return func(g *layer.Graph, x onnx.Value) onnx.Value { return g.PoolWindows(x, 3, p) }
}

func activation(name string) func(*layer.Graph, onnx.Value) onnx.Value {
	return func(g *layer.Graph, x onnx.Value) onnx.Value { return g.Activate(name, x) }
}

func naiveConv(kernel, dilation, before int) func(map[string]*tensor.Tensor, *tensor.Tensor, int, []int) float64 {
	return func(p map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64 {
		out := i[len(i)-1]
		sum := at(p["c.bias"], out)
		for k := range kernel {
			step := i[0] + k*dilation - before
			if step < 0 || step >= x.Shape()[1] {
				continue
			}
			for f := range 3 {
				index := append([]int{b, step}, append(slices.Clone(i[1:len(i)-1]), f)...)
				sum += at(p["c.weight"], out, k*3+f) * at(x, index...)
			}
		}
		return sum
	}
}

// naiveAttention is attention of one head of width 2 in which a step sees the first keys(step)
// steps and only the given number of queries attends, those with the largest difference between the
// maximum and the mean of their scores; the others get the mean of the values.
func naiveAttention(keys func(step int) int, queries int) func(map[string]*tensor.Tensor, *tensor.Tensor, int, []int) float64 {
	return func(p map[string]*tensor.Tensor, x *tensor.Tensor, b int, i []int) float64 {
		project := func(step, row int) float64 {
			sum := at(p["a.qkv.bias"], row)
			for f := range 2 {
				sum += at(p["a.qkv.weight"], row, f) * at(x, b, step, f)
			}
			return sum
		}
		score := func(q, k int) float64 {
			return (project(q, 0)*project(k, 2) + project(q, 1)*project(k, 3)) / math.Sqrt2
		}
		peak := func(q int) float64 {
			largest, sum := math.Inf(-1), 0.0
			for k := range keys(q) {
				largest, sum = max(largest, score(q, k)), sum+score(q, k)
			}
			return largest - sum/float64(keys(q))
		}
		rank := 0
		for q := range x.Shape()[1] {
			if queries < x.Shape()[1] && peak(q) > peak(i[0]) {
				rank++
			}
		}
		total := 0.0
		var mixed [2]float64
		for s := range keys(i[0]) {
			weight := 1.0
			if rank < queries {
				weight = math.Exp(score(i[0], s))
			}
			total += weight
			for f := range mixed {
				mixed[f] += weight * project(s, 4+f)
			}
		}
		return at(p["a.out.bias"], i[1]) + (at(p["a.out.weight"], i[1], 0)*mixed[0]+at(p["a.out.weight"], i[1], 1)*mixed[1])/total
	}
}

func TestAgainstDefinitions(t *testing.T) {
	const batch = 2
	list := testengines.All(t)
	compared, grads := 0, 0
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			g := layer.New("x", rng.New(3), layer.Options{})
			y := f.build(g, g.Observation("x", f.shape...))
			// The sum of normalised features is constant and has no gradient; a weighted sum has.
			g.Output("weighted", g.Mul(y, g.Const(random(5, f.want...))))
			g.Output("y", y)
			m, err := g.Model()
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Type("y").String(); got != typeOf(f.want).String() {
				t.Errorf("its type is %v, expected %v", got, typeOf(f.want))
			}
			x, p := random(4, append([]int{batch}, f.shape...)...), params(t, g)
			for _, e := range list {
				out, err := gradcheck.Run(t.Context(), e, m, map[string]*tensor.Tensor{"x": x})
				if err != nil {
					t.Fatal(err)
				}
				per := out["y"].Len() / batch
				for k, v := range out["y"].Float32s() {
					index, rest := make([]int, len(f.want)), k%per
					for axis := len(index) - 1; axis >= 0; axis-- {
						index[axis] = rest % f.want[axis]
						rest /= f.want[axis]
					}
					want := f.naive(p, x, k/per, index)
					if compared++; math.Abs(float64(v)-want) > 1e-5*(1+math.Abs(want)) {
						t.Errorf("%s: element %d %v is %v, want %v", e.Name(), k/per, index, v, want)
					}
				}
				bound, err := onnx.BindDims(m, map[string]int{layer.Batch: batch})
				if err != nil {
					t.Fatal(err)
				}
				prob := gradcheck.Problem{Model: bound, Inputs: map[string]*tensor.Tensor{"x": x}, Wrt: []string{"x"}, Outputs: []string{"weighted"}}
				for name := range sorted.All(p) {
					prob.Wrt = append(prob.Wrt, name)
				}
				slices.Sort(prob.Wrt)
				r, err := gradcheck.Check(t.Context(), e, prob, gradcheck.Options{})
				if err != nil {
					t.Errorf("%s: %v", e.Name(), err)
				}
				grads += min(r.Comparisons, 1)
			}
		})
	}
	elements := 0
	for _, f := range forms {
		n := batch
		for _, d := range f.want {
			n *= d
		}
		elements += n
	}
	if compared != elements*len(list) || grads != len(forms)*len(list) || len(forms) != 18 {
		t.Errorf("%d elements and %d gradients of %d forms", compared, grads, len(forms))
	}
}

func typeOf(shape []int) onnx.TensorType {
	t := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol(layer.Batch)}}
	for _, d := range shape {
		t.Dims = append(t.Dims, onnx.Known(d))
	}
	return t
}

// TestInitialisation checks the laws that each initialisation promises.
func TestInitialisation(t *testing.T) {
	g := layer.New("x", rng.New(1), layer.Options{})
	shapes := map[string][]int{"tall": {40, 25}, "wide": {25, 40}, "square": {30, 30}, "taps": {20, 3, 10}}
	for name, s := range sorted.All(shapes) {
		g.Param(name, layer.Orthogonal(1.5), s...)
	}
	v := params(t, g)
	n := 0
	for name, s := range sorted.All(shapes) {
		rows, cols := s[0], v[name].Len()/s[0]
		x := func(i, j int) float64 { return float64(v[name].Float32s()[i*cols+j]) }
		vectors, length := rows, cols
		if rows > cols {
			vectors, length = cols, rows
			inner := x
			x = func(i, j int) float64 { return inner(j, i) }
		}
		for i := range vectors {
			for j := range vectors {
				dot, want := 0.0, 0.0
				for k := range length {
					dot += x(i, k) * x(j, k)
				}
				if i == j {
					want = 1.5 * 1.5
				}
				if n++; math.Abs(dot-want) > 1e-5 {
					t.Fatalf("%s: vectors %d and %d have the product %v, expected %v", name, i, j, dot, want)
				}
			}
		}
	}
	if n != 25*25*2+30*30+20*20 {
		t.Errorf("%d products", n)
	}

	// Moments and bounds of the others, over a large matrix.
	g = layer.New("x", rng.New(2), layer.Options{})
	inits := map[string]layer.Init{"xavier": layer.Xavier(2), "kaiming": layer.Kaiming(math.Sqrt2), "normal": layer.Normal(0.3), "uniform": layer.Uniform(0.7), "fan_in": layer.FanIn(200), "default": layer.LinearDefault(), "orthogonal": layer.Orthogonal(2), "constant": layer.Constant(4)}
	want := map[string]float64{"xavier": 2 * math.Sqrt(2.0/300), "kaiming": math.Sqrt2 / math.Sqrt(200), "normal": 0.3, "uniform": 0.7 / math.Sqrt(3), "fan_in": 1 / math.Sqrt(600), "default": 1 / math.Sqrt(600), "orthogonal": 2 / math.Sqrt(200), "constant": 0}
	for name, i := range sorted.All(inits) {
		g.Param(name, i, 100, 200)
	}
	for name, t2 := range sorted.All(params(t, g)) {
		mean, squares, largest := 0.0, 0.0, 0.0
		for _, e := range t2.Float32s() {
			mean += float64(e) / 20000
			largest = max(largest, math.Abs(float64(e)))
		}
		for _, e := range t2.Float32s() {
			squares += (float64(e) - mean) * (float64(e) - mean) / 20000
		}
		_, std := inits[name].Moments([]int{100, 200})
		if n++; math.Abs(std-want[name]) > 1e-12 || math.Abs(math.Sqrt(squares)-std) > 0.03*std+1e-9 {
			t.Errorf("%v: deviation %v, promised %v, expected %v", inits[name], math.Sqrt(squares), std, want[name])
		}
		if bound := map[string]float64{"xavier": 2 * math.Sqrt(6.0/300), "uniform": 0.7, "fan_in": 1 / math.Sqrt(200), "default": 1 / math.Sqrt(200)}[name]; bound > 0 && (largest > bound*1.000001 || largest < 0.99*bound) {
			t.Errorf("%v: largest element %v, bound %v", inits[name], largest, bound)
		}
	}
	if n != 25*25*2+30*30+20*20+8 {
		t.Errorf("%d checks", n)
	}
}

// TestParameters checks names, roles and a second use of parameters.
func TestParameters(t *testing.T) {
	g := layer.New("x", rng.New(1), layer.Options{})
	x := g.Observation("x", 3)
	critic := g.In("critic")
	a := critic.MLP(x, []int{4, 2}, "tanh", layer.Orthogonal(1))
	b := critic.Again().MLP(g.Neg(x), []int{4, 2}, "tanh", layer.Orthogonal(1))
	g.Output("a", a)
	g.Output("b", b)
	net, _, err := g.Network(models.Options{Freeze: []string{"critic.fc0.*"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range net.Specs {
		got = append(got, s.Name+" "+s.Role.String())
	}
	if want := []string{"critic.fc0.weight frozen", "critic.fc0.bias frozen", "critic.fc1.weight trainable", "critic.fc1.bias trainable"}; !slices.Equal(got, want) {
		t.Errorf("parameters %q, want %q", got, want)
	}
	if want := []string{"x"}; !slices.Equal(net.Inputs, want) {
		t.Errorf("inputs %q, want %q", net.Inputs, want)
	}
	if _, _, err := g.Network(models.Options{Train: []string{"actor.*"}}); err == nil || !strings.Contains(err.Error(), `"actor.*"`) || !strings.Contains(err.Error(), "critic.fc0.bias") {
		t.Errorf("a pattern without a match: %v", err)
	}
	// A file of the network has the same parameters and no others: constants are known by their
	// names.
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := models.FromModel(m, models.Options{})
	if err != nil || len(again.Specs) != len(net.Specs) {
		t.Errorf("%d parameters in the file, %v", len(again.Specs), err)
	}
}

func TestErrors(t *testing.T) {
	n := 0
	for _, c := range []struct {
		build func(g *layer.Graph)
		want  []string
	}{
		{func(g *layer.Graph) { g.In("a").Param("w", layer.Zeros(), 2); g.In("a").Param("w", layer.Zeros(), 2) }, []string{"a.w", "twice"}},
		{func(g *layer.Graph) { g.In("a").Again().Param("w", layer.Zeros(), 2) }, []string{"build a", "not made before"}},
		{func(g *layer.Graph) { g.Param("w", layer.Zeros(), 2); g.Again().Param("w", layer.Zeros(), 3) }, []string{"shape [2]", "shape [3]"}},
		{func(g *layer.Graph) { g.Param("w", layer.Zeros()) }, []string{"shape []"}},
		{func(g *layer.Graph) { g.In("a").In("b").GLU(g.Observation("x", 3)) }, []string{"build a.b", "float32[batch,3]"}},
		{func(g *layer.Graph) {
			g.In("a").Conv1D("c", g.Observation("x", 4, 3), 2, 5, 1, layer.Valid, layer.Zeros())
		}, []string{"build a.c", "over 5 steps", "4 steps"}},
		{func(g *layer.Graph) { g.In("a").SelfAttention("s", g.Observation("x", 4, 6), 4, "", layer.Zeros()) }, []string{"4 heads", "width of 6"}},
		{func(g *layer.Graph) {
			g.In("a").ProbSparseAttention("s", g.Observation("x", 4, 6), 2, 5, layer.Zeros())
		}, []string{"build a.s", "5 queries of 4 steps"}},
		{func(g *layer.Graph) { g.PoolWindows(g.Observation("x", 4, 3), 5, layer.Last) }, []string{"5 steps", "4 steps"}},
		{func(g *layer.Graph) { g.PoolTime(g.Observation("x", 4, 3), "sum") }, []string{`"sum"`, "mean"}},
		{func(g *layer.Graph) { g.In("a").Activate("rleu", g.Observation("x", 3)) }, []string{`"rleu"`, "relu"}},
		{func(g *layer.Graph) { g.Add(g.Observation("x", 3), g.Observation("y", 4)) }, []string{"Add"}},
		{func(g *layer.Graph) {
			g.Linear("fc", g.Input("x", tensor.Float32, onnx.Symbol("batch"), onnx.Symbol("width")), 2, layer.Zeros())
		}, []string{"axis -1", "known extent"}},
	} {
		g := layer.New("x", rng.New(1), layer.Options{})
		c.build(g)
		_, modelErr := g.Model()
		_, _, netErr := g.Network(models.Options{})
		for _, err := range []error{g.Err(), modelErr, netErr} {
			for _, w := range c.want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("%v does not mention %q", err, w)
				}
				n++
			}
		}
	}
	if n != 3*25 {
		t.Errorf("%d mentions", n)
	}
}
