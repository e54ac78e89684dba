package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/safetensors"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Source is a set of named arrays that a network can start from. It is safe for concurrent use,
// except Close.
type Source struct {
	// Kind is "onnx", "safetensors", "checkpoint" or "artefact".
	Kind string
	// Name says what was read, for people: a path or a reference that stays valid.
	Name string
	// Digest identifies an artefact, as its descendants name it among their parents; empty for
	// other kinds.
	Digest string

	// arrays are sorted by name.
	arrays []array
	close  func() error
}

// array is one array of a source.
type array struct {
	name  string
	shape []int
	// spare arrays are copied where the network asks for their name, but nobody misses them: an
	// exporter's constants and integers.
	spare bool
	read  func() (*tensor.Tensor, error)
}

// Load reads the names and shapes of a source; see the package comment for what ref may be.
// References to artefacts without a store are looked up in the store given. Close the source after
// use.
func Load(ctx context.Context, ref, store string) (*Source, error) {
	s, err := load(ctx, ref, store)
	if err != nil {
		return nil, fmt.Errorf("load parameters from %s: %w", ref, err)
	}
	if !slices.ContainsFunc(s.arrays, func(a array) bool { return !a.spare }) {
		return nil, errors.Join(fmt.Errorf("load parameters from %s: it has none", ref), s.Close())
	}
	slices.SortFunc(s.arrays, func(a, b array) int { return strings.Compare(a.name, b.name) })
	return s, nil
}

func load(ctx context.Context, ref, store string) (*Source, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if ref == "" {
		return nil, errors.New("no source is given")
	}
	if !objects.IsReference(ref) && namesStore(ref) {
		return loadArtifact(ref, store)
	}
	ref, err := objects.Local(ref)
	if err != nil {
		return nil, err
	}
	st, err := os.Stat(ref)
	switch {
	case err == nil && st.IsDir():
		return loadDir(ref)
	case err == nil:
		return loadFile(ref)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	s, aerr := loadArtifact(ref, store)
	if aerr != nil && looksLikePath(ref) {
		return nil, err
	}
	return s, aerr
}

// namesStore reports whether ref begins with the directory of an artefact store. As a path,
// "store//name" would mean the folder name.
func namesStore(ref string) bool {
	i := strings.LastIndex(ref, "//")
	if i <= 0 || i+2 == len(ref) {
		return false
	}
	s, err := artifact.Open(ref[:i], artifact.Options{MustExist: true})
	return err == nil && s.Close() == nil
}

// looksLikePath tells a mistyped path from a mistyped reference.
func looksLikePath(ref string) bool {
	if strings.Contains(ref, "//") {
		return false
	}
	ext := filepath.Ext(ref)
	return filepath.IsAbs(ref) || strings.HasPrefix(ref, ".") || ext == ".onnx" || ext == ".safetensors"
}

func loadFile(path string) (*Source, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".onnx":
		return loadONNX(path)
	case ".safetensors":
		return loadSafetensors(path)
	default:
		return nil, fmt.Errorf("%s: expected a file .onnx or .safetensors, a checkpoint, a run directory or an artefact", filepath.Base(path))
	}
}

func loadONNX(path string) (*Source, error) {
	f, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	arrays, err := arraysOf(f.Model)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Source{Kind: "onnx", Name: path, arrays: arrays, close: f.Close}, nil
}

func loadArtifact(ref, store string) (*Source, error) {
	s, v, err := artifact.Find(ref, store)
	if err != nil {
		return nil, err
	}
	m, err := v.Model()
	if err != nil {
		return nil, err
	}
	arrays, err := arraysOf(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v, err)
	}
	return &Source{Kind: "artefact", Name: v.String(), Digest: v.Digest, arrays: arrays, close: s.Close}, nil
}

// arraysOf lists a model's weights, and its constants as spare ones.
func arraysOf(m *onnx.Model) ([]array, error) {
	if err := onnx.Check(m); err != nil {
		return nil, err
	}
	m, _, err := models.SplitMerged(m, nil)
	if err != nil {
		return nil, err
	}
	if m, _, err = models.InFloat32(m); err != nil {
		return nil, err
	}
	net, weights, err := models.FromModel(m, models.Options{})
	if err != nil {
		return nil, err
	}
	var list []array
	for _, s := range net.Specs {
		list = append(list, array{name: s.Name, shape: s.Shape, read: func() (*tensor.Tensor, error) { return weights[s.Name], nil }})
	}
	for _, p := range m.Graph.Initializer {
		if weights[p.Name] != nil || !tensor.DType(p.DataType).IsFloat() {
			continue
		}
		t, err := onnx.TensorOf(p)
		if err != nil {
			return nil, fmt.Errorf("initializer %q: %w", p.Name, err)
		}
		list = append(list, array{name: p.Name, shape: t.Shape(), spare: true, read: func() (*tensor.Tensor, error) { return t, nil }})
	}
	return list, nil
}

func loadSafetensors(path string) (*Source, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	s := &Source{Kind: "safetensors", Name: path, close: f.Close}
	for _, info := range f.Tensors() {
		floating := slices.Contains([]safetensors.DType{safetensors.F16, safetensors.BF16, safetensors.F32, safetensors.F64}, info.DType)
		s.arrays = append(s.arrays, array{name: info.Name, shape: info.Shape, spare: !floating, read: func() (*tensor.Tensor, error) { return f.Tensor(info.Name) }})
	}
	return s, nil
}

// Close frees what the source holds.
func (s *Source) Close() error {
	if s.close == nil {
		return nil
	}
	err := s.close()
	s.arrays, s.close = nil, nil
	return err
}

// Names lists the parameters that the source offers, sorted.
func (s *Source) Names() []string {
	var names []string
	for _, a := range s.arrays {
		if !a.spare {
			names = append(names, a.name)
		}
	}
	return names
}
