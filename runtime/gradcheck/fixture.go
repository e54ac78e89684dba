package gradcheck

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Fixture is a directory read into memory.
type Fixture struct {
	Dir    string
	Model  *onnx.Model
	Points []*Point
}

// Point is a folder of tensors: inputs with what the model and its gradients must give for them.
type Point struct {
	// Name is that of the folder: data, data_2, …
	Name string
	// Inputs and Outputs go by the graph's names; Cotangents by the name of the output.
	Inputs, Outputs, Cotangents map[string]*tensor.Tensor
	// Params and InputGrads are the expected gradients, by the name of the initializer or input;
	// the names in order of the files are in ParamNames and InputNames.
	Params, InputGrads     map[string]*tensor.Tensor
	ParamNames, InputNames []string
}

// ReadFixture loads a fixture. Errors name the file.
func ReadFixture(dir string) (*Fixture, error) {
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
	folders, err := pointFolders(dir)
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		p, err := readPoint(m, dir, folder)
		if err != nil {
			return nil, err
		}
		f.Points = append(f.Points, p)
		if err := p.like(f.Points[0]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// pointFolders lists data, which must be there, and data_2, data_3, … in order of the numbers.
func pointFolders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	numbers := []int{}
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "data_")
		if !ok {
			continue
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n < 2 {
			return nil, fmt.Errorf("%s: expected a number from 2 on behind %q", e.Name(), "data_")
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	folders := []string{"data"}
	for _, n := range numbers {
		folders = append(folders, fmt.Sprintf("data_%d", n))
	}
	return folders, nil
}

func readPoint(m *onnx.Model, dir, folder string) (p *Point, err error) {
	p = &Point{Name: folder}
	var inputs, outputs []string
	for _, v := range m.Graph.Inputs() {
		inputs = append(inputs, v.Name)
	}
	for _, v := range m.Graph.Output {
		outputs = append(outputs, v.Name)
	}
	data := filepath.Join(dir, folder)
	if p.Inputs, _, err = readNamed(data, "input_", inputs); err != nil {
		return nil, err
	}
	if p.Outputs, _, err = readNamed(data, "output_", outputs); err != nil {
		return nil, err
	}
	if p.Cotangents, _, err = readNamed(data, "cotangent_", outputs); err != nil {
		return nil, err
	}
	if p.Params, p.ParamNames, err = readNamed(data, "grad_param_", nil); err != nil {
		return nil, err
	}
	if p.InputGrads, p.InputNames, err = readNamed(data, "grad_input_", inputs); err != nil {
		return nil, err
	}
	return p, p.complete(inputs)
}

// complete checks that every file that the folder must have is there.
func (p *Point) complete(inputs []string) error {
	for _, in := range inputs {
		if p.Inputs[in] == nil {
			return fmt.Errorf("no %s/input_*.pb for input %q", p.Name, in)
		}
	}
	if len(p.Cotangents) == 0 {
		return fmt.Errorf("no %s/cotangent_*.pb", p.Name)
	}
	if len(p.Outputs) == 0 {
		return fmt.Errorf("no %s/output_*.pb", p.Name)
	}
	if len(p.Params)+len(p.InputGrads) == 0 {
		return fmt.Errorf("no %s/grad_param_*.pb and no %s/grad_input_*.pb: nothing to compare", p.Name, p.Name)
	}
	return nil
}

// like checks that one program can serve p and the first point.
func (p *Point) like(first *Point) error {
	for _, name := range slices.Sorted(maps.Keys(first.Inputs)) {
		if have, want := p.Inputs[name], first.Inputs[name]; have.String() != want.String() {
			return fmt.Errorf("input %q is %v in %s and %v in %s: all points need the same shapes", name, want, first.Name, have, p.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Cotangents)) {
		if first.Cotangents[name] == nil {
			return fmt.Errorf("%s has a cotangent for output %q, %s has none", p.Name, name, first.Name)
		}
	}
	for _, name := range slices.Concat(p.ParamNames, p.InputNames) {
		if !slices.Contains(first.ParamNames, name) && !slices.Contains(first.InputNames, name) {
			return fmt.Errorf("%s has a gradient of %q, %s has none", p.Name, name, first.Name)
		}
	}
	if len(p.Cotangents) != len(first.Cotangents) {
		return fmt.Errorf("%s has %d cotangents, %s has %d", p.Name, len(p.Cotangents), first.Name, len(first.Cotangents))
	}
	return nil
}

// readNamed reads data/<prefix><number>.pb in order of the numbers. A file goes by the name inside
// it when that is one of names, or when names is nil; else by the name at its number.
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
