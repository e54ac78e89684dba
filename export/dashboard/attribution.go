package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Attribution explains decisions by the gradient of what was chosen by the inputs, one at a time. It
// calls open, whose engine runs models of unknown origin, for every question.
func Attribution(open func(context.Context) (engine.Compiler, error)) Explainer {
	var turn sync.Mutex
	return func(ctx context.Context, q Question) (*Explanation, error) {
		turn.Lock()
		defer turn.Unlock()
		eng, err := open(ctx)
		if err != nil {
			return nil, err
		}
		return explain(ctx, eng, q)
	}
}

// Outputs of a policy, which package agents describes: its action, and of discrete ones the logarithm of
// the probability or the value of every option.
const (
	actionOutput   = "action"
	logProbsOutput = "log_probs"
	valuesOutput   = "q_values"
)

const (
	// explainCotangent is the graph input that says what gradients are of.
	explainCotangent = "explain/cotangent"
	// shownValues and shownInfluences are the most of a list on the page.
	shownValues     = 64
	shownInfluences = 20
)

// decisionNames are the words for the elements of a trading policy's inputs, as its manifest has
// them.
type decisionNames struct {
	Assets   []string `json:"assets"`
	Features []struct {
		Name string `json:"name"`
	} `json:"features"`
	Actions []string `json:"actions"`
}

// explain answers a question: what was recorded, and the gradient of the logarithm of the
// chosen action's probability, or of a continuous action, by the inputs.
func explain(ctx context.Context, eng engine.Compiler, q Question) (_ *Explanation, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("explain a decision of %s: %w", artifact.Short(q.Version), err)
		}
	}()
	s, err := artifact.Open(q.Store, artifact.Options{MustExist: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	v, err := s.Resolve(q.Version)
	if err != nil {
		return nil, err
	}
	g, err := v.Golden()
	if err != nil {
		return nil, err
	}
	if g == nil {
		return nil, unexplainable("it was published without recorded decisions")
	}
	d := (&decision{version: v, golden: g, row: q.Row}).named()
	if d.rows = v.Manifest.Golden.Rows; q.Row >= d.rows {
		return nil, unexplainable("row %d: expected one of %d recorded decisions, from 0 on", q.Row, d.rows)
	}
	e := &Explanation{Version: v.String(), Rows: d.rows, Row: q.Row, Head: q.Head, Inputs: []ExplainedInput{}, Influences: []Influence{}, Notes: []string{}}
	m, err := v.Model()
	if err != nil {
		return nil, err
	}
	if e.Heads, err = d.heads(m); err != nil {
		return nil, err
	}
	if q.Head >= len(e.Heads) {
		return nil, unexplainable("head %d: expected one of %d actions, from 0 on", q.Head, len(e.Heads))
	}
	if value := g.Outputs["value"]; value != nil && value.Len() >= d.rows {
		x := float64(value.Rows(q.Row, q.Row+1).Float32s()[0])
		e.Value = &x
	}
	gradients, err := d.gradients(ctx, eng, m, e, q.Head)
	if err != nil {
		return nil, err
	}
	for _, p := range v.Manifest.Inputs {
		t := g.Inputs[p.Name].Rows(q.Row, q.Row+1)
		in := ExplainedInput{Name: p.Name, Shape: t.Shape()[1:], Description: p.Description, Values: []float64{}}
		values, ok := elements(t)
		if !ok {
			e.Notes = append(e.Notes, fmt.Sprintf("%s has elements of type %v, which are not shown", p.Name, t.DType()))
			continue
		}
		gradient := gradients[p.Name]
		n := 0.0
		in.Min, in.Max = math.Inf(1), math.Inf(-1)
		for i, x := range values {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				in.Missing++
				continue
			}
			n++
			in.Min, in.Max, in.Mean = min(in.Min, x), max(in.Max, x), in.Mean+x
			if i < len(gradient) {
				product := x * gradient[i]
				in.Gradient += math.Abs(product)
				if gradient[i] != 0 && !math.IsNaN(product) && !math.IsInf(product, 0) {
					e.Influences = append(e.Influences, Influence{Input: p.Name, Element: i, Label: d.label(p.Name, t.Shape()[1:], i), Value: x, Gradient: gradient[i], Product: product})
				}
			}
			if len(in.Values) < shownValues {
				in.Values, in.Labels = append(in.Values, x), append(in.Labels, d.label(p.Name, t.Shape()[1:], i))
			}
		}
		if n > 0 {
			in.Mean /= n
		} else {
			in.Min, in.Max = 0, 0
		}
		if math.IsNaN(in.Gradient) || math.IsInf(in.Gradient, 0) {
			return nil, fmt.Errorf("the gradient by %s is no number", p.Name)
		}
		e.Inputs = append(e.Inputs, in)
	}
	slices.SortStableFunc(e.Influences, func(x, y Influence) int { return cmp.Compare(math.Abs(y.Product), math.Abs(x.Product)) })
	e.Influences = e.Influences[:min(len(e.Influences), shownInfluences)]
	return e, nil
}

