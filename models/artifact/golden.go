package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models/safetensors"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// DefaultTolerance is the largest |Δ| / (1 + |y|) between engines that is taken for rounding.
const DefaultTolerance = 1e-4

const (
	goldenInput  = "input/"
	goldenOutput = "output/"
	maxGolden    = 256 << 20
)

// Golden holds inputs and the outputs that the model must give for them, by name.
type Golden struct {
	Inputs, Outputs map[string]*tensor.Tensor
	// Tolerance is the largest accepted |Δ| / (1 + |y|) of floating-point outputs,
	// [DefaultTolerance] when 0. All other outputs must be equal.
	Tolerance float64
}

// ErrGolden says that a model does not give its golden outputs.
var ErrGolden = errors.New("golden outputs differ")

// info checks that the golden values are those of the model's ports.
func (g *Golden) info(inputs, outputs []Port) (*GoldenInfo, error) {
	info := &GoldenInfo{Tolerance: g.Tolerance}
	if g.Tolerance == 0 {
		info.Tolerance = DefaultTolerance
	}
	for _, side := range []struct {
		what   string
		ports  []Port
		values map[string]*tensor.Tensor
	}{{"input", inputs, g.Inputs}, {"output", outputs, g.Outputs}} {
		for _, name := range slices.Sorted(maps.Keys(side.values)) {
			value := side.values[name]
			i := slices.IndexFunc(side.ports, func(p Port) bool { return p.Name == name })
			if i < 0 {
				return nil, fmt.Errorf("golden %s %q: the model has none of that name", side.what, name)
			}
			if err := side.ports[i].accepts(value); err != nil {
				return nil, fmt.Errorf("golden %s: %w", side.what, err)
			}
		}
		if side.what == "output" && len(side.values) == 0 {
			return nil, errors.New("golden values without an output")
		}
	}
	for i, p := range inputs {
		v := g.Inputs[p.Name]
		if v == nil {
			return nil, fmt.Errorf("golden input %q is missing", p.Name)
		}
		rows := 0
		if v.Rank() > 0 {
			rows = v.Shape()[0]
		}
		if i > 0 && rows != info.Rows {
			rows = 0
		}
		info.Rows = rows
	}
	return info, nil
}

func (p Port) accepts(t *tensor.Tensor) error {
	ok := t != nil && (p.DType == "" || p.DType == t.DType().String()) && (p.Shape == nil || len(p.Shape) == t.Rank())
	for i := 0; ok && i < len(p.Shape); i++ {
		ok = p.Shape[i] < 0 || p.Shape[i] == t.Shape()[i]
	}
	if !ok {
		return fmt.Errorf("%q is %v, expected %s%v", p.Name, t, p.DType, p.Shape)
	}
	return nil
}

// encode writes the values as a safetensors file, inputs and outputs in the order of the ports.
func (g *Golden) encode(inputs, outputs []Port) ([]byte, error) {
	var list []safetensors.Tensor
	add := func(prefix string, ports []Port, values map[string]*tensor.Tensor) error {
		for _, p := range ports {
			if v := values[p.Name]; v != nil {
				t, err := safetensors.Of(prefix+p.Name, v)
				if err != nil {
					return fmt.Errorf("golden values: %w", err)
				}
				list = append(list, t)
			}
		}
		return nil
	}
	if err := errors.Join(add(goldenInput, inputs, g.Inputs), add(goldenOutput, outputs, g.Outputs)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := safetensors.Write(&b, nil, list); err != nil {
		return nil, err
	}
	if b.Len() > maxGolden {
		return nil, fmt.Errorf("golden values of %d bytes, expected at most %d", b.Len(), maxGolden)
	}
	return b.Bytes(), nil
}

// Golden reads the golden values, nil where the version has none.
func (v Version) Golden() (*Golden, error) {
	if v.Manifest.Golden == nil {
		return nil, nil
	}
	f, ok := v.file(GoldenType)
	if !ok {
		return nil, fmt.Errorf("%w: %s has no golden values, and its manifest says that it has", ErrDamaged, v)
	}
	b, err := v.store.readBlob(f.desc, maxGolden)
	if err != nil {
		return nil, fmt.Errorf("golden values of %s: %w", v, err)
	}
	file, err := safetensors.NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, fmt.Errorf("golden values of %s: %w", v, err)
	}
	g := &Golden{Inputs: map[string]*tensor.Tensor{}, Outputs: map[string]*tensor.Tensor{}, Tolerance: v.Manifest.Golden.Tolerance}
	for _, info := range file.Tensors() {
		t, err := file.Tensor(info.Name)
		if err != nil {
			return nil, fmt.Errorf("golden values of %s: %w", v, err)
		}
		if name, ok := strings.CutPrefix(info.Name, goldenInput); ok {
			g.Inputs[name] = t
		} else if name, ok := strings.CutPrefix(info.Name, goldenOutput); ok {
			g.Outputs[name] = t
		}
	}
	return g, nil
}

