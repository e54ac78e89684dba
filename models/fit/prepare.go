package fit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"onnxrl/models"
	"onnxrl/models/dataset"
	"onnxrl/models/lora"
	"onnxrl/models/loss"
	"onnxrl/models/trainmode"
	"onnxrl/runtime/autodiff"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/onnx/shape"
	"onnxrl/runtime/tensor"
)

// batchSymbol is what the batch extent is called inside this package, whatever the model calls it.
const batchSymbol = "batch"

// graphs are the three forms of the model: as it is served, with losses in evaluation form, and with losses in training form.
type graphs struct {
	served, eval, train *models.Network
	values              map[string]*tensor.Tensor
	metrics             []string
	mode                trainmode.Result
	layers              []trainmode.Layer
	adapters            []lora.Adapter
}

// prepare rewrites the model according to the configuration.
func prepare(m *onnx.Model, cfg *Config) (*graphs, error) {
	m, err := onnx.InlineFunctions(m)
	if err != nil {
		return nil, err
	}
	if m.Opset("") < autodiff.MinOpset {
		if m, err = onnx.Upgrade(m, autodiff.MinOpset); err != nil {
			return nil, err
		}
	}
	if m, err = freeBatch(m, cfg.Bind); err != nil {
		return nil, err
	}
	g := &graphs{layers: trainmode.Find(m)}
	if cfg.LoRA != nil {
		if m, g.adapters, err = lora.Apply(m, *cfg.LoRA); err != nil {
			return nil, err
		}
	}
	if len(cfg.Loss) == 1 && cfg.Loss[0].Output == "" && len(m.Graph.Output) == 1 {
		cfg.Loss[0].Output = m.Graph.Output[0].Name
	}
	roles := models.Options{Train: cfg.Train, Freeze: cfg.Freeze}
	if cfg.LoRA != nil {
		roles.Train = append(slices.Clone(cfg.Train), lora.Pattern)
	}
	if g.served, g.values, err = models.FromModel(m, roles); err != nil {
		return nil, err
	}
	eval, metrics, err := loss.Attach(m, cfg.Loss)
	if err != nil {
		return nil, err
	}
	g.metrics = metrics
	if g.eval, _, err = models.FromModel(eval, roles); err != nil {
		return nil, err
	}
	g.train = g.eval
	if cfg.TrainMode {
		t, mode, err := trainmode.Apply(m)
		if err != nil {
			return nil, err
		}
		g.mode = mode
		if t, _, err = loss.Attach(t, cfg.Loss); err != nil {
			return nil, err
		}
		if g.train, _, err = models.FromModel(t, roles); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(g.served.Specs, func(s models.Spec) bool { return s.Role == models.Trainable }) {
		return nil, fmt.Errorf("no parameter is trainable: the train and freeze patterns leave none of %d", len(g.served.Specs))
	}
	return g, nil
}

// freeBatch makes the first extent of every input and output the symbol "batch" and checks that the graph's types still fit. Other symbols are bound.
func freeBatch(m *onnx.Model, bind map[string]int) (*onnx.Model, error) {
	m = m.ShallowClone()
	m.Graph.ValueInfo = nil
	var fixed []string
	for _, v := range m.Graph.Inputs() {
		t, ok := v.TensorType()
		if !ok || !t.Ranked || len(t.Dims) == 0 {
			return nil, fmt.Errorf("input %q has no batch extent; its type is %v", v.Name, t)
		}
		if t.Dims[0].IsKnown() {
			fixed = append(fixed, fmt.Sprintf("%s %v", v.Name, t))
		}
		t = t.Bind(bind)
		t.Dims[0] = onnx.Symbol(batchSymbol)
		for i, d := range t.Dims[1:] {
			if !d.IsKnown() {
				return nil, fmt.Errorf("input %q is %v: give extent %d a number with bind", v.Name, t, i+1)
			}
		}
		v.Type = onnx.NewValueInfo("", t).Type
	}
	outputs := m.Graph.Output
	bare := m.ShallowClone()
	for _, v := range bare.Graph.Output {
		v.Type = nil
	}
	env, err := shape.Infer(bare, nil)
	if err != nil {
		if len(fixed) > 0 {
			return nil, fmt.Errorf("the model was exported with a fixed batch (%s) that its graph depends on; export it with a dynamic batch: %w", strings.Join(fixed, ", "), err)
		}
		return nil, err
	}
	for _, v := range outputs {
		t := env.Type(onnx.Value(v.Name))
		if t.Ranked && len(t.Dims) > 0 && t.Dims[0].IsKnown() && len(fixed) > 0 {
			return nil, fmt.Errorf("the model was exported with a fixed batch (%s) and its output %q keeps the extent %d; export it with a dynamic batch", strings.Join(fixed, ", "), v.Name, t.Dims[0].Value)
		}
		v.Type = onnx.NewValueInfo("", t).Type
	}
	return m, nil
}

// fields lists what the loader fills, in the order inputs, targets, weight; names are the graph's.
func (g *graphs) fields(cfg *Config) ([]dataset.Field, error) {
	var fields []dataset.Field
	add := func(what, key, input string, cols []string) error {
		for _, v := range g.eval.Model.Graph.Input {
			if v.Name != input {
				continue
			}
			t, _ := v.TensorType()
			f := dataset.Field{Name: input, Columns: cols, DType: t.DType, Shape: []int{}}
			for _, d := range t.Dims[1:] {
				f.Shape = append(f.Shape, d.Value)
			}
			fields = append(fields, f)
			return nil
		}
		return fmt.Errorf("data.%s: %q is no %s of the model", what, key, strings.TrimSuffix(what, "s"))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Data.Inputs)) {
		if !slices.Contains(g.served.Inputs, name) {
			return nil, fmt.Errorf("data.inputs: the model has no input %q; it has %s", name, strings.Join(g.served.Inputs, ", "))
		}
		if err := add("inputs", name, name, cfg.Data.Inputs[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range g.served.Inputs {
		if _, ok := cfg.Data.Inputs[name]; !ok {
			return nil, fmt.Errorf("data.inputs: no columns are given for the model's input %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Data.Targets)) {
		if err := add("targets", name, loss.TargetInput(name), cfg.Data.Targets[name]); err != nil {
			return nil, err
		}
	}
	for _, t := range cfg.Loss {
		if _, ok := cfg.Data.Targets[t.Output]; !ok {
			return nil, fmt.Errorf("data.targets: no columns are given for output %q, which has a loss", t.Output)
		}
	}
	if cfg.Data.Weight != "" {
		fields = append(fields, dataset.Field{Name: loss.WeightInput, Columns: []string{cfg.Data.Weight}, DType: tensor.Float32, Shape: []int{}})
	}
	return fields, nil
}
