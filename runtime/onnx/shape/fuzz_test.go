package shape

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// hostile numbers are those that arithmetic on extents most easily gets wrong.
var hostile = []int64{0, 1, 2, 3, 4, 5, 8, -1, -2, -3, -9, 63, 64, 65, 4096, 4097, 1 << 20, 1 << 31, 1 << 40, 1<<40 + 1, 1 << 48, 1 << 62, math.MaxInt64, math.MinInt64, math.MinInt64 + 1}

// attributeNames are all names that rules read, plus one that none does.
var attributeNames = []string{"axis", "axes", "perm", "shape", "to", "dtype", "output_dtype", "keepdims", "noop_with_empty_axes", "allowzero", "start", "end", "starts",
	"ends", "split", "num_outputs", "kernel_shape", "strides", "pads", "dilations", "group", "auto_pad", "ceil_mode", "output_padding", "output_shape", "blocksize", "batch_dims",
	"equation", "direction", "hidden_size", "layout", "size", "scales", "num_groups", "reduction", "batch_axis", "time_axis", "inverse", "onesided", "value", "value_int",
	"value_ints", "value_float", "value_floats", "value_string", "sparse_value", "body", "then_branch", "else_branch", "num_scan_inputs", "scan_input_axes", "scan_output_axes",
	"sample_size", "transA", "transB", "q_num_heads", "kv_num_heads", "num_heads", "pooled_shape", "output_height", "k", "mode", "keep_aspect_ratio_policy",
	"coordinate_transformation_mode", "fmod", "exclusive", "reverse", "new_axis", "ngram_indexes", "pixel_format", "type", "stash_type", "step", "dim", "output_datatype",
	"training_mode", "spatial", "broadcast", "tiles", "unheard_of"}

var attributeTexts = []string{"", "forward", "bidirectional", "SAME_UPPER", "VALID", "none", "mean", "not_larger", "not_smaller", "tf_crop_and_resize", "RGB", "ij,jk->ik", "...i,i",
	"...->...", "i->jj", ",", "->", "ii", "b...q,...", "\xff"}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func numbers(r *rand.Rand) []int64 {
	v := make([]int64, r.IntN(6))
	for i := range v {
		v[i] = pick(r, hostile[:7+r.IntN(len(hostile)-6)])
	}
	return v
}

func randomTensor(r *rand.Rand) *onnx.TensorProto {
	p := &onnx.TensorProto{DataType: int32(r.IntN(30)), Dims: numbers(r)}
	switch r.IntN(4) {
	case 0:
		return onnx.ProtoOf("t", tensor.Of(numbers(r)[:0], 0))
	case 1:
		v := numbers(r)
		return onnx.ProtoOf("t", tensor.Of(v, len(v)))
	case 2:
		return onnx.ProtoOf("t", tensor.Of([]float32{1.5}, 1))
	}
	return p
}

func randomAttribute(r *rand.Rand, names []string, depth int) *onnx.Attribute {
	a := &onnx.Attribute{Name: pick(r, attributeNames)}
	switch r.IntN(9) {
	case 0, 1, 2:
		a.Type, a.I = onnx.AttributeProto_INT, pick(r, hostile)
	case 3, 4:
		a.Type, a.Ints = onnx.AttributeProto_INTS, numbers(r)
	case 5:
		a.Type, a.S = onnx.AttributeProto_STRING, []byte(pick(r, attributeTexts))
	case 6:
		a.Type, a.Floats = onnx.AttributeProto_FLOATS, []float32{1, 2, float32(math.NaN())}[:r.IntN(4)]
	case 7:
		a.Type, a.T = onnx.AttributeProto_TENSOR, randomTensor(r)
		if r.IntN(4) == 0 {
			a.SparseTensor = &onnx.SparseTensorProto{Dims: numbers(r)}
			a.Type = onnx.AttributeProto_SPARSE_TENSOR
		}
	case 8:
		a.Type = onnx.AttributeProto_GRAPH
		if depth < 3 {
			a.G = randomGraph(r, names, depth+1)
		}
	}
	if r.IntN(8) == 0 {
		a.Type = onnx.AttributeProto_AttributeType(r.IntN(15))
	}
	return a
}

