package fit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// batchSymbol is what the batch extent is called inside this package, whatever the model calls it.
const batchSymbol = "batch"

// graphs are the forms of the model over one set of parameters.
type graphs struct {
	// origin is the model in the form in which it came and goes, but in evaluation form and with
	// merged parameters cut apart.
	origin *onnx.Model
	// served is what is trained, without losses: functions inlined, opset raised, batch symbolic,
	// adapters beside their weights. eval adds the losses and metrics; train computes nothing but
	// the loss, with layers in training form where that is asked for.
	served, eval, train *models.Network
	values              map[string]*tensor.Tensor
	metrics             []string
	// layers are the BatchNormalization and Dropout nodes as the file had them, settled those put
	// into evaluation form, and mode what training form changed.
	layers, settled []models.ModeLayer
	mode            models.TrainingChanges
	adapters        []lora.Adapter
	// ties are the parameters that the exporter had merged, and those that it wrote twice.
	ties models.Ties
	// precision is the floating-point type of the file.
	precision tensor.DType
	// fixed names the inputs whose batch the file had fixed to a number.
	fixed []string
}

// prepare rewrites the model according to the configuration, in which it fills in the output of a
// single loss.
func prepare(m *onnx.Model, cfg *Config) (*graphs, error) {
	g := &graphs{layers: models.ModeLayers(m)}
	m, err := models.UntieStatistics(m)
	if err != nil {
		return nil, err
	}
	// A described network ties equal parameters on purpose: no exporter has merged anything.
	if cfg.Network == nil {
		m, g.ties, err = models.FindTies(m, cfg.TieOptions)
	} else {
		m, err = models.Untie(m, cfg.Untie)
	}
	if err != nil {
		return nil, err
	}
	if g.origin, g.settled, err = models.EvaluationForm(m); err != nil {
		return nil, err
	}
	if m, err = onnx.InlineFunctions(g.origin); err != nil {
		return nil, err
	}
	for _, l := range models.ModeLayers(m) {
		if l.Training {
			return nil, fmt.Errorf("layer %q (%s) is in training form inside a function or a branch, and what is written must not depend on the batch; expected it in the main graph, or in evaluation form", l.Node, l.Op)
		}
	}
	if m.Opset(onnx.DomainStandard) < autodiff.MinOpset {
		if m, err = onnx.Upgrade(m, autodiff.MinOpset); err != nil {
			return nil, err
		}
	}
	declared := m
	var changed bool
	if m, changed, err = models.InFloat32(m); err != nil {
		return nil, err
	}
	g.precision = tensor.Float32
	if changed {
		g.precision = precisionOf(declared)
	}
	if m, err = g.ties.Join(m); err != nil {
		return nil, err
	}
	if m, g.fixed, err = freeBatch(m, cfg.Bind); err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(cfg.Model, "the model"), err)
	}
	roles := g.ties.Roles(g.origin, models.Options{Train: cfg.Train, Freeze: cfg.Freeze})
	if cfg.LoRA != nil {
		if m, g.adapters, err = lora.Apply(m, *cfg.LoRA); err != nil {
			return nil, err
		}
		roles.Train = append(roles.Train, lora.Pattern)
	}
	if g.served, g.values, err = models.FromModel(m, roles); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(g.served.Specs, func(s models.Spec) bool { return s.Role == models.Trainable }) {
		return nil, fmt.Errorf("no parameter is trainable: the model has %d (floating-point initializers of its main graph count, the values of Constant nodes do not), and the train and freeze patterns leave none",
			len(g.served.Specs))
	}
	if len(cfg.Loss) == 1 && cfg.Loss[0].Output == "" {
		switch {
		case len(m.Graph.Output) == 1:
			cfg.Loss[0].Output = m.Graph.Output[0].Name
		case len(cfg.Data.Targets) == 1:
			for name := range cfg.Data.Targets {
				cfg.Loss[0].Output = name
			}
		}
	}
	for _, v := range m.Graph.Output {
		t, _ := v.TensorType()
		if slices.ContainsFunc(cfg.Loss, func(l loss.Term) bool { return l.Output == v.Name }) && (len(t.Dims) == 0 || t.Dims[0] != onnx.Symbol(batchSymbol)) {
			return nil, fmt.Errorf("output %q is %v; for a loss its first extent must be the batch", v.Name, t)
		}
	}
	return g, g.attach(m, cfg)
}

// precisionOf returns the floating-point type other than float32 that most elements of a model's
// initializers have, or else the type of its outputs.
func precisionOf(m *onnx.Model) tensor.DType {
	counts := map[tensor.DType]int{}
	add := func(d tensor.DType, n int) {
		if d.IsFloat() && d != tensor.Float32 {
			counts[d] += n
		}
	}
	for _, p := range m.Graph.Initializer {
		n := 1
		for _, d := range p.Dims {
			n *= int(d)
		}
		add(tensor.DType(p.DataType), n)
	}
	for _, v := range slices.Concat(m.Graph.Inputs(), m.Graph.Output) {
		t, _ := v.TensorType()
		add(t.DType, 1)
	}
	best := tensor.Float32
	for _, d := range []tensor.DType{tensor.Float64, tensor.Float16, tensor.BFloat16} {
		if counts[d] > counts[best] {
			best = d
		}
	}
	return best
}

// trained lists the layers that are trained in training form: all or none where the configuration
// says so, else those that the file has in it.
func (g *graphs) trained(m *onnx.Model, cfg *Config) []models.ModeLayer {
	switch {
	case cfg.TrainMode == nil:
		return g.settled
	case *cfg.TrainMode:
		return models.ModeLayers(m)
	}
	return nil
}

