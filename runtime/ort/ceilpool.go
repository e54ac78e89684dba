//go:build cgo

package ort

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// exactPool is how a pool with ceil_mode is written so that ONNX Runtime infers what it computes.
type exactPool struct {
	ceil int
	pads []int
	crop []int // elements at the ends of spatial axes that no window reaches, nil for none
}

// exactPools writes pools with ceil_mode in another way where a last window would begin behind the
// data. ONNX Runtime 1.32 leaves such a window out, as the specification asks for, but infers an
// extent with it below opset 22. It then refuses its own output, and folds a Shape of it to the wrong
// number. env has the types of from, of which m is what will be encoded; m is copied when something
// has to change.
func exactPools(m, from *onnx.Model, env *shape.Env) *onnx.Model {
	if env == nil || m.Opset(onnx.DomainStandard) >= 22 {
		return m
	}
	found := map[string]*exactPool{}
	findPools(from.Graph, env, found)
	if len(found) == 0 {
		return m
	}
	pool := func(n *onnx.Node) *exactPool {
		if !pooling[n.OpType] || onnx.NormalizeDomain(n.Domain) != onnx.DomainStandard {
			return nil
		}
		return found[string(n.Out(0))]
	}
	return insertBefore(m, "onnxrl/cropped/", func(n *onnx.Node) bool { return pool(n) != nil }, func(n *onnx.Node, prefix string) []*onnx.Node {
		p := pool(n)
		n.Attribute = slices.Clone(n.Attribute)
		n.SetAttr(onnx.AttrInt("ceil_mode", p.ceil))
		n.SetAttr(onnx.AttrInts("pads", p.pads...))
		if p.crop == nil {
			return nil
		}
		var ends, axes []int64
		for i, c := range p.crop {
			if c > 0 {
				ends, axes = append(ends, int64(-c)), append(axes, int64(2+i))
			}
		}
		var nodes []*onnx.Node
		in := []string{n.Input[0]}
		for i, list := range [][]int64{make([]int64, len(ends)), ends, axes} {
			name := prefix + []string{"starts", "ends", "axes"}[i]
			value := onnx.AttrTensor("value", tensor.Of(list, len(list)))
			nodes = append(nodes, &onnx.Node{OpType: "Constant", Name: name, Output: []string{name}, Attribute: []*onnx.Attribute{value}})
			in = append(in, name)
		}
		n.Input[0] = prefix + "input"
		return append(nodes, &onnx.Node{OpType: "Slice", Name: n.Input[0], Input: in, Output: []string{n.Input[0]}})
	})
}

// pooling are the operators that have ceil_mode.
var pooling = map[string]bool{"MaxPool": true, "AveragePool": true, "LpPool": true}

// findPools collects the pools of a graph, and of those below it, by the names of their outputs.
func findPools(g *onnx.Graph, env *shape.Env, found map[string]*exactPool) {
	for _, n := range g.Node {
		if pooling[n.OpType] && onnx.NormalizeDomain(n.Domain) == onnx.DomainStandard && n.Int("ceil_mode", 0) != 0 {
			if p := exactly(n, env.Type(n.In(0))); p != nil {
				found[string(n.Out(0))] = p
			}
		}
		for _, s := range n.Subgraphs() {
			if body := env.Body(s); body != nil {
				findPools(s, body, found)
			}
		}
	}
}

// exactly returns how a pool of x is written, nil where ONNX Runtime infers its extents.
func exactly(n *onnx.Node, x onnx.TensorType) *exactPool {
	kernel := n.Ints("kernel_shape")
	if pad := n.Str("auto_pad", "NOTSET"); pad != "NOTSET" || !x.Ranked || len(x.Dims) != len(kernel)+2 {
		return nil
	}
	k := len(kernel)
	list := func(name string, n, otherwise int, have []int) []int {
		if len(have) == n {
			return slices.Clone(have)
		}
		return slices.Repeat([]int{otherwise}, n)
	}
	strides, dilations := list("strides", k, 1, n.Ints("strides")), list("dilations", k, 1, n.Ints("dilations"))
	p := &exactPool{pads: list("pads", 2*k, 0, n.Ints("pads"))}
	crop := make([]int, k)
	behind, partial, unknown := false, false, false
	filled := slices.Clone(p.pads) // so that all windows are whole
	for i, d := range x.Dims[2:] {
		if !d.IsKnown() {
			unknown = true // and ONNX Runtime infers nothing here
			continue
		}
		span := d.Value + p.pads[i] + p.pads[k+i] - (kernel[i]-1)*dilations[i] - 1
		rest := span % strides[i]
		switch {
		case span < 0 || rest == 0:
		case (span/strides[i]+1)*strides[i] >= d.Value+p.pads[i]:
			behind, crop[i] = true, rest
		default:
			partial = true
			filled[k+i] += strides[i] - rest
		}
	}
	switch {
	case !behind:
		return nil
	case !unknown && (!partial || n.OpType != "AveragePool" || n.Int("count_include_pad", 0) == 0):
		// Padding counts for nothing, and no window lies behind it.
		p.pads = filled
		return p
	}
	p.ceil = 1
	for i := range crop {
		less := min(crop[i], p.pads[k+i])
		p.pads[k+i], crop[i] = p.pads[k+i]-less, crop[i]-less
	}
	if slices.Max(crop) > 0 {
		if n.Out(1) != "" {
			return nil // positions would be those of cropped data
		}
		p.crop = crop
	}
	return p
}
