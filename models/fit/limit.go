package fit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models/dataset"
	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// limit bounds the elements of the fields that reach an operator as indices. Engines count a
// negative index from the end, so that a class label or token id of −1 would silently be the last
// one.
func (t *Trainer) limit(fields []dataset.Field) error {
	l := &limiter{eng: t.eng, fields: fields, parameter: map[onnx.Value]bool{}}
	for _, term := range t.cfg.Loss {
		i := l.field(onnx.Value(loss.TargetInput(term.Output)))
		classes, ok := term.Classes(t.g.outputType(term.Output))
		if !ok || i < 0 {
			continue
		}
		limit := &dataset.Limit{Max: int64(classes) - 1, Of: fmt.Sprintf("a class of output %q", term.Output)}
		if term.IgnoreIndex != nil {
			also := int64(*term.IgnoreIndex)
			limit.Also = &also
		}
		for k := range width(fields[i]) {
			l.set(i, k, limit)
		}
	}
	for _, s := range t.g.eval.Specs {
		l.parameter[onnx.Value(s.Name)] = true
	}
	var err error
	if l.model, err = onnx.BindDims(t.g.eval.Model, map[string]int{batchSymbol: 1}); err != nil {
		return err
	}
	l.x = onnx.NewIndex(l.model.Graph)
	if l.env, err = shape.Infer(l.model, nil); err == nil {
		err = l.follow()
	}
	if err != nil {
		// One row at a time is not what every graph can do; engines still refuse what is beyond the
		// end.
		t.hooks.Log.Warn("whether indices in the data are negative cannot be checked", "reason", err)
	}
	return nil
}

// outputType returns the type of an output of the model.
func (g *graphs) outputType(name string) onnx.TensorType {
	for _, v := range g.served.Model.Graph.Output {
		if v.Name == name {
			t, _ := v.TensorType()
			return t
		}
	}
	return onnx.TensorType{}
}

// limiter finds which elements of the data are indices.
type limiter struct {
	eng       engine.Compiler
	model     *onnx.Model
	env       *shape.Env
	x         *onnx.Index
	fields    []dataset.Field
	parameter map[onnx.Value]bool
}

// follow limits what every node of the model takes as indices.
func (l *limiter) follow() error {
	return l.model.EachGraph(func(g *onnx.Graph) error {
		for _, n := range g.Node {
			for _, u := range l.indexed(n) {
				if err := l.apply(u); err != nil {
					return fmt.Errorf("indices of %s: %w", n.Describe(), err)
				}
			}
		}
		return nil
	})
}

// indexing is one use of a value as indices. extents are those of the axes that its last axis
// indexes one after the other, or the one extent for all elements.
type indexing struct {
	indices onnx.Value
	extents []int
	// strict says that an index must not be negative, whatever comes from where.
	strict bool
	also   *int64
	of     string
}

// indexed lists the inputs of a node that are indices.
func (l *limiter) indexed(n *onnx.Node) []indexing {
	if d := onnx.NormalizeDomain(n.Domain); d != onnx.DomainStandard {
		if d == "com.microsoft" && n.OpType == "EmbedLayerNormalization" {
			return slices.Concat(l.along(n, 0, 2, 0), l.along(n, 1, 4, 0))
		}
		return nil
	}
	switch n.OpType {
	case "Gather", "GatherElements", "ScatterElements", "Scatter":
		return l.along(n, 1, 0, n.Int("axis", 0))
	case "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss":
		list := l.along(n, 1, 0, 1)
		for i := range list {
			list[i].strict, list[i].of = true, "a class of "+string(n.In(0))
			if n.Has("ignore_index") {
				also := int64(n.Int("ignore_index", 0))
				list[i].also = &also
			}
		}
		return list
	case "OneHot":
		depth, _ := l.env.Fact(n.In(1))
		if depth.Const != nil && depth.Const.Len() == 1 && depth.Const.DType() == tensor.Int64 {
			return []indexing{{indices: n.In(0), extents: []int{int(depth.Const.Int64s()[0])}, strict: true, of: "a class of " + n.Describe()}}
		}
	case "GatherND", "ScatterND":
		t, it := l.env.Type(n.In(0)), l.env.Type(n.In(1))
		if shape, ok := t.Static(); ok && it.Ranked && len(it.Dims) > 0 && it.Dims[len(it.Dims)-1].IsKnown() {
			skip := n.Int("batch_dims", 0)
			if k := it.Dims[len(it.Dims)-1].Value; skip+k <= len(shape) {
				return []indexing{{indices: n.In(1), extents: shape[skip : skip+k], strict: l.isParameter(n.In(0)), of: "an index of " + string(n.In(0))}}
			}
		}
	}
	return nil
}

