package loss

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Names of the values that [Attach] adds.
const (
	WeightInput  = "sample_weight"
	Output       = "loss"
	targetPrefix = "target/"
	metricPrefix = "metric/"
)

// TargetInput returns the name of the input that carries the targets of an output.
func TargetInput(output string) string { return targetPrefix + output }

// MetricOutput returns the name of the output that holds a metric of an output, summed with the
// sample weights.
func MetricOutput(metric, output string) string { return metricPrefix + metric + "/" + output }

// Term is one loss on one output of the model.
type Term struct {
	// Output names the model output (the prediction).
	Output string `yaml:"output"`
	// Kind is one of Kinds.
	Kind string `yaml:"kind"`
	// Weight multiplies the term. 0 means 1.
	Weight float64 `yaml:"weight"`
	// Delta is the threshold of "huber" between the quadratic and the linear part. 0 means 1.
	Delta float64 `yaml:"delta"`
	// LabelSmoothing of "cross_entropy" mixes the targets with the uniform distribution; in [0, 1).
	LabelSmoothing float64 `yaml:"label_smoothing"`
	// Axis of "cross_entropy" is the axis of the classes; -1 is the last, as language models have
	// it. 0 means 1, PyTorch's.
	Axis int `yaml:"axis"`
	// IgnoreIndex of "cross_entropy" is a label whose elements have no loss: a sample's loss is the
	// mean over its other elements, and a sample that has no others counts with 0. Every other
	// label outside 0…classes−1 is refused. Leaving it out ignores none. (PyTorch ignores −100 by
	// default, and divides by the elements that count in the whole batch.)
	IgnoreIndex *int `yaml:"ignore_index,omitempty"`
	// Path of a model file for kind "onnx": its inputs are called "prediction" and "target", its
	// one output is the loss per sample, float32[batch], or a scalar mean.
	Path string `yaml:"path"`
	// Model is the loss graph of kind "onnx" when it is built in memory; Path is then ignored.
	Model *onnx.Model `yaml:"-"`
	// TargetShape is the shape of the targets without the batch extent; null derives it from the
	// prediction. Loss graphs of the user's own may need it.
	TargetShape []int `yaml:"target_shape"`
}

// builder is what the function of one kind works with.
type builder struct {
	*onnx.Builder
	env   *shape.Env
	term  Term
	index int
	y     onnx.Value
	batch onnx.Dim
	// graph is the loss graph of kind "onnx", at the opset of the model.
	graph *onnx.Model
	// target is the targets' input, declared by the kind; targets holds those of all terms, because
	// terms on one output share theirs.
	target  onnx.Value
	targets map[string]onnx.TensorType
}

// kind makes the per-sample loss, float32[batch], and optional metrics of the same shape. It
// declares its target input.
type kind func(b *builder) (perSample onnx.Value, metrics map[string]onnx.Value, err error)

var kinds = map[string]kind{
	"mse": mse, "mae": mae, "huber": huber, "cross_entropy": crossEntropy, "bce": bce, "bce_logits": bceLogits, "onnx": custom,
}

