package lora

import (
	"encoding/json"
	"fmt"
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
	drop := map[string]bool{}
	for _, ad := range ads {
		w, a, b := g.FindInitializer(ad.Weight), g.FindInitializer(ad.A), g.FindInitializer(ad.B)
		if w == nil || a == nil || b == nil {
			return nil, fmt.Errorf("merge lora: weight %q or its adapter is not an initializer of the model", ad.Weight)
		}
		merged, err := merge(ad, w, a, b)
		if err != nil {
			return nil, fmt.Errorf("merge lora into %q: %w", ad.Weight, err)
		}
		i := slices.Index(g.Initializer, w)
		g.Initializer[i] = onnx.ProtoOf(ad.Weight, merged)
		drop[ad.A], drop[ad.B] = true, true
		for _, y := range ad.Outputs {
			if err := restore(g, y); err != nil {
				return nil, fmt.Errorf("merge lora into %q: %w", ad.Weight, err)
			}
		}
	}
	used := map[string]bool{}
	g.Reads(used)
	g.Initializer = slices.DeleteFunc(g.Initializer, func(t *onnx.TensorProto) bool {
		return drop[t.Name] || strings.HasPrefix(t.Name, "const/") && !used[t.Name]
	})
	out.MetadataProps = slices.DeleteFunc(out.MetadataProps, func(p *onnx.MetadataProp) bool { return p.Key == MetaKey })
	return out, nil
}

// restore removes the adapter nodes that lead to y and gives y back to the node it came from.
func restore(g *onnx.Graph, y string) error {
	prefix := "lora/" + y + "/"
	found := false
	g.Node = slices.DeleteFunc(g.Node, func(n *onnx.Node) bool { return strings.HasPrefix(n.Name, prefix) })
	for _, n := range g.Node {
		for i, o := range n.Output {
			if strings.HasPrefix(o, prefix+"base") {
				n.Output[i], found = y, true
			}
		}
	}
	if !found {
		return fmt.Errorf("the node that computed %q is gone", y)
	}
	return nil
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
	case "conv":
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
