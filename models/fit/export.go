package fit

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/dataset"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Baked returns the trained model: the file's own graph — opset, functions, names, element types
// and metadata as they were — with the present parameters as initializers and adapters merged into
// their weights. Layers that were exported in training form are in evaluation form, parameters that
// were merged are apart, and a batch that was a number is a symbol. Contents of float32 share the
// trainer's memory; those of other types are rounded, and a weight that its type cannot hold is an
// error.
func (t *Trainer) Baked() (*onnx.Model, error) { return t.bake(t.g.origin) }

// BakedFloat32 returns the trained model in float32, which is what Baked returns but for models of
// another floating-point type: the function that was trained, without the rounding of weights.
func (t *Trainer) BakedFloat32() (*onnx.Model, error) {
	m, _, err := models.InFloat32(t.g.origin)
	if err != nil {
		return nil, err
	}
	return t.bake(m)
}

// Precision returns the floating-point type of the model as it came and is written.
func (t *Trainer) Precision() tensor.DType { return t.g.precision }

// bake puts the present parameters into m, the model as it came or its float32 form.
func (t *Trainer) bake(m *onnx.Model) (*onnx.Model, error) {
	flat, err := t.g.served.Bake(t.params.View)
	if err != nil {
		return nil, err
	}
	if flat, err = lora.Merge(flat); err != nil {
		return nil, err
	}
	trained := map[string]*onnx.TensorProto{}
	for _, p := range flat.Graph.Initializer {
		trained[p.Name] = p
	}
	values := map[string]*tensor.Tensor{}
	for _, s := range t.g.served.Specs {
		p := trained[s.Name]
		if p == nil {
			continue // An adapter's, merged.
		}
		if values[s.Name], err = onnx.TensorOf(p); err != nil {
			return nil, err
		}
		delete(trained, s.Name)
	}
	t.g.ties.Fill(values)
	m, err = models.Reweigh(m, func(name string) *tensor.Tensor {
		v := values[name]
		delete(values, name)
		return v
	})
	if err != nil {
		return nil, err
	}
	for name := range values {
		return nil, fmt.Errorf("bake: parameter %q is not an initializer of the model as it came", name)
	}
	if len(t.g.fixed) > 0 {
		release(m.Graph, t.g.served)
	}
	return m, nil
}

// release gives a graph that was exported with a fixed batch the extents of the network that was
// trained. Declared types of inner values no longer hold.
func release(g *onnx.Graph, net *models.Network) {
	types := map[string]*onnx.ValueInfo{}
	for _, v := range slices.Concat(net.Model.Graph.Input, net.Model.Graph.Output) {
		types[v.Name] = v
	}
	for _, v := range slices.Concat(g.Inputs(), g.Output) {
		own, _ := v.TensorType()
		t, _ := types[v.Name].TensorType()
		t.DType = own.DType
		v.Type = onnx.NewValueInfo("", t).Type
	}
	g.ValueInfo = nil
}

// Samples reads the first rows of the training table, at most n, as one tensor per input of the
// network: the rows of the parity check.
func (t *Trainer) Samples(n int) ([]*tensor.Tensor, error) {
	l, err := dataset.NewLoader(t.rows, dataset.LoaderOptions{Window: t.cfg.Data.Window})
	if err != nil {
		return nil, err
	}
	n = min(n, l.Rows())
	all := make([]*tensor.Tensor, len(l.Fields()))
	byName := map[string]*tensor.Tensor{}
	for i, f := range t.training.of(t.train.Rows()).fields {
		shape := slices.Clone(f.Shape())
		shape[0] = n
		all[i] = tensor.New(f.DType(), shape...)
		byName[l.Fields()[i]] = all[i]
	}
	if _, err := l.Next(n, all); err != nil {
		return nil, err
	}
	in := make([]*tensor.Tensor, len(t.g.served.Inputs))
	for i, name := range t.g.served.Inputs {
		in[i] = byName[name]
	}
	return in, nil
}
