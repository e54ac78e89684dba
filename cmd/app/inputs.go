package app

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/engine/trace"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
	"github.com/onnxrl/onnxrl/runtime/tensor/npy"
)

// maxRandom bounds the elements of one random input, so that a mistyped extent is an error and not
// a full memory.
const maxRandom = 1 << 28

const inputHelp = `Inputs are files or made from the seed: [NAME=]FILE.pb (TensorProto), [NAME=]FILE.npy, a directory with input_0.pb, input_1.pb, …,
or NAME=normal, NAME=zeros, NAME=ones, NAME=LO..HI (uniform; integers from LO to HI-1). Inputs that are not given are random:
floating-point ones normal, integers 0 or 1; a batch without a number has one row. A file without NAME is the input of the tensor's own name, else the first that is still missing.`

// inputFlags say where the values of a model's inputs come from.
type inputFlags struct {
	inputs []string
	seed   uint64
	bind   bindFlags
}

func (f *inputFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.inputs, "input", nil, "value of an input; see above")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "seed of random inputs")
	f.bind.add(cmd)
}

// feeds returns one tensor per input of m, in the types and extents that m declares.
func (f *inputFlags) feeds(m *onnx.Model, extra ...string) (map[string]*tensor.Tensor, error) {
	bind, err := f.bind.parse()
	if err != nil {
		return nil, err
	}
	if err := checkSymbols(m, bind); err != nil {
		return nil, err
	}
	in, kinds := map[string]*tensor.Tensor{}, map[string]string{}
	for _, spec := range slices.Concat(f.inputs, extra) {
		if err := readInput(m, spec, in, kinds); err != nil {
			return nil, err
		}
	}
	if err := bindFrom(m, in, bind); err != nil {
		return nil, err
	}
	batchOfOne(m, bind)
	for _, v := range m.Graph.Inputs() {
		if in[v.Name] != nil {
			continue
		}
		if in[v.Name], err = makeInput(v, kinds[v.Name], f.seed, bind); err != nil {
			return nil, err
		}
	}
	// Files among themselves, and files against --bind, may still disagree about an extent.
	bound, err := onnx.BindDims(m, bind)
	if err != nil {
		return nil, err
	}
	_, err = trace.Bind(bound, in)
	return in, err
}

// readInput adds what one specification gives.
func readInput(m *onnx.Model, spec string, in map[string]*tensor.Tensor, kinds map[string]string) error {
	name, source, named := strings.Cut(spec, "=")
	if !named {
		name, source = "", spec
	}
	var names []string
	for _, v := range m.Graph.Inputs() {
		names = append(names, v.Name)
	}
	if named && !slices.Contains(names, name) {
		return fmt.Errorf("input %q: the model has no such input; it has %s", name, strings.Join(names, ", "))
	}
	if _, _, isRange := parseRange(source); named && (isRange || slices.Contains([]string{"normal", "zeros", "ones"}, source)) {
		if kinds[name] != "" || in[name] != nil {
			return fmt.Errorf("input %q is given twice", name)
		}
		kinds[name] = source
		return nil
	}
	st, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("input %q: expected a file, normal, zeros, ones or LO..HI: %w", spec, err)
	}
	files := []string{source}
	if st.IsDir() {
		if files = numbered(source); len(files) == 0 {
			return fmt.Errorf("input %q: the directory holds no input_0.pb", spec)
		}
	}
	for _, file := range files {
		own, t, err := readTensor(file)
		if err != nil {
			return err
		}
		at := name
		if at == "" && slices.Contains(names, own) {
			at = own
		}
		if at == "" {
			i := slices.IndexFunc(names, func(n string) bool { return in[n] == nil && kinds[n] == "" })
			if i < 0 {
				return fmt.Errorf("input %s: the model's %s have values already", file, plural(len(names), "input"))
			}
			at = names[i]
		}
		if in[at] != nil || kinds[at] != "" {
			return fmt.Errorf("input %q is given twice", at)
		}
		in[at] = t
	}
	return nil
}

// numbered lists dir/input_0.pb, dir/input_1.pb and so on, as ONNX's test cases name them; dir/data
// is looked into as well.
func numbered(dir string) []string {
	for _, d := range []string{dir, filepath.Join(dir, "data")} {
		var files []string
		for {
			p := filepath.Join(d, fmt.Sprintf("input_%d.pb", len(files)))
			if _, err := os.Stat(p); err != nil {
				break
			}
			files = append(files, p)
		}
		if len(files) > 0 {
			return files
		}
	}
	return nil
}

func readTensor(path string) (name string, t *tensor.Tensor, err error) {
	if strings.HasSuffix(path, ".npy") {
		t, err = npy.ReadFile(path)
		return "", t, err
	}
	return onnx.ReadTensor(path)
}

// bindFrom adds the extents that the given tensors have.
func bindFrom(m *onnx.Model, in map[string]*tensor.Tensor, bind map[string]int) error {
	for _, v := range m.Graph.Inputs() {
		t, ok := v.TensorType()
		x := in[v.Name]
		if !ok || x == nil {
			continue
		}
		if !t.Admits(x.DType(), x.Shape()) {
			return fmt.Errorf("input %q: expected %v, got %v", v.Name, t, x)
		}
		for i, d := range t.Dims {
			if _, bound := bind[d.Param]; d.Param != "" && !d.IsKnown() && !bound {
				bind[d.Param] = x.Shape()[i]
			}
		}
	}
	return nil
}