// decision is one recorded decision of a version.
type decision struct {
	version   artifact.Version
	golden    *artifact.Golden
	names     decisionNames
	row, rows int
	// of is the output that gradients are of, width how many elements a row of it has, and offset
	// where each head begins in it.
	of     string
	width  int
	offset []int
}

// named has the words of the version's features.
func (d *decision) named() *decision {
	if features := d.version.Manifest.Features; len(features) > 0 {
		// Those of other environments have other fields, and their elements numbers for names.
		_ = json.Unmarshal(features, &d.names)
	}
	return d
}

// heads are the actions that the decision consists of.
func (d *decision) heads(m *onnx.Model) ([]ExplainedHead, error) {
	action := d.golden.Outputs[actionOutput]
	if action == nil {
		return nil, unexplainable("the model has no output %s", actionOutput)
	}
	actions, ok := elements(action.Rows(d.row, d.row+1))
	if !ok {
		return nil, unexplainable("actions of type %v cannot be shown", action.DType())
	}
	var heads []ExplainedHead
	discrete := action.DType() == tensor.Int64
	for _, name := range []string{logProbsOutput, valuesOutput} {
		if discrete && d.of == "" && d.golden.Outputs[name] != nil {
			d.of = name
		}
	}
	if d.of == "" {
		for i, x := range actions {
			d.offset = append(d.offset, i)
			heads = append(heads, ExplainedHead{Name: d.headName(i, len(actions)), Options: []string{}, Allowed: []bool{}, Probabilities: []float64{}, Value: &x})
		}
		if action.DType() == tensor.Float32 {
			d.of, d.width = actionOutput, len(actions)
		}
		return heads, nil
	}
	scores, _ := elements(d.golden.Outputs[d.of].Rows(d.row, d.row+1))
	d.width = len(scores)
	info := map[string]string{}
	for _, p := range m.MetadataProps {
		info[p.Key] = p.Value
	}
	sizes, err := headSizes(info[bake.MetaPrefix+"heads"], len(actions), len(scores))
	if err != nil {
		return nil, err
	}
	spaces, err := artifact.ParseSpaces(info[artifact.SpacesKey])
	if err != nil {
		return nil, err
	}
	starts := spaces.Outputs[actionOutput].Start
	mask, at := d.mask(len(scores)), 0
	for i, x := range actions {
		size, start := sizes[i], 0
		if i < len(starts) {
			start = int(starts[i])
		}
		d.offset = append(d.offset, at)
		h := ExplainedHead{Name: d.headName(i, len(actions)), Chosen: int(x) - start}
		if h.Chosen < 0 || h.Chosen >= size {
			return nil, fmt.Errorf("action %d is %v, expected one of %d, from %d on", i, x, size, start)
		}
		for j := range size {
			h.Options = append(h.Options, d.option(j, size, start))
			h.Allowed = append(h.Allowed, mask == nil || mask[at+j] != 0)
			p := 0.0
			switch {
			case d.of == logProbsOutput:
				p = math.Exp(scores[at+j])
			case j == h.Chosen:
				p = 1 // Of values, the greatest is taken.
			}
			h.Probabilities = append(h.Probabilities, p)
		}
		if d.of == valuesOutput {
			h.Scores = scores[at:][:size]
		}
		at += size
		heads = append(heads, h)
	}
	return heads, nil
}

