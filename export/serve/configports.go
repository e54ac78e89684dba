package serve

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// PortConfig is what a configuration says of an input or output.
type PortConfig struct {
	Name   string
	Output bool
	// DType is Undefined where it is left to the model.
	DType tensor.DType
	// Dims are what requests give and get, -1 for free extents. The batch is left out where
	// Config.MaxBatch is set.
	Dims []int
	// Reshape, unless nil, is what the model has in place of Dims: as many elements in another
	// shape.
	Reshape []int
}

// WarmUp is a run before a version becomes ready.
type WarmUp struct {
	Name string
	// Batch is the number of rows, 0 for inputs without that axis; Count is how often it is run, 0
	// for once.
	Batch, Count int
	Inputs       []WarmUpInput
}

// WarmUpInput is an input of a run before a version becomes ready. Its elements are drawn, read
// from File, or zero.
type WarmUpInput struct {
	Name   string
	DType  tensor.DType
	Dims   []int // without the batch
	Random bool
	File   string // below the folder "warmup" of the model, little-endian and row-major
}

// The folders that files of a configuration lie in.
const (
	warmUpFolder  = "warmup"
	initialFolder = "initial_state"
)

// maxWarmUps bounds the runs of a warm-up.
const maxWarmUps = 1 << 16

// declare checks the ports against what the configuration says of them, and gives requests the
// shapes that it says.
func (p *plan) declare(c Config) error {
	p.given, p.answers = slices.Clone(p.in), slices.Clone(p.out)
	p.inner, p.outer = make([][]int, len(p.in)), make([][]int, len(p.out))
	for _, d := range c.Ports {
		list, what := p.given, "input"
		if d.Output {
			list, what = p.answers, "output"
		}
		i := slices.IndexFunc(list, func(q engine.Port) bool { return q.Name == d.Name })
		if i < 0 {
			return fmt.Errorf("the configuration has an %s %q, the model has %s", what, d.Name, portNames(list))
		}
		if err := p.declareOne(c, d, list, i); err != nil {
			return fmt.Errorf("the configuration of %s %q: %w", what, d.Name, err)
		}
	}
	return nil
}

func (p *plan) declareOne(c Config, d PortConfig, list []engine.Port, i int) error {
	port := list[i]
	if d.DType != tensor.Undefined && d.DType != port.DType {
		return fmt.Errorf("it is %v, the model has %v", d.DType, port.DType)
	}
	own := d.Dims
	if d.Reshape != nil {
		own = d.Reshape
	}
	shape := port.Shape
	if shape == nil && d.Reshape == nil {
		return nil
	}
	if p.batch && (c.MaxBatch > 0 || len(own) == len(shape)-1) {
		shape = shape[1:]
	}
	fits := len(own) == len(shape)
	for k := range min(len(own), len(shape)) {
		fits = fits && (own[k] < 0 || shape[k] < 0 || own[k] == shape[k])
	}
	if !fits {
		return fmt.Errorf("its extents are %v, the model has %v", own, shape)
	}
	if d.Reshape == nil {
		return nil
	}
	n, err := tensor.Len(d.Dims)
	m, err2 := tensor.Len(d.Reshape)
	if c.MaxBatch < 1 || !p.batch || err != nil || err2 != nil || n != m || n == 0 {
		return fmt.Errorf("reshape from %v to %v: expected max_batch_size, known extents, and as many elements", d.Dims, d.Reshape)
	}
	list[i].Shape = append([]int{-1}, d.Dims...)
	if d.Output {
		p.outer[i] = d.Dims
	} else {
		p.inner[i] = d.Reshape
	}
	return nil
}

// accept checks an input of a request and returns it in the shape that the model has.
func (p *plan) accept(i int, t *tensor.Tensor) (*tensor.Tensor, error) {
	err := accepts(p.given[i], t)
	switch {
	case p.inner[i] == nil:
		return t, err
	case err == nil:
		return t.Reshape(append([]int{t.Shape()[0]}, p.inner[i]...)...), nil
	case accepts(p.in[i], t) == nil:
		return t, nil
	}
	return nil, err
}