// CheckGolden runs the model on the golden inputs and compares what it gives. It returns how many
// values were compared and the largest |Δ| / (1 + |y|); the error is an [ErrGolden] where they
// differ. A version without golden values has nothing to compare.
func (v Version) CheckGolden(ctx context.Context, c engine.Compiler) (values int, worst float64, err error) {
	g, err := v.Golden()
	if g == nil || err != nil {
		return 0, 0, err
	}
	m, err := v.Model()
	if err != nil {
		return 0, 0, err
	}
	values, worst, err = g.check(ctx, c, m)
	if err != nil {
		return values, worst, fmt.Errorf("golden values of %s: %w", v, err)
	}
	return values, worst, nil
}

func (g *Golden) check(ctx context.Context, c engine.Compiler, m *onnx.Model) (values int, worst float64, err error) {
	s, err := c.Compile(m, engine.Options{})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	in := make([]*tensor.Tensor, len(s.Inputs()))
	for i, p := range s.Inputs() {
		if in[i] = g.Inputs[p.Name]; in[i] == nil {
			return 0, 0, fmt.Errorf("input %q is missing", p.Name)
		}
	}
	out, err := engine.Run(ctx, s, in...)
	if err != nil {
		return 0, 0, err
	}
	for i, p := range s.Outputs() {
		want := g.Outputs[p.Name]
		if want == nil {
			continue
		}
		delta, err := distance(want, out[i])
		if err != nil {
			return values, worst, fmt.Errorf("output %q: %w", p.Name, err)
		}
		values += want.Len()
		worst = max(worst, delta)
		if !(delta <= g.Tolerance) {
			return values, worst, fmt.Errorf("output %q: %w by up to %.3g, expected at most %g", p.Name, ErrGolden, delta, g.Tolerance)
		}
	}
	return values, worst, nil
}

// distance is the largest |Δ| / (1 + |y|) of two tensors, infinite where a value that is not a
// floating-point number differs or one is NaN and the other is not.
func distance(want, got *tensor.Tensor) (float64, error) {
	if want.DType() != got.DType() || !slices.Equal(want.Shape(), got.Shape()) {
		return 0, fmt.Errorf("%w: %v, expected %v", ErrGolden, got, want)
	}
	worst := 0.0
	compare := func(w, g float64) {
		if w == g || math.IsNaN(w) && math.IsNaN(g) {
			return
		}
		d := math.Abs(w-g) / (1 + math.Abs(w))
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		worst = max(worst, d)
	}
	switch want.DType() {
	case tensor.Float32:
		for i, w := range want.Float32s() {
			compare(float64(w), float64(got.Float32s()[i]))
		}
	case tensor.Float64:
		for i, w := range want.Float64s() {
			compare(w, got.Float64s()[i])
		}
	case tensor.Float16, tensor.BFloat16:
		widen := tensor.Float16ToFloat32
		if want.DType() == tensor.BFloat16 {
			widen = tensor.BFloat16ToFloat32
		}
		for i, w := range tensor.Data[uint16](want) {
			compare(float64(widen(w)), float64(widen(tensor.Data[uint16](got)[i])))
		}
	default:
		if !bytes.Equal(want.Bytes(), got.Bytes()) {
			worst = math.Inf(1)
		}
	}
	return worst, nil
}