// headSizes are the numbers of alternatives of n actions, which a text of numbers with commas says,
// or which are equal where there is none. They are all alternatives together.
func headSizes(text string, n, all int) ([]int, error) {
	var sizes []int
	sum := 0
	if text == "" && n > 0 {
		for range n {
			sizes, sum = append(sizes, all/n), sum+all/n
		}
	}
	for part := range strings.SplitSeq(text, ",") {
		if k, err := strconv.Atoi(part); err == nil && text != "" {
			sizes, sum = append(sizes, k), sum+k
		}
	}
	if len(sizes) != n || sum != all {
		return nil, fmt.Errorf("%d probabilities or values do not divide into %d actions (of %q alternatives)", all, n, text)
	}
	return sizes, nil
}

// mask is nil without one.
func (d *decision) mask(n int) []float64 {
	t := d.golden.Inputs["mask"]
	if t == nil {
		return nil
	}
	values, ok := elements(t.Rows(d.row, d.row+1))
	if !ok || len(values) != n {
		return nil
	}
	return values
}

func (d *decision) headName(i, n int) string {
	switch {
	case n == 1:
		return "action"
	case i < len(d.names.Assets) && (n == len(d.names.Assets) || n == len(d.names.Assets)+1):
		return d.names.Assets[i]
	case n == len(d.names.Assets)+1:
		return "cash"
	}
	return fmt.Sprintf("action %d", i)
}

func (d *decision) option(j, n, start int) string {
	if n == len(d.names.Actions) {
		return d.names.Actions[j]
	}
	if _, ok := d.version.Manifest.Info["experts[0]_sha256"]; ok {
		return fmt.Sprintf("expert %d", j)
	}
	return fmt.Sprint(j + start)
}

// label names an element of an input: of windows by asset, feature and bar, the last of which is 0.
func (d *decision) label(input string, shape []int, i int) string {
	n := len(d.names.Assets)
	switch {
	case len(shape) == 3 && shape[1] == n && shape[2] == len(d.names.Features):
		f, asset, bar := i%shape[2], i/shape[2]%shape[1], i/shape[2]/shape[1]-shape[0]+1
		return fmt.Sprintf("%s %s, bar %d", d.names.Assets[asset], d.names.Features[f].Name, bar)
	case len(shape) == 1 && shape[0] == n && n > 0:
		return input + " " + d.names.Assets[i]
	case len(shape) == 1 && shape[0] == 1:
		return input
	}
	var at []string
	for k := len(shape) - 1; k >= 0; k-- {
		at = append(at, fmt.Sprint(i%shape[k]))
		i /= shape[k]
	}
	slices.Reverse(at)
	return input + "[" + strings.Join(at, ",") + "]"
}

