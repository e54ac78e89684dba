package served

import (
	"context"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/prefix"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Options say how observations reach the model.
type Options struct {
	// Tables have, by the name of a field that is a window, what its windows are taken from instead
	// of the environment's table: the same rows before they were scaled. They must not change any
	// more.
	Tables map[string]*tensor.Tensor
	// Newest have, by the name of a field that is a stack of observations, the shape of one: the
	// model is given the last, and remembers the others.
	Newest map[string][]int
	// Kept are inputs that are not observed but come out of caches of windows. The policy has one
	// row then.
	Kept []Kept
	// Actions, unless nil, makes the environment's actions of the model's, both float32 and of
	// equal number. It must not allocate.
	Actions func(to, from []float32)
}

// Kept is what a cache has of the windows of a field, which Tables may replace.
type Kept struct {
	Field string
	Cache *prefix.Cache
	// Inputs are the model's for the values of the cache, in their order.
	Inputs []string
}

// kept fills inputs from a cache.
type kept struct {
	index  int // of the field
	window *envs.Window
	cache  *prefix.Cache
	to     []*tensor.Tensor
	row    [1]int64
}

// take copies what is kept of the window that ends with a row.
func (k *kept) take(row int64) error {
	k.row[0] = row
	return k.cache.Gather(k.to, k.window, k.row[:])
}

// Actor chooses the model's greedy actions in environments of one description. It owns its policy.
type Actor struct {
	p      *Policy
	fields []field
	kept   []kept
	mask   *tensor.Tensor // the model's input, nil when it has none
	d      vector.Decision
	// action is the model's where convert makes that of the decision.
	action  *tensor.Tensor
	convert func(to, from []float32)
	// starts are the model's first choices of an action's elements, and counted has its actions
	// where these are not all 0, of which the decision's count from 0.
	starts  []int64
	counted *tensor.Tensor
	// floats are all outputs of float32, by index of their names.
	floats [][]float32
	names  []string
}

// field is a part of the observation that the model uses.
type field struct {
	name   string
	index  int            // in Spec.Observation
	to     *tensor.Tensor // the model's input
	rows   []*tensor.Tensor
	window *envs.Window // where windows are taken from; nil for the observation itself
	// starts are the model's first choices of a row's elements, where the environment's count from
	// 0; nil is 0 for all.
	starts []int64
}

var _ agents.Actor = (*Actor)(nil)

// NewActor checks that a policy and an environment fit and joins them. Errors name both shapes. The
// actor closes the policy, unless there is an error.
func NewActor(p *Policy, spec envs.Spec, o Options) (*Actor, error) {
	a, err := newActor(p, spec, o)
	if err != nil {
		return nil, fmt.Errorf("policy for environment %q: %w", spec.Name, err)
	}
	return a, nil
}

func newActor(p *Policy, spec envs.Spec, o Options) (*Actor, error) {
	a := &Actor{p: p, mask: p.Input(agents.MaskInput)}
	for name := range o.Tables {
		if i := spec.Observation.Index(name); i < 0 || spec.Observation[i].Window == nil {
			return nil, fmt.Errorf("a table is given for %q, which is no window of the observation", name)
		}
	}
	given := map[string]bool{}
	for _, k := range o.Kept {
		if p.rows != 1 {
			return nil, fmt.Errorf("what is kept of windows is for policies of one row, and this one has %d", p.rows)
		}
		own := kept{index: spec.Observation.Index(k.Field), cache: k.Cache}
		if own.index < 0 || spec.Observation[own.index].Window == nil {
			return nil, fmt.Errorf("something is kept of %q, which is no window of the observation", k.Field)
		}
		var err error
		if own.window, err = windowOf(spec.Observation[own.index], o.Tables); err != nil {
			return nil, err
		}
		for _, name := range k.Inputs {
			own.to, given[name] = append(own.to, p.Input(name)), true
		}
		a.kept = append(a.kept, own)
	}
	for _, name := range p.Inputs() {
		if name == agents.MaskInput || p.Remembers(name) || given[name] {
			continue
		}
		i := spec.Observation.Index(name)
		if i < 0 {
			return nil, fmt.Errorf("the model has an input %q, and the observation only %s", name, names(spec.Observation))
		}
		f := field{name: name, index: i, to: p.Input(name)}
		space := spec.Observation[i].Space
		shape := space.Shape()
		if newest, ok := o.Newest[name]; ok {
			n, err := tensor.Len(newest)
			if all, _ := tensor.Len(shape); err != nil || n < 1 || all%n != 0 {
				return nil, fmt.Errorf("observation %q is %v, which is no stack of %v", name, shape, newest)
			}
			shape = newest
		}
		if err := fits("input "+name, f.to, space.DType(), shape); err != nil {
			return nil, err
		}
		if spec.Observation[i].Window != nil {
			var err error
			if f.window, err = windowOf(spec.Observation[i], o.Tables); err != nil {
				return nil, err
			}
		}
		var err error
		if f.starts, err = starts(p, "input", name, space); err != nil {
			return nil, err
		}
		for r := range p.rows {
			f.rows = append(f.rows, f.to.Rows(r, r+1).Reshape(shape...))
		}
		a.fields = append(a.fields, f)
	}
	switch n := envs.MaskLen(spec.Action); {
	case a.mask == nil && spec.Masked:
		return nil, fmt.Errorf("the environment masks its actions, and the model has no input %q bool[batch %d]", agents.MaskInput, n)
	case a.mask != nil:
		if err := fits("input "+agents.MaskInput, a.mask, tensor.Bool, []int{n}); err != nil {
			return nil, err
		}
		for i := range a.mask.Bools() {
			a.mask.Bools()[i] = true
		}
		if !spec.Masked {
			a.mask = nil
		}
	}
	a.d.Actions = p.Output(agents.ActionOutput)
	if err := fits("output "+agents.ActionOutput, a.d.Actions, spec.Action.DType(), spec.Action.Shape()); err != nil {
		return nil, err
	}
	var err error
	if a.starts, err = starts(p, "output", agents.ActionOutput, spec.Action); err != nil {
		return nil, err
	}
	if a.starts != nil {
		a.counted, a.d.Actions = a.d.Actions, tensor.New(tensor.Int64, a.d.Actions.Shape()...)
	}
	if o.Actions != nil {
		if a.d.Actions.DType() != tensor.Float32 {
			return nil, fmt.Errorf("the model's actions are %v; only float32 is converted", a.d.Actions)
		}
		a.action, a.convert, a.d.Actions = a.d.Actions, o.Actions, tensor.New(tensor.Float32, a.d.Actions.Shape()...)
	}
	if v := p.Output(agents.ValueOutput); v != nil {
		if err := fits("output "+agents.ValueOutput, v, tensor.Float32, nil); err != nil {
			return nil, err
		}
		a.d.Value = v.Float32s()
	}
	a.distribution(envs.MaskLen(spec.Action))
	return a, nil
}

// distribution finds the outputs of floats, and those that say what the policy would draw from; n is
// the length of a mask.
func (a *Actor) distribution(n int) {
	for _, name := range a.p.Outputs() {
		t := a.p.Output(name)
		if t.DType() != tensor.Float32 {
			continue
		}
		a.names, a.floats = append(a.names, name), append(a.floats, t.Float32s())
		switch {
		case name == agents.LogProbsOutput && t.Len() == n*a.p.rows:
			a.d.Logits = t
		case name == agents.MeanOutput:
			a.d.Mean = t.Float32s()
		case name == agents.LogStdOutput:
			a.d.LogStd = t.Float32s()
		}
	}
}

// defined returns an error where the model has given NaN for a row that is present: the action would
// still be one, and mean nothing.
func (a *Actor) defined(present []bool) error {
	for i, all := range a.floats {
		n := len(all) / a.p.rows
		for k, x := range all {
			if x != x && (present == nil || present[k/n]) {
				return fmt.Errorf("output %q of the model is NaN at element %d", a.names[i], k%n)
			}
		}
	}
	return nil
}

// taskKey is the metadata key that exported policies have.
const taskKey = "onnxrl.task"

// starts are the first choices of a port of the model, in whose place the environment's values have
// 0; nil where they are 0. What a model says of its spaces must be what the environment has; one
// that says nothing has the environment's numbers, unless it was exported when they were lost.
func starts(p *Policy, side, port string, s envs.Space) ([]int64, error) {
	spaces, err := artifact.ParseSpaces(p.meta[artifact.SpacesKey])
	if err != nil {
		return nil, err
	}
	own, says := spaces.Inputs[port]
	if side == "output" {
		own, says = spaces.Outputs[port]
	}
	have := envs.Starts(s)
	switch {
	case says && !slices.Equal(own.Start, have):
		return nil, fmt.Errorf("%s %s: the model's choices begin at %v, and the environment's are %v", side, port, own.Start, s)
	case !says && have != nil && p.meta[taskKey] != "":
		return nil, fmt.Errorf("%s %s: the environment's choices are %v, and the model was exported by a release that counted them from 0; publish the run again", side, port, s)
	}
	return have, nil
}

// shift adds starts, or takes them away, from whole rows of choices.
func shift(list, starts []int64, sign int64) {
	for i := range list {
		list[i] += sign * starts[i%len(starts)]
	}
}

// windowOf is where the windows of a field are taken from.
func windowOf(f envs.Field, tables map[string]*tensor.Tensor) (*envs.Window, error) {
	w, t := f.Window, tables[f.Name]
	if t == nil {
		return w, nil
	}
	if t.DType() != w.Table().DType() || !slices.Equal(t.Shape(), w.Table().Shape()) {
		return nil, fmt.Errorf("the table for %q is %v, the environment's is %v", f.Name, t, w.Table())
	}
	return envs.NewWindow(t, w.Len())
}

// take copies a batch of observations, of stacks the last one.
func (f *field) take(b *tensor.Tensor) error {
	rows := len(f.rows)
	all, one := b.Bytes(), f.to.Bytes()
	if b.DType() != f.to.DType() || len(all) < len(one) || b.Shape()[0] != rows {
		return fmt.Errorf("%v for the input %v", b, f.to)
	}
	from, to := len(all)/rows, len(one)/rows
	for row := range rows {
		copy(one[row*to:(row+1)*to], all[(row+1)*from-to:])
	}
	if f.starts != nil {
		shift(f.to.Int64s(), f.starts, 1)
	}
	return nil
}

// fits compares a buffer of the model with what the environment has for a row.
func fits(what string, have *tensor.Tensor, d tensor.DType, shape []int) error {
	if have.DType() != d || !slices.Equal(have.Shape()[1:], shape) {
		return fmt.Errorf("%s is %v%v of the batch in the model, and the environment's is %v%v", what, have.DType(), have.Shape()[1:], d, shape)
	}
	return nil
}

func names(d envs.Dict) []string {
	out := make([]string, len(d))
	for i, f := range d {
		out[i] = f.Name
	}
	return out
}

// Policy returns the policy, whose buffers hold the last decision.
func (a *Actor) Policy() *Policy { return a.p }

// Act implements vector.Policy. The batch must have the policy's number of rows. The key is not
// used: the model takes the best action. A model that remembers begins again where an episode
// does. NaN in an output is an error.
func (a *Actor) Act(_ context.Context, _ rng.Key, b *vector.Batch) (*vector.Decision, error) {
	for row, t := range b.Type[:min(len(b.Type), a.p.rows)] {
		// Behind the last step of an episode the batch shows the first of the next.
		if t != envs.Mid {
			a.p.Begin(row)
		}
	}
	for i := range a.fields {
		f := &a.fields[i]
		if f.window == nil {
			if err := f.take(b.Obs[f.index]); err != nil {
				return nil, fmt.Errorf("observation %q: %w", f.name, err)
			}
			continue
		}
		if len(b.Rows[f.index]) != a.p.rows {
			return nil, fmt.Errorf("observation %q: %d rows for a policy of %d", f.name, len(b.Rows[f.index]), a.p.rows)
		}
		for r, last := range b.Rows[f.index] {
			copy(f.rows[r].Bytes(), f.window.At(int(last)).Bytes())
		}
	}
	for i := range a.kept {
		k := &a.kept[i]
		if err := k.take(b.Rows[k.index][0]); err != nil {
			return nil, err
		}
	}
	if a.mask != nil {
		if err := a.mask.CopyFrom(b.Mask); err != nil {
			return nil, fmt.Errorf("mask: %w", err)
		}
	}
	d, err := a.Decide()
	if err != nil {
		return nil, err
	}
	return d, a.defined(b.Present)
}

// Observe copies a step's observation and mask into a row of the inputs, for programs that hold
// environments one by one; Decide then runs the model. A first step begins an episode. It allocates
// nothing.
func (a *Actor) Observe(row int, ts *envs.TimeStep) error {
	if ts.Type == envs.First {
		a.p.Begin(row)
	}
	for i := range a.fields {
		f := &a.fields[i]
		from := ts.Obs[f.index]
		if f.window != nil {
			from = f.window.At(int(ts.Rows[f.index]))
		}
		all, one := from.Bytes(), f.rows[row].Bytes()
		if from.DType() != f.to.DType() || len(all) < len(one) {
			return fmt.Errorf("observation %q: %v for the input %v", f.name, from, f.to)
		}
		copy(one, all[len(all)-len(one):])
		if f.starts != nil {
			shift(f.rows[row].Int64s(), f.starts, 1)
		}
	}
	for i := range a.kept {
		k := &a.kept[i]
		if err := k.take(ts.Rows[k.index]); err != nil {
			return err
		}
	}
	if a.mask != nil {
		n := a.mask.Len() / a.p.rows
		if m := ts.Mask.Bools(); copy(a.mask.Bools()[row*n:(row+1)*n], m) != n || len(m) != n {
			return fmt.Errorf("mask: %d elements, expected %d", len(m), n)
		}
	}
	return nil
}

// Decide runs the model on the inputs as they are, and keeps what it remembers for the next
// decision. What it returns is valid until the next call; it allocates nothing.
func (a *Actor) Decide() (*vector.Decision, error) {
	if err := a.p.Run(); err != nil {
		return nil, err
	}
	a.p.Advance()
	if a.starts != nil {
		copy(a.d.Actions.Int64s(), a.counted.Int64s())
		shift(a.d.Actions.Int64s(), a.starts, -1)
	}
	if a.convert != nil {
		a.convert(a.d.Actions.Float32s(), a.action.Float32s())
	}
	return &a.d, nil
}

// Unconverted returns the actions of the last decision as the model gave them, before
// Options.Actions; nil where these are none.
func (a *Actor) Unconverted() []float32 {
	if a.convert == nil {
		return nil
	}
	return a.action.Float32s()
}

// Remembers implements vector.Policy.
func (a *Actor) Remembers() bool { return len(a.p.states) > 0 }

// Sync does nothing: an exported policy does not change.
func (a *Actor) Sync(context.Context) error { return nil }

// Close closes the policy.
func (a *Actor) Close() error { return a.p.Close() }
