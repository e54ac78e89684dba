package encoder

import (
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Encoder is a configured architecture. It is immutable and safe for concurrent use.
type Encoder interface {
	// Config returns the effective parameters, defaults included, for the record of the run.
	Config() any
	// Build appends the encoder to a graph, below its scope, and returns the features: [batch, D]
	// for x of rank 2 or 3, [batch, N, D] for rank 4. Shapes that do not fit are errors that name
	// both sides.
	Build(g *layer.Graph, x onnx.Value) (onnx.Value, error)
}

// Sequencer is implemented by encoders that have features for every step of a window.
type Sequencer interface {
	Encoder
	// BuildSequence appends the part of the encoder before pooling and returns its features [batch,
	// W', …, D]. Where W' is less than the window, the last features belong to the last step.
	BuildSequence(g *layer.Graph, x onnx.Value) (onnx.Value, error)
	// Causal reports whether the features of a step depend on no later step.
	Causal() bool
}

// Sharer is implemented by encoders that can compute what a bar contributes once, for all windows
// that it lies in.
type Sharer interface {
	Encoder
	// Shares returns nil when BuildShared gives, for windows of that length, what Build gives for
	// each window alone, or an error that says why it cannot.
	Shares(window int) error
	// BuildShared appends the encoder over rows [batch, L, …, F] that are in sequence. It returns
	// the features of each of their L − window + 1 windows, [batch, L − window + 1, …, D], equal to
	// Build's up to rounding. The parameters are Build's, by name and shape.
	BuildShared(g *layer.Graph, rows onnx.Value, window int) (onnx.Value, error)
}

// ReadsWindows reports whether an encoder reads windows in time, and not vectors: one that has
// features for every step does, and one that says so.
func ReadsWindows(e Encoder) bool {
	if w, ok := e.(interface{ ReadsWindows() bool }); ok {
		return w.ReadsWindows()
	}
	_, ok := e.(Sequencer)
	return ok
}

// Kind is one row of a list of encoders: the name that a configuration gives as kind, and how the
// other keys become an encoder.
type Kind struct {
	Name string
	// Summary says in one line what the encoder is.
	Summary string
	// Defaults returns the parameters that New decodes over, a struct whose fields are the keys.
	Defaults func() any
	// New decodes the parameters strictly, over the kind's defaults.
	New func(params configs.Section) (Encoder, error)
}

// KindOf returns a kind whose configuration is a C.
func KindOf[C any, E Encoder](name, summary string, defaults func() C, make func(C) (E, error)) Kind {
	return Kind{Name: name, Summary: summary, Defaults: func() any { return defaults() }, New: func(params configs.Section) (Encoder, error) {
		c := defaults()
		if err := params.Decode(&c); err != nil {
			return nil, err
		}
		return make(c)
	}}
}

// New finds the kind that a configuration names and makes the encoder. The error for an unknown
// name is placed at the name.
func New(kinds []Kind, c configs.Kinded) (Encoder, error) {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		if k.Name == c.Kind {
			return k.New(c.Section)
		}
		names[i] = k.Name
	}
	return nil, c.Unknown(names)
}

// CheckInput returns an error unless x is float32 and of one of the given ranks.
func CheckInput(g *layer.Graph, x onnx.Value, ranks ...int) error {
	if err := g.Err(); err != nil {
		return err
	}
	t := g.Type(x)
	for _, r := range ranks {
		if t.DType == tensor.Float32 && t.Ranked && len(t.Dims) == r {
			return nil
		}
	}
	return fmt.Errorf("the encoder takes float32 values of rank %v, the observation is %v", ranks, t)
}

// PerAsset calls f for x of rank 2 or 3. For rank 4 it makes rows of the assets first and gives
// them back their axis afterwards, so f sees [batch·N, W, F] and returns [batch·N, D].
func PerAsset(g *layer.Graph, x onnx.Value, f func(x onnx.Value) (onnx.Value, error)) (onnx.Value, error) {
	if len(g.Dims(x)) != 4 {
		return f(x)
	}
	n := g.Extent(x, 2)
	z, err := f(g.FoldAxis(x, 2))
	if err != nil {
		return "", err
	}
	return g.UnfoldAxis(z, n), g.Err()
}

// StepsPerAsset is PerAsset for features of every step: f sees [batch·N, W, F] and returns
// [batch·N, W', D], which become [batch, W', N, D]. Other values than float32 of rank 3 or 4 are an
// error.
func StepsPerAsset(g *layer.Graph, x onnx.Value, f func(x onnx.Value) (onnx.Value, error)) (onnx.Value, error) {
	if err := CheckInput(g, x, 3, 4); err != nil {
		return "", err
	}
	y, err := PerAsset(g, x, f)
	if err != nil || len(g.Dims(x)) != 4 {
		return y, err
	}
	return g.Transpose(y, 0, 2, 1, 3), g.Err()
}

// Pooled builds an encoder whose features are those of its steps, pooled over time: [batch, D], or
// [batch, N, D] for windows of assets.
func Pooled(g *layer.Graph, x onnx.Value, e Sequencer, p layer.Pool) (onnx.Value, error) {
	y, err := e.BuildSequence(g, x)
	if err != nil {
		return "", err
	}
	return g.PoolTime(y, p), g.Err()
}

// SplitTimestamps splits x [rows, W, F] into the values of each step and the n last features, which
// say when it is; without any the second value is absent.
func SplitTimestamps(g *layer.Graph, x onnx.Value, n int) (values, times onnx.Value, err error) {
	width := g.Extent(x, -1)
	if n >= width {
		return "", "", fmt.Errorf("timestamps: the last %d features say when a step is, but there are %d in all: %v", n, width, g.Type(x))
	}
	if n == 0 {
		return x, "", g.Err()
	}
	parts := g.Split(x, -1, width-n, n)
	return parts[0], parts[1], g.Err()
}
