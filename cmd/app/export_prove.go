package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

const (
	// recordedRows is the most rows that are written with a model, and goldenRows those that an
	// artefact keeps to verify it.
	recordedRows = 64
	goldenRows   = 4
	// int8Tolerance is what the outputs of quantised models may differ by between machines, |Δ| /
	// (1 + |y|).
	int8Tolerance = 0.05
)

// exportRows are rows of all inputs and what the exported model gives for them.
type exportRows struct{ inputs, outputs map[string]*tensor.Tensor }

// head returns the first rows.
func head(rows map[string]*tensor.Tensor, n int) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	for name, t := range rows {
		out[name] = t.Rows(0, min(n, t.Shape()[0]))
	}
	return out
}

// proveExport compares the published model with the trained one, and the exported one with the
// published, block by block. It returns decided rows of the first block.
func (a *app) proveExport(ctx context.Context, s *exportSource, model *onnx.Model, f *exportFlags, r *exportResult) (_ exportRows, err error) {
	pair := s.trained.pair
	// How often a policy is undecided is a question of what its environment shows: made-up
	// observations say nothing of it.
	pair.Choices, pair.AllowTies = s.choices, f.allowTies || s.golden != nil
	proof, err := bake.NewProver(s.engine, pair)
	if err != nil {
		return exportRows{}, err
	}
	defer func() { err = errors.Join(err, proof.Close()) }()
	var losses *bake.Losses
	if f.changes() {
		policy, err := s.lossPolicy()
		if err != nil {
			return exportRows{}, err
		}
		if losses, err = bake.NewLosses(s.engine, s.model, model, policy); err != nil {
			return exportRows{}, err
		}
		defer func() { err = errors.Join(err, losses.Close()) }()
	}
	r.Trained, r.Observations = "file", "made up"
	if s.trained.shown {
		r.Trained = "checkpoint"
	}
	switch {
	case s.recording != nil:
		r.Observations = "recorded"
	case s.golden != nil:
		r.Observations = "golden and made up"
	}
	var kept exportRows
	for block := 0; r.Rows < f.rows; block++ {
		shown, taken, begins, err := s.block(ctx, block, f)
		if err != nil {
			return kept, err
		}
		inputs := data(pair)
		samples, raw := inOrder(inputs, taken), []*tensor.Tensor(nil)
		if s.trained.shown {
			samples, raw = inOrder(inputs, shown), samples
		}
		if err := proof.Add(ctx, samples, raw, begins); err != nil {
			return kept, err
		}
		rows := samples[0].Shape()[0]
		r.Rows += rows
		if err := addRest(model, taken, rows); err != nil {
			return kept, err
		}
		if losses != nil && f.decisions.observations == "" {
			if err := losses.Add(ctx, taken, begins); err != nil {
				return kept, err
			}
		}
		if block == 0 {
			if k := s.goldenRows(); k > 0 {
				taken = head(taken, k) // the others would pass for observations
			}
			if kept, err = s.keep(ctx, model, taken); err != nil {
				return kept, err
			}
		}
		a.log.Info("proved", "rows", r.Rows, "of", f.rows)
	}
	if losses != nil {
		r.Compared = r.Observations
		if path := f.decisions.observations; path != "" {
			r.Compared = path
			if err := s.compareFile(ctx, losses, model, path); err != nil {
				return kept, fmt.Errorf("--observations: %w", err)
			}
		}
		l := losses.Loss()
		r.Loss = &l
	}
	r.Parity, err = proof.Report()
	return kept, err
}

// madeUpEpisode is how many rows in a row a model that remembers is given as an episode where there
// is no environment.
const madeUpEpisode = 16

