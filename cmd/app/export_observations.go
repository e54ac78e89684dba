package app

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
	"github.com/onnxrl/onnxrl/runtime/tensor/npy"
)

// recordedInput precedes the names of inputs in the recorded.npz of a Python folder.
const recordedInput = "input."

// compareFile compares both models on the rows of a file.
func (s *exportSource) compareFile(ctx context.Context, losses *bake.Losses, model *onnx.Model, path string) error {
	states, err := models.States(s.model)
	if err != nil {
		return err
	}
	if len(states) > 0 {
		return errors.New("the model remembers, and rows of a file do not tell where episodes begin: leave it out to compare in the environment")
	}
	inputs, rows, err := readObservations(path, s.model.Graph.Inputs())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	block := s.whole(exportBlock)
	for from := 0; from < rows; from += block {
		part := map[string]*tensor.Tensor{}
		n := min(block, rows-from)
		for name, t := range inputs {
			part[name] = t.Rows(from, from+n)
		}
		if err := addRest(model, part, n); err != nil {
			return err
		}
		if err := losses.Add(ctx, part, nil); err != nil {
			return fmt.Errorf("%s: rows %d to %d: %w", path, from, from+n-1, err)
		}
	}
	return nil
}

// readObservations reads rows for every input: the array of a .npy file for the only one, or those
// of a .npz file by the inputs' names.
func readObservations(path string, inputs []*onnx.ValueInfo) (_ map[string]*tensor.Tensor, rows int, err error) {
	arrays := map[string]*tensor.Tensor{}
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case ext == ".npz":
		if arrays, err = readArchive(path); err != nil {
			return nil, 0, err
		}
	case ext != ".npy":
		return nil, 0, errors.New("expected a .npy or .npz file")
	case len(inputs) != 1:
		return nil, 0, fmt.Errorf("the model has %d inputs, and a .npy file has one array: give a .npz file with an array for each", len(inputs))
	default:
		if arrays[inputs[0].Name], err = npy.ReadFile(path); err != nil {
			return nil, 0, err
		}
	}
	given := map[string]*tensor.Tensor{}
	rows = -1
	for _, v := range inputs {
		x := arrays[v.Name]
		if x == nil {
			x = arrays[recordedInput+v.Name]
		}
		if x == nil {
			return nil, 0, fmt.Errorf("there is no array %q; it has %q", v.Name, slices.Sorted(maps.Keys(arrays)))
		}
		t, _ := v.TensorType()
		fits := x.DType() == t.DType && x.Rank() == len(t.Dims) && x.Rank() > 0 && x.Shape()[0] > 0
		for i := 1; fits && i < x.Rank(); i++ {
			fits = !t.Dims[i].IsKnown() || t.Dims[i].Value == x.Shape()[i]
		}
		if !fits || rows >= 0 && x.Shape()[0] != rows {
			return nil, 0, fmt.Errorf("array %q is %v, expected at least one row of the input %v, as many for every input", v.Name, x, t)
		}
		given[v.Name], rows = x, x.Shape()[0]
	}
	return given, rows, nil
}

// readArchive reads the arrays of a .npz file.
func readArchive(path string) (_ map[string]*tensor.Tensor, err error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	arrays := map[string]*tensor.Tensor{}
	for _, file := range z.File {
		r, err := file.Open()
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, fmt.Errorf("array %q: %w", file.Name, err)
		}
		name := strings.TrimSuffix(file.Name, ".npy")
		if arrays[name], err = npy.Decode(b); err != nil {
			return nil, fmt.Errorf("array %q: %w", name, err)
		}
	}
	return arrays, nil
}