func randomGraph(r *rand.Rand, names []string, depth int) *onnx.Graph {
	g := &onnx.Graph{}
	for i := range r.IntN(5) {
		g.Input = append(g.Input, onnx.NewValueInfo(onnx.Value(fmt.Sprint("b", depth, i)), randomFact(r).Type))
		names = append(slices.Clone(names), fmt.Sprint("b", depth, i))
	}
	if r.IntN(3) == 0 {
		t := randomTensor(r)
		t.Name = fmt.Sprint("init", depth)
		g.Initializer = append(g.Initializer, t)
		names = append(slices.Clone(names), t.Name)
	}
	for range r.IntN(3) {
		n := randomNode(r, pick(r, operatorNames()), names, depth)
		g.Node = append(g.Node, n)
		names = append(slices.Clone(names), n.Output...)
	}
	for range r.IntN(4) {
		g.Output = append(g.Output, &onnx.ValueInfo{Name: pick(r, names)})
	}
	return g
}

// operatorNames lists the table in a fixed order.
var operatorNames = sync.OnceValue(func() []opKey {
	return slices.SortedFunc(maps.Keys(operators), func(a, b opKey) int {
		return cmp.Or(cmp.Compare(a.domain, b.domain), cmp.Compare(a.op, b.op))
	})
})

func randomNode(r *rand.Rand, k opKey, names []string, depth int) *onnx.Node {
	n := &onnx.Node{OpType: k.op, Domain: k.domain}
	for range r.IntN(5) + r.IntN(2)*r.IntN(5) {
		if r.IntN(8) == 0 {
			n.Input = append(n.Input, "")
		} else {
			n.Input = append(n.Input, pick(r, names))
		}
	}
	for range r.IntN(5) {
		n.Output = append(n.Output, fmt.Sprint("v", r.IntN(20)))
	}
	for range r.IntN(4) {
		n.Attribute = append(n.Attribute, randomAttribute(r, names, depth))
	}
	return n
}

// randomFact leans towards float32 and int64, so that many calls pass the signature.
func randomFact(r *rand.Rand) Fact {
	var f Fact
	f.Type.DType = pick(r, []tensor.DType{tensor.Float32, tensor.Float32, tensor.Float32, tensor.Int64, tensor.Int64, tensor.Bool, tensor.Int32, tensor.Uint8, tensor.String, tensor.Undefined, 77})
	if r.IntN(10) == 0 {
		f.Kind = Kind(r.IntN(5))
	}
	if r.IntN(8) == 0 {
		return f
	}
	f.Type.Ranked = true
	for range r.IntN(5) {
		switch r.IntN(5) {
		case 0:
			f.Type.Dims = append(f.Type.Dims, onnx.Symbol(pick(r, []string{"", "n", "m"})))
		default:
			f.Type.Dims = append(f.Type.Dims, onnx.Known(int(pick(r, []int64{0, 1, 1, 2, 3, 4, 6, 1 << 20}))))
		}
	}
	if f.Type.DType == tensor.Int64 && f.Kind == Tensor && r.IntN(3) > 0 {
		n := r.IntN(5)
		f.Type = onnx.TypeOf(tensor.Int64, n)
		c := &content{dtype: tensor.Int64, shape: []int{n}, ints: make([]val, n)}
		known := r.IntN(2) == 0
		for i := range c.ints {
			c.ints[i] = num(pick(r, hostile))
			if !known && r.IntN(2) == 0 {
				c.ints[i] = val{sym: pick(r, []string{"", "n", "m"})}
			} else if !c.ints[i].known {
				known = false
			}
		}
		if !slices.ContainsFunc(c.ints, func(v val) bool { return !v.known }) {
			f.Const = intTensor(c)
		} else {
			f.vals = c.ints
		}
	}
	if f.Type.DType == tensor.Float32 && f.Kind == Tensor && r.IntN(4) == 0 {
		v := []float32{1, -1, 0.5, 2, float32(math.NaN()), float32(math.Inf(1)), 1e30}[:r.IntN(8)]
		f.Type = onnx.TypeOf(tensor.Float32, len(v))
		f.Const = tensor.Of(v, len(v))
	}
	return f
}

// consistent returns an error when a recorded fact contradicts itself.
func consistent(f Fact) error {
	if err := checkDims(f.Type.Dims); err != nil {
		return err
	}
	for _, d := range f.Type.Dims {
		if d.Value < -1 {
			return fmt.Errorf("extent %d", d.Value)
		}
	}
	if f.Const != nil {
		if shape, ok := f.Type.Static(); !ok || !slices.Equal(shape, f.Const.Shape()) || f.Const.DType() != f.Type.DType {
			return fmt.Errorf("content %v for type %v", f.Const, f.Type)
		}
	}
	if f.vals != nil {
		if n, ok := elements(f.Type); !ok || n != len(f.vals) || len(f.Ints) != 0 && len(f.Ints) != n {
			return fmt.Errorf("%d elements for type %v", len(f.vals), f.Type)
		}
	}
	return nil
}