// block returns the next observations by input, as the network in training is given them and as the
// model takes them, and of a model that remembers where episodes begin.
func (s *exportSource) block(ctx context.Context, n int, f *exportFlags) (shown, taken map[string]*tensor.Tensor, begins []bool, err error) {
	shown, taken = map[string]*tensor.Tensor{}, map[string]*tensor.Tensor{}
	if s.recording == nil {
		rows := s.whole(min(exportBlock, f.rows))
		begins = make([]bool, rows)
		for row := 0; row < rows; row += madeUpEpisode {
			begins[row] = true
		}
		if err := s.madeUp(taken, rng.New(f.seed).Split("block", n).Stream().Uint64(), rows, &f.bind); err != nil {
			return nil, nil, nil, err
		}
		if k := min(s.goldenRows(), rows); n == 0 && k > 0 {
			// Golden rows are the begins of episodes.
			for row := range min(k+1, rows) {
				begins[row] = true
			}
			for name, t := range s.golden.Inputs {
				if !slices.Equal(t.Shape()[1:], taken[name].Shape()[1:]) {
					return nil, nil, nil, fmt.Errorf("input %q: the golden values are %v, and --bind makes rows of %v", name, t, taken[name].Shape()[1:])
				}
				copy(taken[name].Rows(0, k).Bytes(), t.Rows(0, k).Bytes())
			}
		}
		return taken, taken, begins, nil
	}
	b, err := s.recording.Next(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	for i, name := range b.Inputs {
		shown[name], taken[name] = b.Shown[i], b.Shown[i]
		if b.Taken[i] != nil {
			taken[name] = b.Taken[i]
		}
	}
	return shown, taken, b.Begins, nil
}

// whole is at least n rows, as many as the model takes once or more.
func (s *exportSource) whole(n int) int {
	b := max(1, s.batch)
	return (n + b - 1) / b * b
}

// goldenRows is the number of rows that were recorded when the version was published, 0 where it
// has no rows in common.
func (s *exportSource) goldenRows() int {
	if s.golden == nil {
		return 0
	}
	return s.version.Manifest.Golden.Rows
}

// madeUp draws inputs: numbers normal, integers 0 or 1, masks without invalid actions, and states
// as an episode begins.
func (s *exportSource) madeUp(into map[string]*tensor.Tensor, seed uint64, rows int, bound *bindFlags) error {
	bind, err := bound.parse()
	if err != nil {
		return err
	}
	if err := addRest(s.model, into, rows); err != nil {
		return err
	}
	for _, v := range s.model.Graph.Inputs() {
		t, _ := v.TensorType()
		if into[v.Name] != nil {
			continue
		}
		kind := ""
		if t.DType == tensor.Bool {
			kind = "ones"
		}
		if t.Dims[0].IsKnown() {
			t.Dims[0] = onnx.Known(rows) // which are given as many at once as the model takes
			v = onnx.NewValueInfo(onnx.Value(v.Name), t)
		} else {
			bind[t.Dims[0].Param] = rows
		}
		x, err := makeInput(v, kind, seed, bind)
		if err != nil {
			return err
		}
		into[v.Name] = x
	}
	return nil
}

// inOrder lists tensors by name.
func inOrder(names []string, from map[string]*tensor.Tensor) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(names))
	for i, name := range names {
		out[i] = from[name]
	}
	return out
}

// addRest gives a model what no environment does: no noise, with which one that samples takes the
// best action, and states as an episode begins.
func addRest(m *onnx.Model, taken map[string]*tensor.Tensor, rows int) error {
	states, err := models.States(m)
	if err != nil {
		return err
	}
	for _, s := range states {
		taken[s.Input] = s.Tensor(rows)
	}
	for _, v := range m.Graph.Input {
		if t, _ := v.TensorType(); v.Name == bake.NoiseInput && taken[v.Name] == nil {
			taken[v.Name] = tensor.New(t.DType, rows, t.Dims[1].Value)
		}
	}
	return nil
}

// keep runs the exported model on a block and returns rows of it that are spread over the block
// and, where there are any, decided: another machine's rounding must not choose otherwise. Of a model
// that takes one number of rows, it returns the first of these.
func (s *exportSource) keep(ctx context.Context, model *onnx.Model, taken map[string]*tensor.Tensor) (_ exportRows, err error) {
	session, err := s.engine.Compile(model, engine.Options{})
	if err != nil {
		return exportRows{}, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	out := make([]*tensor.Tensor, len(session.Outputs()))
	var names []string
	for _, p := range session.Inputs() {
		names = append(names, p.Name)
	}
	if s.batch > 0 {
		taken = head(taken, s.batch)
	}
	in := inOrder(names, taken)
	if err := session.Run(ctx, out, in); err != nil {
		return exportRows{}, err
	}
	if s.batch > 0 {
		kept := exportRows{taken, map[string]*tensor.Tensor{}}
		for i, p := range session.Outputs() {
			kept.outputs[p.Name] = out[i]
		}
		return kept, nil
	}
	var rows []int
	for row := range in[0].Shape()[0] {
		decided := true
		for _, c := range s.choices {
			i := slices.IndexFunc(session.Outputs(), func(p engine.Port) bool { return p.Name == c.Scores })
			decided = decided && bake.LeastMargin(out[i].Rows(row, row+1).Float32s(), c.Heads) > bake.Margin
		}
		if decided {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		for row := range min(recordedRows, in[0].Shape()[0]) {
			rows = append(rows, row)
		}
	}
	rows = evenly(rows, recordedRows)
	kept := exportRows{map[string]*tensor.Tensor{}, map[string]*tensor.Tensor{}}
	for i, name := range names {
		kept.inputs[name] = pick(in[i], rows)
	}
	for i, p := range session.Outputs() {
		kept.outputs[p.Name] = pick(out[i], rows)
	}
	return kept, nil
}

// evenly chooses at most n elements at even distances.
func evenly(list []int, n int) []int {
	if len(list) <= n {
		return list
	}
	out := make([]int, n)
	for i := range out {
		out[i] = list[i*len(list)/n]
	}
	return out
}

// pick copies rows.
func pick(t *tensor.Tensor, rows []int) *tensor.Tensor {
	out := tensor.New(t.DType(), append([]int{len(rows)}, t.Shape()[1:]...)...)
	for i, row := range rows {
		copy(out.Rows(i, i+1).Bytes(), t.Rows(row, row+1).Bytes())
	}
	return out
}