// along is the use of input index as indices along an axis of input data.
func (l *limiter) along(n *onnx.Node, index, data, axis int) []indexing {
	t := l.env.Type(n.In(data))
	if axis < 0 {
		axis += len(t.Dims)
	}
	if !t.Ranked || axis < 0 || axis >= len(t.Dims) || !t.Dims[axis].IsKnown() {
		return nil
	}
	u := indexing{indices: n.In(index), extents: []int{t.Dims[axis].Value}, of: fmt.Sprintf("an index of %q", n.In(data))}
	if u.strict = l.isParameter(n.In(data)); u.strict {
		u.of = fmt.Sprintf("a row of the table %q", n.In(data))
	}
	return []indexing{u}
}

func (l *limiter) isParameter(v onnx.Value) bool { return l.parameter[v] || l.x.IsInitializer(v) }

// moving are the operators whose first input's elements arrive unchanged, in whatever order. Casts
// count the same: a fraction becomes a whole number where it is checked.
var moving = map[string]bool{
	"Identity": true, "Cast": true, "Reshape": true, "Flatten": true, "Squeeze": true, "Unsqueeze": true, "Transpose": true, "Slice": true, "Split": true, "Expand": true, "Tile": true,
	"Gather": true, "GatherElements": true, "GatherND": true,
}

// numbers are the types that hold the numbers of elements.
var numbers = map[tensor.DType]bool{tensor.Float32: true, tensor.Float64: true, tensor.Int64: true, tensor.Int32: true}

// firstNumber is the number of the first element of the data; smaller ones that arrive somewhere
// are constants of the graph. Float32 holds all numbers up to twice as many.
const firstNumber = 1 << 23

func (l *limiter) field(v onnx.Value) int {
	return slices.IndexFunc(l.fields, func(f dataset.Field) bool { return f.Name == string(v) })
}

func (l *limiter) constant(v onnx.Value) bool {
	f, _ := l.env.Fact(v)
	return f.Const != nil || l.x.IsInitializer(v)
}

// width is the number of elements of a row.
func width(f dataset.Field) int {
	n := 1
	for _, d := range f.Shape {
		n *= d
	}
	return n
}

// sources lists the data inputs that a value's elements come from unchanged; ok is false when
// something is computed on the way.
func (l *limiter) sources(v onnx.Value, seen map[onnx.Value]bool) (list []onnx.Value, ok bool) {
	if seen[v] {
		return nil, true
	}
	seen[v] = true
	if i := l.field(v); i >= 0 {
		return []onnx.Value{v}, numbers[l.fields[i].DType]
	}
	if l.constant(v) {
		return nil, true
	}
	n := l.x.Producer(v)
	if n == nil || onnx.NormalizeDomain(n.Domain) != onnx.DomainStandard {
		return nil, false
	}
	from := n.Input[:min(1, len(n.Input))]
	switch {
	case n.OpType == "Concat":
		from = n.Input
	case !moving[n.OpType], n.OpType == "Cast" && !numbers[tensor.DType(n.Int("to", 0))]:
		return nil, false
	}
	for _, in := range n.Input[len(from):] {
		// Where elements go is a constant, or this is data picked by data.
		if in != "" && !l.constant(onnx.Value(in)) {
			return nil, false
		}
	}
	for _, in := range from {
		s, ok := l.sources(onnx.Value(in), seen)
		if !ok {
			return nil, false
		}
		list = append(list, s...)
	}
	return list, true
}