func applyRandom(seed uint64, k opKey) (ok bool, err error) {
	r := rand.New(rand.NewPCG(seed, 1))
	m := model(pick(r, []int{1, 7, 8, 9, 10, 11, 13, 17, 18, 20, 23, 28}), &onnx.Graph{})
	e, err := NewEnv(m, nil)
	if err != nil {
		return false, err
	}
	var names []string
	for i := range 6 {
		name := fmt.Sprint("x", i)
		e.Set(onnx.Value(name), randomFact(r))
		names = append(names, name)
	}
	n := randomNode(r, k, names, 0)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("seed %d, operator %v: panic: %v\n%v", seed, k, p, n)
			panic(err)
		}
	}()
	if e.Apply(n) != nil {
		return false, nil
	}
	for name, f := range sorted.All(e.facts) {
		if name[0] != 'v' {
			continue
		}
		if err := consistent(*f); err != nil {
			return true, fmt.Errorf("seed %d, operator %v: %s: %w\n%v", seed, k, name, err, n)
		}
	}
	return true, nil
}

// TestRandomNodes gives every operator inputs and attributes of all kinds, most of them wrong.
func TestRandomNodes(t *testing.T) {
	perOperator := longtest.Cases(t, 400, 80)
	accepted := map[opKey]int{}
	seed := uint64(0)
	for _, k := range operatorNames() {
		for range perOperator {
			seed++
			ok, err := applyRandom(seed, k)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				accepted[k]++
			}
		}
	}
	t.Logf("%d nodes, %d operators accepted some", seed, len(accepted))
	if len(accepted) < len(operatorNames())*longtest.Cases(t, 6, 4)/10 {
		t.Errorf("only %d of %d operators accepted any random node: the generator does not reach the rules", len(accepted), len(operatorNames()))
	}
}

// mutate damages a model in one place.
func mutate(r *rand.Rand, m *onnx.Model) {
	n := pick(r, m.Graph.Node)
	switch r.IntN(8) {
	case 0:
		if len(n.Input) > 0 {
			n.Input[r.IntN(len(n.Input))] = ""
		}
	case 1:
		n.Input = n.Input[:r.IntN(len(n.Input)+1)]
	case 2:
		n.Input = append(n.Input, pick(r, m.Graph.Node).Output[0])
	case 3:
		n.OpType = pick(r, operatorNames()).op
	case 4:
		if len(n.Attribute) > 0 {
			a := n.Attribute[r.IntN(len(n.Attribute))]
			a.I, a.Ints = pick(r, hostile), numbers(r)
		} else {
			n.Attribute = append(n.Attribute, randomAttribute(r, []string{"x0"}, 2))
		}
	case 5:
		if len(m.Graph.Initializer) > 0 {
			p := pick(r, m.Graph.Initializer)
			if r.IntN(2) == 0 {
				p.Dims = numbers(r)
			} else {
				p.DataType = int32(r.IntN(30))
			}
		}
	case 6:
		m.OpsetImport[0].Version = int64(r.IntN(30))
	case 7:
		m.Graph.Input[0] = onnx.NewValueInfo(onnx.Value(m.Graph.Input[0].Name), randomFact(r).Type)
	}
}

func TestMutatedModels(t *testing.T) {
	const perModel = 200
	done := 0
	for name, m := range sorted.All(torchFixtures(t)) {
		for seed := range uint64(perModel) {
			r := rand.New(rand.NewPCG(seed, 2))
			c := m.Clone()
			for range 1 + r.IntN(3) {
				mutate(r, c)
			}
			// Only the absence of panics and of unbounded work is claimed; most mutants are errors.
			if e, err := Infer(c, nil); err == nil {
				for v, f := range sorted.All(e.facts) {
					if err := consistent(*f); err != nil {
						t.Fatalf("%s, seed %d, %s: %v", name, seed, v, err)
					}
				}
			}
			done++
		}
	}
	if want := perModel * torchModels; done < want {
		t.Errorf("%d mutants, want %d", done, want)
	}
}

// FuzzInfer infers whatever decodes.
func FuzzInfer(f *testing.F) {
	for _, m := range sorted.All(torchFixtures(f)) {
		if len(m.Graph.Node) > 50 {
			continue
		}
		c := m.ShallowClone()
		c.Graph.Initializer = nil
		b, err := proto.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &onnx.Model{}
		if proto.Unmarshal(b, m) != nil {
			return
		}
		e, err := Infer(m, nil)
		if err != nil {
			return
		}
		for name, f := range sorted.All(e.facts) {
			if err := consistent(*f); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}