// files reads files that a configuration names.
type files struct{ fsys fs.FS }

// read returns the bytes of a file, which must be as many as a tensor has.
func (f files) read(folder, name string, d tensor.DType, shape []int) (*tensor.Tensor, error) {
	t := tensor.New(d, shape...)
	if f.fsys == nil {
		return nil, fmt.Errorf("file %q: the model has no folder to read it from", name)
	}
	if !fs.ValidPath(name) || name == "." || strings.Contains(name, `\`) {
		return nil, fmt.Errorf("file %q: expected a name below the folder %s", name, folder)
	}
	file := path.Join(folder, name)
	info, err := fs.Stat(f.fsys, file)
	if err != nil {
		return nil, err
	}
	if want := int64(len(t.Bytes())); d.Size() == 0 || info.Size() != want {
		return nil, fmt.Errorf("file %s has %d bytes, expected %d for %v", file, info.Size(), want, t)
	}
	b, err := fs.ReadFile(f.fsys, file)
	if err != nil {
		return nil, err
	}
	if len(b) != len(t.Bytes()) {
		return nil, fmt.Errorf("file %s has changed", file)
	}
	copy(t.Bytes(), b)
	return t, nil
}

// inputs makes the tensors of a warm-up, in the order of the session. Inputs that carry state, and
// are not given, begin as sequences do.
func (p *plan) inputs(w WarmUp, f files) ([]*tensor.Tensor, error) {
	in := make([]*tensor.Tensor, len(p.in))
	random := rng.New(0).Split("warm-up").Stream()
	for _, u := range w.Inputs {
		i, ok := p.inAt[u.Name]
		if !ok {
			return nil, fmt.Errorf("unknown input %q, expected %s", u.Name, portNames(p.in))
		}
		shape := slices.Clone(u.Dims)
		if w.Batch > 0 {
			shape = append([]int{w.Batch}, shape...)
		}
		if n, err := tensor.Len(shape); err != nil || n > 1<<28 {
			return nil, fmt.Errorf("input %q: shape %v is too large", u.Name, shape)
		}
		t, err := f.filled(u, shape, random)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", u.Name, err)
		}
		if in[i], err = p.accept(i, t); err != nil {
			return nil, err
		}
	}
	for i, t := range in {
		switch k := p.inState[i]; {
		case t != nil:
		case p.inControl[i] >= 0:
			in[i] = p.control[p.inControl[i]].rows(max(w.Batch, 1), p.batch)
		case k < 0:
			return nil, fmt.Errorf("input %q is missing, expected %s", p.in[i].Name, portNames(p.in))
		default:
			initial := p.state[k].initial
			in[i] = initial
			if p.batch {
				in[i] = tensor.New(initial.DType(), append([]int{max(w.Batch, 1)}, initial.Shape()[1:]...)...)
				for r := range max(w.Batch, 1) {
					copy(in[i].Rows(r, r+1).Bytes(), initial.Bytes())
				}
			}
		}
	}
	return in, nil
}

// filled makes one input. Drawn integers are 0 or 1, which are good as indices as well.
func (f files) filled(u WarmUpInput, shape []int, random *rng.Stream) (*tensor.Tensor, error) {
	if u.File != "" {
		return f.read(warmUpFolder, u.File, u.DType, shape)
	}
	t := tensor.New(u.DType, shape...)
	if !u.Random {
		return t, nil
	}
	switch u.DType {
	case tensor.Float32:
		random.FillUniform32(t.Float32s(), -1, 1)
	case tensor.Float64:
		for i := range t.Float64s() {
			t.Float64s()[i] = 2*float64(random.Float32()) - 1
		}
	case tensor.String, tensor.Float16, tensor.BFloat16: // zeros will do
	default:
		b, size := t.Bytes(), u.DType.Size()
		for i := 0; i < len(b); i += size {
			b[i] = byte(random.IntN(2))
		}
	}
	return t, nil
}
