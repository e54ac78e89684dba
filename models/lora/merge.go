package lora

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Adapters returns the adapters recorded in a model; none when it has no adapters.
func Adapters(m *onnx.Model) ([]Adapter, error) {
	text, ok := m.Meta(MetaKey)
	if !ok {
		return nil, nil
	}
	var ads []Adapter
	if err := json.Unmarshal([]byte(text), &ads); err != nil {
		return nil, fmt.Errorf("read lora metadata: %w", err)
	}
	return ads, nil
}

// Merge folds every adapter of m into its weight and returns a model of the original structure.
// Adapted weights are new; everything else is shared with m. A model without adapters is returned
// as it is.
func Merge(m *onnx.Model) (*onnx.Model, error) {
	ads, err := Adapters(m)
	if err != nil || ads == nil {
		return m, err
	}
	out := m.ShallowClone()
	g := out.Graph
	drop, added := map[string]bool{}, map[string]*onnx.TensorProto{}
	for _, ad := range ads {
		w, a, b := g.FindInitializer(ad.Weight), g.FindInitializer(ad.A), g.FindInitializer(ad.B)
		if w == nil || a == nil || b == nil {
			return nil, fmt.Errorf("merge lora: weight %q or its adapter is not an initializer of the model", ad.Weight)
		}
		merged, err := merge(ad, w, a, b)
		if err != nil {
			return nil, fmt.Errorf("merge lora into %q: %w", ad.Weight, err)
		}
		name := cmp.Or(ad.Merged, ad.Weight)
		if added[name] != nil || name != ad.Weight && g.FindInitializer(name) != nil {
			return nil, fmt.Errorf("merge lora into %q: the model has another %q", ad.Weight, name)
		}
		added[name] = onnx.ProtoOf(name, merged)
		drop[ad.A], drop[ad.B] = true, true
		for _, y := range ad.Outputs {
			if ad.Kind == kindWeight {
				err = replace(g, y, name)
			} else {
				err = restore(g, y, ad.Weight, name)
			}
			if err != nil {
				return nil, fmt.Errorf("merge lora into %q: %w", ad.Weight, err)
			}
		}
	}
	// Other adapters of a weight need what it was.
	for i, t := range g.Initializer {
		if p := added[t.Name]; p != nil {
			g.Initializer[i] = p
			delete(added, t.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		g.Initializer = append(g.Initializer, added[name])
	}
	for _, ad := range ads {
		drop[ad.Weight] = drop[ad.Weight] || ad.Merged != "" && ad.Merged != ad.Weight
	}
	used := map[string]bool{}
	g.Reads(used)
	g.Initializer = slices.DeleteFunc(g.Initializer, func(t *onnx.TensorProto) bool {
		return !used[t.Name] && (drop[t.Name] || strings.HasPrefix(t.Name, constPrefix))
	})
	out.MetadataProps = slices.DeleteFunc(out.MetadataProps, func(p *onnx.MetadataProp) bool { return p.Key == MetaKey })
	return out, nil
}

// replace removes the nodes that make the adapted weight y, and makes those that read it read the
// weight by a name.
func replace(g *onnx.Graph, y, name string) error {
	x := onnx.NewIndex(g)
	add := x.Producer(onnx.Value(y))
	if add == nil || add.OpType != "Add" || len(add.Input) != 2 {
		return fmt.Errorf("the node that made %q of it is gone", y)
	}
	gone := map[*onnx.Node]bool{add: true}
	dropUnused(x, add.In(1), gone)
	for _, n := range x.Consumers(onnx.Value(y)) {
		for i, v := range n.Input {
			if v == y {
				n.Input[i] = name
			}
		}
	}
	g.Node = slices.DeleteFunc(g.Node, func(n *onnx.Node) bool { return gone[n] })
	return nil
}

// restore removes the adapter's nodes that lead to y, gives y back to the node it came from, and
// makes that node read the weight by another name.
func restore(g *onnx.Graph, y, weight, name string) error {
	x := onnx.NewIndex(g)
	add := x.Producer(onnx.Value(y))
	if add == nil || add.OpType != "Add" || len(add.Input) != 2 {
		return fmt.Errorf("the node that added the adapter to %q is gone", y)
	}
	n := x.Producer(add.In(0))
	if n == nil {
		return fmt.Errorf("the node that computed %q is gone", y)
	}
	gone := map[*onnx.Node]bool{add: true}
	dropUnused(x, add.In(1), gone)
	g.Node = slices.DeleteFunc(g.Node, func(n *onnx.Node) bool { return gone[n] })
	n.Output[0] = y
	if weight == name {
		return nil
	}
	for i := range n.Input {
		at, k := n, i
		for p := x.Producer(at.In(k)); p != nil && passes(p); p = x.Producer(at.In(k)) {
			at, k = p, 0
		}
		if at.Input[k] == weight {
			at.Input[k] = name
			return nil
		}
		// The node that hands the weight on received the name along with another node.
		if at.Input[k] == name {
			return nil
		}
	}
	return fmt.Errorf("%s does not read it", n.Describe())
}

// dropUnused adds the node that makes v to those that are gone, unless others need it, and then
// what only that node needed.
func dropUnused(x *onnx.Index, v onnx.Value, gone map[*onnx.Node]bool) {
	p := x.Producer(v)
	if p == nil || x.Output(v) != nil || slices.ContainsFunc(x.Consumers(v), func(n *onnx.Node) bool { return !gone[n] }) {
		return
	}
	gone[p] = true
	for _, in := range p.Input {
		dropUnused(x, onnx.Value(in), gone)
	}
}

// merge computes W + scale·(A·B) in the layout of the weight. Gemm's own α multiplies weight and
// adapter alike and so does not appear.
func merge(ad Adapter, wp, ap, bp *onnx.TensorProto) (*tensor.Tensor, error) {
	w, err := onnx.TensorOf(wp)
	if err != nil {
		return nil, err
	}
	a, err := onnx.TensorOf(ap)
	if err != nil {
		return nil, err
	}
	b, err := onnx.TensorOf(bp)
	if err != nil {
		return nil, err
	}
	out := w.Clone()
	mat := func(t []float32, r, c int) blas32.General {
		return blas32.General{Rows: r, Cols: c, Stride: c, Data: t}
	}
	s := out.Shape()
	x, fa, fb := out.Float32s(), a.Float32s(), b.Float32s()
	k, scale := ad.Rank, float32(ad.Scale)
	switch ad.Kind {
	case "right":
		blas32.Gemm(blas.NoTrans, blas.NoTrans, scale, mat(fa, s[0], k), mat(fb, k, s[1]), 1, mat(x, s[0], s[1]))
	case "right_t":
		blas32.Gemm(blas.Trans, blas.Trans, scale, mat(fb, k, s[0]), mat(fa, s[1], k), 1, mat(x, s[0], s[1]))
	case "left", "gemm_t":
		blas32.Gemm(blas.NoTrans, blas.NoTrans, scale, mat(fb, s[0], k), mat(fa, k, s[1]), 1, mat(x, s[0], s[1]))
	case "conv", kindWeight:
		// Per group: W[out/g, in/g·taps] += scale · B[out/g, k] · A[k, in/g·taps].
		rows, cols := s[0]/ad.Group, len(x)/s[0]
		for g := range ad.Group {
			blas32.Gemm(blas.NoTrans, blas.NoTrans, scale, mat(fb[g*rows*k:(g+1)*rows*k], rows, k), mat(fa[g*k*cols:(g+1)*k*cols], k, cols), 1,
				mat(x[g*rows*cols:(g+1)*rows*cols], rows, cols))
		}
	default:
		return nil, fmt.Errorf("adapter kind %q is not known", ad.Kind)
	}
	return out, nil
}