// makeInput draws an input; each has a stream of its own, so that another input's value does not
// depend on it.
func makeInput(v *onnx.ValueInfo, kind string, seed uint64, bind map[string]int) (*tensor.Tensor, error) {
	t, ok := v.TensorType()
	if !ok || !t.Ranked {
		return nil, fmt.Errorf("input %q has no tensor type with a known rank: give it as a file", v.Name)
	}
	t = t.Bind(bind)
	if len(t.Dims) > 0 && !t.Dims[0].IsKnown() && t.Dims[0].Param == "" {
		t.Dims[0] = onnx.Known(1) // A batch that nobody has named.
	}
	shape, static := t.Static()
	if !static {
		for _, d := range t.Dims {
			if _, bound := bind[d.Param]; !d.IsKnown() && d.Param != "" && !bound {
				return nil, fmt.Errorf("input %q (%v): extent %s has no number: give --bind %s=NUMBER or the input as a file", v.Name, t, d.Param, d.Param)
			}
		}
		return nil, fmt.Errorf("input %q (%v) has an extent without number and name: give it as a file", v.Name, t)
	}
	n, err := tensor.Len(shape)
	if err != nil || n > maxRandom {
		return nil, fmt.Errorf("input %q (%v%v): more than %d elements are not drawn: give it as a file", v.Name, t.DType, shape, maxRandom)
	}
	if t.DType.Size() == 0 || t.DType == tensor.Complex64 || t.DType == tensor.Complex128 {
		return nil, fmt.Errorf("input %q: values of type %v are not drawn: give it as a file", v.Name, t.DType)
	}
	if kind == "" {
		kind = "normal"
		if !t.DType.IsFloat() {
			kind = "0..2"
		}
	}
	if lo, hi, isRange := parseRange(kind); isRange && !t.DType.IsFloat() {
		if low, high := wholeBounds(t.DType); lo < low || hi-1 > high {
			return nil, fmt.Errorf("input %q: %s is not all of type %v", v.Name, kind, t.DType)
		}
	}
	x := tensor.New(t.DType, shape...)
	draw := drawing(kind, t.DType.IsFloat(), rng.New(seed).Split("input/"+v.Name).Stream())
	for i := range n {
		if err := store(x, i, draw()); err != nil {
			return nil, fmt.Errorf("input %q: %w", v.Name, err)
		}
	}
	return x, nil
}

// drawing returns a source of numbers of a kind.
func drawing(kind string, float bool, s *rng.Stream) func() float64 {
	lo, hi, isRange := parseRange(kind)
	switch {
	case isRange && float:
		return func() float64 { return lo + (hi-lo)*s.Float64() }
	case isRange:
		return func() float64 { return math.Floor(lo) + float64(s.IntN(max(int(math.Floor(hi)-math.Floor(lo)), 1))) }
	case kind == "ones":
		return func() float64 { return 1 }
	case kind == "zeros":
		return func() float64 { return 0 }
	}
	return s.Normal
}

// wholeBounds returns the least and the largest number of an element type of whole numbers; for
// bool they are 0 and 1.
func wholeBounds(d tensor.DType) (low, high float64) {
	bits := 8 * d.Size()
	switch d {
	case tensor.Bool:
		return 0, 1
	case tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64:
		return -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1) - 1
	}
	return 0, math.Ldexp(1, bits) - 1
}

// parseRange reads LO..HI.
func parseRange(s string) (lo, hi float64, ok bool) {
	a, b, found := strings.Cut(s, "..")
	lo, err1 := strconv.ParseFloat(a, 64)
	hi, err2 := strconv.ParseFloat(b, 64)
	return lo, hi, found && err1 == nil && err2 == nil && lo < hi && hi-lo < 1<<53
}

// store converts a number to the tensor's element type.
func store(t *tensor.Tensor, i int, v float64) error {
	switch t.DType() {
	case tensor.Float32:
		t.Float32s()[i] = float32(v)
	case tensor.Float64:
		t.Float64s()[i] = v
	case tensor.Float16:
		tensor.Data[uint16](t)[i] = tensor.Float32ToFloat16(float32(v))
	case tensor.BFloat16:
		tensor.Data[uint16](t)[i] = tensor.Float32ToBFloat16(float32(v))
	case tensor.Int64:
		t.Int64s()[i] = int64(v)
	case tensor.Int32:
		t.Int32s()[i] = int32(v)
	case tensor.Int16:
		tensor.Data[int16](t)[i] = int16(v)
	case tensor.Int8:
		tensor.Data[int8](t)[i] = int8(v)
	case tensor.Uint64:
		tensor.Data[uint64](t)[i] = uint64(max(v, 0))
	case tensor.Uint32:
		tensor.Data[uint32](t)[i] = uint32(max(v, 0))
	case tensor.Uint16:
		tensor.Data[uint16](t)[i] = uint16(max(v, 0))
	case tensor.Uint8:
		tensor.Data[uint8](t)[i] = uint8(max(v, 0))
	case tensor.Bool:
		t.Bools()[i] = v >= 1
	default:
		return fmt.Errorf("values of type %v are not drawn", t.DType())
	}
	return nil
}