// gradients are those by the floating-point inputs, and by those of whole numbers that the model
// takes for floating-point numbers, such as pixels. What they are of is written into e, and where
// there are none, why.
func (d *decision) gradients(ctx context.Context, eng engine.Compiler, m *onnx.Model, e *Explanation, head int) (_ map[string][]float64, err error) {
	h := e.Heads[head]
	if d.of == "" {
		e.Notes = append(e.Notes, "the model tells neither probabilities nor values of its actions: nothing says what changes them")
		return nil, nil
	}
	var wrt []string
	bind, widened := map[string]int{}, map[string]bool{}
	for _, p := range d.version.Manifest.Inputs {
		switch {
		case p.DType == tensor.Float32.String():
			wrt = append(wrt, p.Name)
		case widen(m, p.Name):
			widened[p.Name] = true
			wrt = append(wrt, p.Name)
		}
		for _, axis := range p.Axes {
			if axis != "" {
				bind[axis] = 1
			}
		}
	}
	if len(wrt) == 0 {
		e.Notes = append(e.Notes, "all inputs are choices or flags, by which there is no gradient: nothing says what changes the decision most")
		return nil, nil
	}
	grad, err := autodiff.Grad(m, autodiff.Options{
		Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: d.of, Cotangent: explainCotangent}}, Wrt: wrt}}, Bind: bind, DropOutputs: true,
	})
	if err != nil {
		return nil, err
	}
	session, err := eng.Compile(grad.Model, engine.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	at := d.offset[head]
	switch d.of {
	case logProbsOutput:
		at += h.Chosen
		e.Objective = fmt.Sprintf("the logarithm of the probability of %s for %s", h.Options[h.Chosen], h.Name)
	case valuesOutput:
		at += h.Chosen
		e.Objective = fmt.Sprintf("the estimated return of %s for %s", h.Options[h.Chosen], h.Name)
	default:
		e.Objective = "the value of " + h.Name
	}
	cotangent := tensor.New(tensor.Float32, 1, d.width)
	cotangent.Float32s()[at] = 1
	in := make([]*tensor.Tensor, len(session.Inputs()))
	for i, p := range session.Inputs() {
		if p.Name == explainCotangent {
			in[i] = cotangent
		} else if t := d.golden.Inputs[p.Name]; t != nil {
			if in[i] = t.Rows(d.row, d.row+1); widened[p.Name] {
				in[i] = floats(in[i])
			}
		} else {
			return nil, fmt.Errorf("the input %q was not recorded", p.Name)
		}
	}
	out, err := engine.Run(ctx, session, in...)
	if err != nil {
		return nil, err
	}
	byName := map[string]*tensor.Tensor{}
	for i, p := range session.Outputs() {
		byName[p.Name] = out[i]
	}
	gradients := map[string][]float64{}
	for _, o := range grad.Outputs[0] {
		if o.Unreached {
			e.Notes = append(e.Notes, o.Wrt+" has no influence")
			continue
		}
		gradients[o.Wrt], _ = elements(byName[o.Name])
	}
	return gradients, nil
}

// widen makes an input of whole numbers one of float32 where every node that reads it makes that of
// it anyway, and reports whether it has.
func widen(m *onnx.Model, name string) bool {
	readers := 0
	for _, n := range m.Graph.Node {
		for _, a := range n.Attribute {
			if a.G != nil || len(a.Graphs) > 0 {
				return false // It may be read within.
			}
		}
		for _, in := range n.Input {
			if in != name {
				continue
			}
			if n.OpType != "Cast" || n.Domain != "" || !slices.ContainsFunc(n.Attribute, func(a *onnx.Attribute) bool { return a.Name == "to" && a.I == int64(tensor.Float32) }) {
				return false
			}
			readers++
		}
	}
	for _, in := range m.Graph.Input {
		if t := in.GetType().GetTensorType(); in.Name == name && t != nil && readers > 0 {
			t.ElemType = int32(tensor.Float32)
			return true
		}
	}
	return false
}

// floats are the elements of a tensor as float32.
func floats(t *tensor.Tensor) *tensor.Tensor {
	f := tensor.New(tensor.Float32, t.Shape()...)
	values, _ := elements(t)
	for i, v := range values {
		f.Float32s()[i] = float32(v)
	}
	return f
}

// elements are those of a tensor; ok is false for those that are none.
func elements(t *tensor.Tensor) (list []float64, ok bool) {
	list = make([]float64, t.Len())
	switch t.DType() {
	case tensor.Float32:
		for i, v := range t.Float32s() {
			list[i] = float64(v)
		}
	case tensor.Float64:
		copy(list, t.Float64s())
	case tensor.Int64:
		for i, v := range t.Int64s() {
			list[i] = float64(v)
		}
	case tensor.Uint8:
		for i, v := range tensor.Data[uint8](t) {
			list[i] = float64(v)
		}
	case tensor.Bool:
		for i, v := range t.Bools() {
			if v {
				list[i] = 1
			}
		}
	default:
		return nil, false
	}
	return list, true
}
