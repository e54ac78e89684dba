package gradfixture

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"onnxrl/runtime/onnx"
	"onnxrl/runtime/tensor"
)

// Fixture is a directory read into memory.
type Fixture struct {
	Dir   string
	Model *onnx.Model
	// Inputs and Outputs go by the graph's names; Cotangents by the name of the output.
	Inputs, Outputs, Cotangents map[string]*tensor.Tensor
	// Params and InputGrads are the expected gradients, by the name of the initializer or input; the names in order of the files are in ParamNames and InputNames.
	Params, InputGrads     map[string]*tensor.Tensor
	ParamNames, InputNames []string
}

// Read loads a fixture. Errors name the file.
func Read(dir string) (*Fixture, error) {
	f, err := read(dir)
	if err != nil {
		return nil, fmt.Errorf("read fixture %s: %w", dir, err)
	}
	return f, nil
}

func read(dir string) (*Fixture, error) {
	m, err := onnx.Load(filepath.Join(dir, "model.onnx"))
	if err != nil {
		return nil, err
	}
	f := &Fixture{Dir: dir, Model: m}
	var inputs, outputs []string
	for _, v := range m.Graph.Inputs() {
		inputs = append(inputs, v.Name)
	}
	for _, v := range m.Graph.Output {
		outputs = append(outputs, v.Name)
	}
	data := filepath.Join(dir, "data")
	if f.Inputs, _, err = readNamed(data, "input_", inputs); err != nil {
		return nil, err
	}
	if f.Outputs, _, err = readNamed(data, "output_", outputs); err != nil {
		return nil, err
	}
	if f.Cotangents, _, err = readNamed(data, "cotangent_", outputs); err != nil {
		return nil, err
	}
	if f.Params, f.ParamNames, err = readNamed(data, "grad_param_", nil); err != nil {
		return nil, err
	}
	if f.InputGrads, f.InputNames, err = readNamed(data, "grad_input_", inputs); err != nil {
		return nil, err
	}
	return f, f.complete(inputs)
}

// complete checks that every file that the directory must have is there.
func (f *Fixture) complete(inputs []string) error {
	for _, in := range inputs {
		if f.Inputs[in] == nil {
			return fmt.Errorf("no data/input_*.pb for input %q", in)
		}
	}
	if len(f.Cotangents) == 0 {
		return fmt.Errorf("no data/cotangent_*.pb")
	}
	if len(f.Outputs) == 0 {
		return fmt.Errorf("no data/output_*.pb")
	}
	if len(f.Params)+len(f.InputGrads) == 0 {
		return fmt.Errorf("no data/grad_param_*.pb and no data/grad_input_*.pb: nothing to compare")
	}
	return nil
}

// readNamed reads data/<prefix><number>.pb in order of the numbers. A file goes by the name inside it when that is one of names, or when names is nil; else by the name
// at its number.
func readNamed(dir, prefix string, names []string) (map[string]*tensor.Tensor, []string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	type numbered struct {
		n    int
		path string
	}
	var files []numbered
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok {
			continue
		}
		digits, ok := strings.CutSuffix(rest, ".pb")
		if !ok {
			continue
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n < 0 {
			return nil, nil, fmt.Errorf("%s: expected a number between %q and .pb", e.Name(), prefix)
		}
		files = append(files, numbered{n, filepath.Join(dir, e.Name())})
	}
	slices.SortFunc(files, func(a, b numbered) int { return a.n - b.n })
	out := map[string]*tensor.Tensor{}
	var order []string
	for _, f := range files {
		name, t, err := onnx.ReadTensor(f.path)
		if err != nil {
			return nil, nil, err
		}
		if names != nil && !slices.Contains(names, name) {
			if f.n >= len(names) {
				return nil, nil, fmt.Errorf("%s: tensor %q belongs to none of %v", f.path, name, names)
			}
			name = names[f.n]
		}
		if name == "" {
			return nil, nil, fmt.Errorf("%s: the tensor has no name", f.path)
		}
		if out[name] != nil {
			return nil, nil, fmt.Errorf("%s: %q is given twice", f.path, name)
		}
		out[name] = t
		order = append(order, name)
	}
	return out, order, nil
}