// attach builds the forms with losses.
func (g *graphs) attach(m *onnx.Model, cfg *Config) error {
	withLoss, metrics, err := loss.Attach(m, cfg.Loss)
	if err != nil {
		return err
	}
	g.metrics = metrics
	if g.eval, err = models.WithSpecs(withLoss, g.served.Specs); err != nil {
		return err
	}
	training := withLoss
	which := g.trained(m, cfg)
	if len(which) > 0 && cfg.FullBatch != nil {
		return fmt.Errorf("train_mode: layer %q (%s) was exported in training form, which %s cannot train: dropout and statistics of a batch make the loss a random one; expected train_mode: false", which[0].Node, which[0].Op, cfg.FullBatch.Method)
	}
	if len(which) > 0 {
		if training, g.mode, err = models.TrainingForm(m, which); err != nil {
			return err
		}
		if training, _, err = loss.Attach(training, cfg.Loss); err != nil {
			return err
		}
	}
	if g.train, err = models.WithSpecs(training, g.served.Specs); err != nil {
		return err
	}
	// A step that nobody watches computes neither predictions nor metrics.
	keep := []onnx.Value{loss.Output}
	for _, buffer := range slices.Sorted(maps.Keys(g.mode.Updates)) {
		keep = append(keep, onnx.Value(g.mode.Updates[buffer]))
	}
	if g.train.Model, err = onnx.Prune(g.train.Model, keep...); err != nil {
		return err
	}
	g.train.Outputs = nil
	for _, v := range keep {
		g.train.Outputs = append(g.train.Outputs, string(v))
	}
	return nil
}

// freeBatch makes the first extent of every input the symbol "batch", gives the other symbols
// numbers, and infers the outputs again. It also returns the inputs whose batch was a number;
// a graph that depends on that number is refused.
func freeBatch(m *onnx.Model, bind map[string]int) (_ *onnx.Model, fixed []string, err error) {
	m = m.ShallowClone()
	// Types of inner values hold for the old batch; what is declared of initializers stays.
	x := onnx.NewIndex(m.Graph)
	m.Graph.ValueInfo = slices.DeleteFunc(m.Graph.ValueInfo, func(v *onnx.ValueInfo) bool { return !x.IsInitializer(onnx.Value(v.Name)) })
	if err := checkBind(m, bind); err != nil {
		return nil, nil, err
	}
	for _, v := range m.Graph.Inputs() {
		t, ok := v.TensorType()
		if !ok || !t.Ranked || len(t.Dims) == 0 {
			return nil, nil, fmt.Errorf("input %q is %v; its first extent must be the batch", v.Name, t)
		}
		if t.Dims[0].IsKnown() {
			fixed = append(fixed, fmt.Sprintf("%s %v", v.Name, t))
		}
		t = t.Bind(bind)
		t.Dims[0] = onnx.Symbol(batchSymbol)
		for i, d := range t.Dims[1:] {
			if !d.IsKnown() {
				return nil, nil, fmt.Errorf("input %q is %v: its first extent must be the batch, and extent %d needs a number: set it with bind", v.Name, t, i+1)
			}
		}
		v.Type = onnx.NewValueInfo("", t).Type
	}
	for _, v := range m.Graph.Output {
		v.Type = nil
	}
	env, err := shape.Infer(m, nil)
	if err != nil {
		if len(fixed) > 0 {
			return nil, nil, fmt.Errorf("the model was exported with a fixed batch (%s) that its graph depends on; export it with a dynamic batch: %w", strings.Join(fixed, ", "), err)
		}
		return nil, nil, err
	}
	for _, v := range m.Graph.Output {
		t := env.Type(onnx.Value(v.Name))
		if t.Ranked && len(t.Dims) > 0 && t.Dims[0].IsKnown() && len(fixed) > 0 {
			return nil, nil, fmt.Errorf("the model was exported with a fixed batch (%s) and its output %q keeps the extent %d; export it with a dynamic batch", strings.Join(fixed, ", "), v.Name, t.Dims[0].Value)
		}
		if t.Ranked && len(t.Dims) > 0 && t.Dims[0] != onnx.Symbol(batchSymbol) && followsBatch(m, onnx.Value(v.Name)) {
			t.Dims[0] = onnx.Symbol(batchSymbol)
		}
		v.Type = onnx.NewValueInfo("", t).Type
	}
	return m, fixed, nil
}

// followsBatch reports whether the first extent of a value is the batch, by trying two. Symbolic
// arithmetic does not always find that out.
func followsBatch(m *onnx.Model, v onnx.Value) bool {
	for _, n := range []int{5, 7} {
		env, err := shape.Infer(m, map[string]int{batchSymbol: n})
		if err != nil {
			return false
		}
		if t := env.Type(v); !t.Ranked || len(t.Dims) == 0 || t.Dims[0] != onnx.Known(n) {
			return false
		}
	}
	return true
}

// checkBind refuses names that no extent of an input has.
func checkBind(m *onnx.Model, bind map[string]int) error {
	known := map[string]bool{}
	for _, v := range m.Graph.Inputs() {
		if t, ok := v.TensorType(); ok && len(t.Dims) > 0 {
			for _, d := range t.Dims[1:] {
				if !d.IsKnown() {
					known[d.Param] = true
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bind)) {
		if !known[name] {
			return fmt.Errorf("bind: no extent of an input but the batch is called %q; there are %q", name, slices.Sorted(maps.Keys(known)))
		}
		if bind[name] < 1 {
			return fmt.Errorf("bind: %s is %d, expected a positive number", name, bind[name])
		}
	}
	return nil
}