// Kinds lists the losses, sorted.
func Kinds() []string {
	var ks []string
	for k := range kinds {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

// WithDefaults returns the term with defaults in place of zero values.
func (t Term) WithDefaults() Term {
	if t.Weight == 0 {
		t.Weight = 1
	}
	if t.Kind == "huber" && t.Delta == 0 {
		t.Delta = 1
	}
	return t
}

// Validate reports all problems of a term.
func (t Term) Validate() error {
	var p configs.Problems
	p.OneOf("kind", t.Kind, Kinds()...)
	p.Check(t.Kind != "onnx" || t.Path != "" || t.Model != nil, "path", "kind onnx needs the file of a loss graph")
	p.Check(t.Kind == "onnx" || t.Path == "", "path", "is used by kind onnx only")
	p.Check(t.Kind == "onnx" || t.TargetShape == nil, "target_shape", "is used by kind onnx only")
	p.NonNegative("weight", t.Weight)
	p.NonNegative("delta", t.Delta)
	p.Check(t.Kind == "huber" || t.Delta == 0, "delta", "is used by kind huber only")
	p.Check(t.LabelSmoothing >= 0 && t.LabelSmoothing < 1, "label_smoothing", "is %g, expected a number in [0, 1)", t.LabelSmoothing)
	p.Check(t.Kind == "cross_entropy" || t.LabelSmoothing == 0, "label_smoothing", "is used by kind cross_entropy only")
	p.Check(t.Kind == "cross_entropy" || t.IgnoreIndex == nil, "ignore_index", "is used by kind cross_entropy only")
	p.Check(t.Kind == "cross_entropy" || t.Axis == 0, "axis", "is used by kind cross_entropy only")
	return p.Err()
}

// Attach returns a copy of m, which must use opset 13 or later, with the losses appended. The batch
// is the first extent of each prediction. Its own outputs stay. Where a loss graph uses a newer
// opset than m, the copy is upgraded to it. It also returns the metric outputs that were added.
// Terms on one output share its targets, which must then have one type.
func Attach(m *onnx.Model, terms []Term) (*onnx.Model, []string, error) {
	if len(terms) == 0 {
		return nil, nil, fmt.Errorf("attach loss: no term is given")
	}
	terms = slices.Clone(terms)
	for i, t := range terms {
		if err := t.Validate(); err != nil {
			return nil, nil, fmt.Errorf("attach loss, term %d: %w", i, err)
		}
		terms[i] = t.WithDefaults()
	}
	out, graphs, err := align(m, terms)
	if err != nil {
		return nil, nil, fmt.Errorf("attach loss: %w", err)
	}
	env, err := shape.Infer(out, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("attach loss: %w", err)
	}
	b := onnx.Extend(out)
	env.Track(b)
	b.SetScope("loss/")
	var total, weight onnx.Value
	var metrics []string
	targets := map[string]onnx.TensorType{}
	for i, t := range terms {
		if !slices.ContainsFunc(m.Graph.Output, func(v *onnx.ValueInfo) bool { return v.Name == t.Output }) {
			var names []string
			for _, v := range m.Graph.Output {
				names = append(names, v.Name)
			}
			if t.Output == "" {
				return nil, nil, fmt.Errorf("attach loss, term %d: it does not say which output it is on; the model has %s", i, strings.Join(names, ", "))
			}
			return nil, nil, fmt.Errorf("attach loss, term %d: the model has no output %q; it has %s", i, t.Output, strings.Join(names, ", "))
		}
		y := onnx.Value(t.Output)
		yt := env.Type(y)
		if !yt.Ranked || len(yt.Dims) == 0 || yt.DType != tensor.Float32 {
			return nil, nil, fmt.Errorf("attach loss, term %d: output %q is %v, expected float32 with the batch as first extent", i, t.Output, yt)
		}
		if weight == "" {
			weight = b.Input(WeightInput, onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: yt.Dims[:1]})
		}
		k := &builder{Builder: b, env: env, term: t, index: i, y: y, batch: yt.Dims[0], graph: graphs[i], targets: targets}
		l, ms, err := kinds[t.Kind](k)
		if err == nil {
			err = b.Err()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("attach loss %q on output %q: %w", t.Kind, t.Output, err)
		}
		sum := k.weighted(l, weight)
		if t.Weight != 1 {
			sum = b.Op("Mul", []onnx.Value{sum, b.Float(float32(t.Weight))})
		}
		if total == "" {
			total = sum
		} else {
			total = b.Op("Add", []onnx.Value{total, sum})
		}
		for _, name := range slices.Sorted(maps.Keys(ms)) {
			mo := MetricOutput(name, t.Output)
			if slices.Contains(metrics, mo) {
				continue
			}
			b.Output(b.Rename(k.weighted(ms[name], weight), mo), onnx.TypeOf(tensor.Float32))
			metrics = append(metrics, mo)
		}
	}
	b.SetScope("")
	b.Output(b.Rename(total, Output), onnx.TypeOf(tensor.Float32))
	if out, err = b.Model(); err != nil {
		return nil, nil, fmt.Errorf("attach loss: %w", err)
	}
	return out, metrics, nil
}

// weighted sums a value per sample with the sample weights. A scalar, the mean over the batch that
// some loss graphs give, counts with the sum of the weights.
func (b *builder) weighted(l, w onnx.Value) onnx.Value {
	keep := onnx.AttrInt("keepdims", 0)
	if t := b.env.Type(l); t.Ranked && len(t.Dims) == 0 {
		return b.Op("Mul", []onnx.Value{l, b.Op("ReduceSum", []onnx.Value{w}, keep)})
	}
	return b.Op("ReduceSum", []onnx.Value{b.Op("Mul", []onnx.Value{l, w})}, keep)
}

// perSample averages over all axes but the first.
func (b *builder) perSample(v onnx.Value) onnx.Value {
	rank := len(b.env.Type(v).Dims)
	if rank == 1 {
		return v
	}
	// A sum scaled by a constant is faster to differentiate than a mean, and its axes have one form
	// in every opset from 13 on.
	axes, n := make([]int, rank-1), 1
	for i := range axes {
		axes[i] = i + 1
		d := b.env.Type(v).Dims[i+1]
		if !d.IsKnown() {
			b.Fail(fmt.Errorf("extent %d of %q is not known; only the batch may be symbolic", i+1, b.y))
			return v
		}
		n *= d.Value
	}
	if n == 1 {
		return b.Op("Squeeze", []onnx.Value{v, b.Ints(axes...)})
	}
	s := b.Op("ReduceSum", []onnx.Value{v, b.Ints(axes...)}, onnx.AttrInt("keepdims", 0))
	return b.Op("Mul", []onnx.Value{s, b.Float(1 / float32(max(n, 1)))})
}

// declare adds the target input, or finds the one that an earlier term on the same output has
// added.
func (b *builder) declare(t onnx.TensorType) onnx.Value {
	name := TargetInput(b.term.Output)
	b.target = onnx.Value(name)
	if old, ok := b.targets[name]; !ok {
		b.targets[name] = t
		b.Input(name, t)
	} else if old.String() != t.String() {
		b.Fail(fmt.Errorf("its targets are %v, those of an earlier loss on the same output %v", t, old))
	}
	return b.target
}

// likePrediction declares float targets of the prediction's own shape.
func (b *builder) likePrediction() onnx.Value { return b.declare(b.env.Type(b.y)) }

func (b *builder) bin(op string, x, y onnx.Value) onnx.Value { return b.Op(op, []onnx.Value{x, y}) }
func (b *builder) un(op string, x onnx.Value) onnx.Value     { return b.Op(op, []onnx.Value{x}) }