// apply limits the elements that arrive at a use. Which they are is seen by sending their numbers
// through the nodes on the way, those of all fields counted on.
func (l *limiter) apply(u indexing) error {
	from, ok := l.sources(u.indices, map[onnx.Value]bool{})
	if !ok || len(from) == 0 {
		return nil
	}
	first := make([]int, len(l.fields))
	end := firstNumber
	for i, f := range l.fields {
		first[i] = end
		end += width(f)
	}
	if end > 2*firstNumber {
		return nil
	}
	in := make([]*tensor.Tensor, len(from))
	for k, v := range from {
		i := l.field(v)
		in[k] = numbered(l.fields[i], first[i])
	}
	arrived, err := l.run(from, in, u.indices)
	if err != nil {
		return err
	}
	for at, number := range arrived {
		if number < firstNumber || number >= end {
			continue
		}
		i := len(first) - 1
		for first[i] > number {
			i--
		}
		limit := &dataset.Limit{Min: -int64(u.extents[at%len(u.extents)]), Max: int64(u.extents[at%len(u.extents)]) - 1, Also: u.also, Of: u.of}
		if u.strict || strings.HasPrefix(l.fields[i].Name, loss.TargetInput("")) {
			limit.Min = 0
		}
		l.set(i, number-first[i], limit)
	}
	return nil
}

// numbered returns a row of a field whose elements are first, first+1 and so on.
func numbered(f dataset.Field, first int) *tensor.Tensor {
	t := tensor.New(f.DType, append([]int{1}, f.Shape...)...)
	for i := range t.Len() {
		switch f.DType {
		case tensor.Float32:
			t.Float32s()[i] = float32(first + i)
		case tensor.Float64:
			t.Float64s()[i] = float64(first + i)
		case tensor.Int64:
			t.Int64s()[i] = int64(first + i)
		case tensor.Int32:
			t.Int32s()[i] = int32(first + i)
		}
	}
	return t
}

// run computes one value from inputs and returns it as whole numbers.
func (l *limiter) run(from []onnx.Value, in []*tensor.Tensor, v onnx.Value) ([]int, error) {
	types := func(v onnx.Value) (onnx.TensorType, bool) { return l.env.Type(v), true }
	var out *tensor.Tensor
	if i := slices.Index(from, v); i >= 0 {
		out = in[i]
	} else {
		m, err := onnx.Extract(l.model, from, []onnx.Value{v}, types)
		if err != nil {
			return nil, err
		}
		s, err := l.eng.Compile(m, engine.Options{})
		if err != nil {
			return nil, err
		}
		defer s.Close()
		list := make([]*tensor.Tensor, 1)
		if err := s.Run(context.Background(), list, in); err != nil {
			return nil, err
		}
		out = list[0]
	}
	arrived := make([]int, out.Len())
	switch out.DType() {
	case tensor.Int64:
		for i, x := range out.Int64s() {
			arrived[i] = int(x)
		}
	case tensor.Int32:
		for i, x := range out.Int32s() {
			arrived[i] = int(x)
		}
	}
	return arrived, nil
}

// set limits one element of a field; of several limits the narrowest in each direction counts, and
// its words are the later one's.
func (l *limiter) set(field, element int, limit *dataset.Limit) {
	f := &l.fields[field]
	if f.Limits == nil {
		f.Limits = make([]*dataset.Limit, width(*f))
	}
	if old := f.Limits[element]; old != nil {
		both := *old
		if limit.Min > both.Min || limit.Max < both.Max {
			both.Of = limit.Of
		}
		both.Min, both.Max = max(both.Min, limit.Min), min(both.Max, limit.Max)
		if limit.Also == nil || both.Also == nil || *limit.Also != *both.Also {
			both.Also = nil
		}
		limit = &both
	}
	f.Limits[element] = limit
}
