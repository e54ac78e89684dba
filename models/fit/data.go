package fit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models/dataset"
	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// openData opens the tables and puts loaders on their parts. A validation part of the same table
// shares what is kept of it in memory.
func (t *Trainer) openData() error {
	fields, err := t.g.fields(&t.cfg)
	if err != nil {
		return err
	}
	if err := t.limit(fields); err != nil {
		return err
	}
	open := func(path string) (*dataset.Mapping, error) {
		table, err := dataset.Open(path)
		if err != nil {
			return nil, err
		}
		t.tables = append(t.tables, table)
		return dataset.Map(table, fields, t.cfg.Data.Missing)
	}
	d := t.cfg.Data
	o := dataset.LoaderOptions{Split: dataset.Split{Fraction: d.Validation.Fraction, Tail: d.Validation.Tail, Seed: t.cfg.Seed}, Seed: t.cfg.Seed, Window: d.Window}
	if t.rows, err = open(d.Path); err != nil {
		return err
	}
	train := o
	train.Shuffle = d.Shuffle
	if d.Validation.Fraction > 0 {
		train.Part = dataset.Train
	}
	if t.train, err = dataset.NewLoader(t.rows, train); err != nil {
		return err
	}
	switch {
	case d.Validation.Path != "":
		rows, err := open(d.Validation.Path)
		if err != nil {
			return fmt.Errorf("validation: %w", err)
		}
		t.valid, err = dataset.NewLoader(rows, o)
		return err
	case d.Validation.Fraction > 0:
		o.Part = dataset.Validation
		t.valid, err = dataset.NewLoader(t.rows, o)
	}
	return err
}

// fields lists what the loader fills, in the order inputs, targets, weight; names are the graph's.
func (g *graphs) fields(cfg *Config) ([]dataset.Field, error) {
	types := map[string]onnx.TensorType{}
	for _, v := range g.eval.Model.Graph.Input {
		types[v.Name], _ = v.TensorType()
	}
	var fields []dataset.Field
	add := func(input string, columns []string) {
		t := types[input]
		f := dataset.Field{Name: input, Columns: columns, DType: t.DType, Shape: []int{}}
		for _, d := range t.Dims[1:] {
			f.Shape = append(f.Shape, d.Value)
		}
		fields = append(fields, f)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Data.Inputs)) {
		if !slices.Contains(g.served.Inputs, name) {
			return nil, fmt.Errorf("data.inputs: the model has no input %q; it has %s", name, strings.Join(g.served.Inputs, ", "))
		}
		add(name, cfg.Data.Inputs[name])
	}
	for _, name := range g.served.Inputs {
		if _, ok := cfg.Data.Inputs[name]; !ok {
			return nil, fmt.Errorf("data.inputs: no columns are given for the model's input %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Data.Targets)) {
		if !slices.ContainsFunc(cfg.Loss, func(t loss.Term) bool { return t.Output == name }) {
			return nil, fmt.Errorf("data.targets: there is no loss on an output %q; the model has the outputs %s", name, strings.Join(g.served.Outputs, ", "))
		}
		add(loss.TargetInput(name), cfg.Data.Targets[name])
	}
	for _, t := range cfg.Loss {
		if _, ok := cfg.Data.Targets[t.Output]; !ok {
			return nil, fmt.Errorf("data.targets: no columns are given for output %q, which has a loss", t.Output)
		}
	}
	if cfg.Data.Weight != "" {
		fields = append(fields, dataset.Field{Name: loss.WeightInput, Columns: []string{cfg.Data.Weight}, DType: tensor.Float32, Shape: []int{}})
	}
	return fields, nil
}
