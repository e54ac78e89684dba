package shape

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// runBody infers a sub-graph whose inputs have the given facts, merged with what the sub-graph
// declares for them. It returns the facts of its outputs.
func (c *call) runBody(name string, g *onnx.Graph, in []Fact) ([]Fact, error) {
	b, err := c.env.child(g)
	if err != nil {
		return nil, err
	}
	if len(in) != len(g.Input) {
		return nil, fmt.Errorf("%s has %d inputs, the node gives it %d", name, len(g.Input), len(in))
	}
	for i, f := range in {
		v := g.Input[i]
		d := b.facts[v.GetName()]
		if d.Type.DType != 0 && f.Type.DType != 0 && d.Type.DType != f.Type.DType {
			return nil, fmt.Errorf("input %d %q of %s is declared %v, but gets %v", i, v.GetName(), name, d.Type, f.Type)
		}
		// The types that come in decide: exporters declare the extents of one trace.
		if f.Type.DType == tensor.Undefined {
			f.Type.DType = d.Type.DType
		}
		b.Set(onnx.Value(v.GetName()), f)
	}
	if err := b.applyAll(g.Node); err != nil {
		return nil, err
	}
	out := make([]Fact, len(g.Output))
	for i, o := range g.Output {
		f, s := b.find(o.GetName())
		if f == nil {
			return nil, fmt.Errorf("output %q of %s is not computed by any node", o.GetName(), name)
		}
		s.load(o.GetName(), f)
		out[i] = *f
	}
	return out, nil
}

func (c *call) body(name string) (*onnx.Graph, error) {
	a := c.attr(name, onnx.AttributeProto_GRAPH)
	if a == nil || a.G == nil {
		return nil, fmt.Errorf("attribute %q is missing", name)
	}
	return a.G, nil
}

// ifElse joins the types of both branches; where the condition is known, only the branch that is
// taken counts.
func ifElse(c *call) error {
	var facts [2][]Fact
	names := [2]string{"else_branch", "then_branch"}
	taken := -1
	if v, ok := c.number(0); ok {
		taken = min(v, 1)
	}
	out := c.out
	for i, name := range names {
		g, err := c.body(name)
		if err != nil {
			return err
		}
		if len(g.Output) != len(out) {
			return fmt.Errorf("%s has %d outputs, the node %d", name, len(g.Output), len(out))
		}
		if taken == 1-i {
			continue
		}
		if facts[i], err = c.runBody(name, g, nil); err != nil {
			return err
		}
	}
	for i := range out {
		if taken >= 0 {
			out[i] = facts[taken][i]
			continue
		}
		f, err := join(facts[0][i], facts[1][i])
		if err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
		out[i] = f
	}
	return nil
}

// plain forgets content: a value that a loop carries changes from one iteration to the next.
func plain(f Fact) Fact { return Fact{Type: f.Type, Kind: f.Kind} }

// carry infers a loop body until the types of carried values no longer change. carried are the
// initial types, replaced by the final ones; run infers the body for given types and returns all
// its outputs, of which those from first on are the carried ones. Values that must keep their type
// over all iterations are combined with merge, others with join.
func (c *call) carry(carried []Fact, first int, combine func(a, b Fact) (Fact, error), run func([]Fact) ([]Fact, error)) (out []Fact, err error) {
	for i := range carried {
		carried[i] = plain(carried[i])
	}
	// Each round can only forget: an extent, a rank, an element type never becomes more precise.
	// Two rounds settle nearly all loops.
	for round := range 2*maxRank + 4 {
		if out, err = run(carried); err != nil {
			return nil, err
		}
		if len(out) < first+len(carried) {
			return nil, fmt.Errorf("the body has %d outputs, at least %d are needed", len(out), first+len(carried))
		}
		changed := false
		for i, f := range carried {
			j, err := combine(f, out[first+i])
			if err != nil {
				return nil, fmt.Errorf("carried value %d: %w", i, err)
			}
			if round >= 4 && !sameFact(f, j) {
				// A rank that settles slowly is not worth more rounds.
				j.Type.Ranked, j.Type.Dims = false, nil
			}
			if !sameFact(f, j) {
				carried[i], changed = j, true
			}
		}
		if !changed {
			return out, nil
		}
	}
	return nil, errors.New("the types of carried values do not settle")
}

// keep combines the types of a state whose shape must not change from one iteration to the next.
func keep(a, b Fact) (Fact, error) {
	if a.Kind != b.Kind {
		return a, fmt.Errorf("it is once a %v and once a %v", a.Kind, b.Kind)
	}
	t, err := merge(a.Type, b.Type)
	return Fact{Kind: a.Kind, Type: t}, err
}

// sameFact compares types, unknown extents being equal to unknown extents.
func sameFact(a, b Fact) bool {
	if a.Kind != b.Kind || a.Type.DType != b.Type.DType || a.Type.Ranked != b.Type.Ranked || len(a.Type.Dims) != len(b.Type.Dims) {
		return false
	}
	for i, d := range a.Type.Dims {
		if d != b.Type.Dims[i] {
			return false
		}
	}
	return true
}

// loop has the inputs trip count, condition and carried values; its body gives condition, carried
// values and one element of each scan output.
func loop(c *call) error {
	g, err := c.body("body")
	if err != nil {
		return err
	}
	var carried []Fact
	for i := 2; i < len(c.ins); i++ {
		if c.ins[i] == nil {
			return fmt.Errorf("carried value %d is absent", i-2)
		}
		carried = append(carried, *c.ins[i])
	}
	trips := onnx.Symbol("")
	if v, ok := c.values(0); ok && len(v) == 1 {
		trips = v[0].dim()
		if v[0].known && v[0].n < 0 {
			trips = onnx.Known(0)
		}
	}
	start, startKnown := c.number(1)
	if !c.has(1) {
		start, startKnown = 1, true
	}
	iter := Fact{Type: onnx.TypeOf(tensor.Int64)}
	cond := Fact{Type: onnx.TypeOf(tensor.Bool)}
	// An iteration runs only while the condition holds.
	cond.Const = tensor.Scalar(true)
	outs := c.out
	body, err := c.carry(carried, 1, join, func(now []Fact) ([]Fact, error) {
		return c.runBody("body", g, append([]Fact{iter, cond}, now...))
	})
	if err != nil {
		return err
	}
	if len(outs) > len(body)-1 {
		return fmt.Errorf("the body has %d outputs, the node wants %d after the condition", len(body), len(outs))
	}
	always := body[0].Const != nil && body[0].Const.DType() == tensor.Bool && body[0].Const.Len() == 1 && body[0].Const.Bools()[0] && startKnown && start != 0
	if startKnown && start == 0 {
		trips, always = onnx.Known(0), true
	}
	if !always {
		trips = onnx.Symbol("")
	}
	for i := range outs {
		f := plain(body[1+i])
		if i < len(carried) {
			outs[i] = carried[i]
			continue
		}
		if f.Kind != Tensor {
			return fmt.Errorf("scan output %d is a %v", i-len(carried), f.Kind)
		}
		if f.Type.Ranked {
			f.Type.Dims = append([]onnx.Dim{trips}, f.Type.Dims...)
		}
		outs[i] = f
	}
	return nil
}

// scan walks along axes of its last inputs; opset 8 has sequence lengths first and a batch axis
// everywhere.
func scan(c *call) error {
	g, err := c.body("body")
	if err != nil {
		return err
	}
	off, batched := 0, c.opset() < 9
	if batched {
		off = 1
	}
	scans := c.int("num_scan_inputs", 0)
	states := len(c.ins) - off - scans
	if scans < 1 || states < 0 {
		return fmt.Errorf("num_scan_inputs is %d for %d inputs", scans, len(c.ins)-off)
	}
	scanOuts := len(g.Output) - states
	if scanOuts < 0 || len(c.out) > len(g.Output) {
		return fmt.Errorf("the body has %d outputs, the node %d and %d states", len(g.Output), len(c.out), states)
	}
	inAxes, outAxes := c.ints("scan_input_axes"), c.ints("scan_output_axes")
	if batched {
		inAxes, outAxes = nil, nil
	}
	if inAxes != nil && len(inAxes) != scans || outAxes != nil && len(outAxes) != scanOuts {
		return fmt.Errorf("%d scan_input_axes for %d inputs and %d scan_output_axes for %d outputs", len(inAxes), scans, len(outAxes), scanOuts)
	}
	var carried, slices []Fact
	batch, length := onnx.Symbol(""), onnx.Symbol("")
	for i := off; i < len(c.ins); i++ {
		if c.ins[i] == nil {
			return fmt.Errorf("input %d is absent", i)
		}
		f := plain(*c.ins[i])
		k := i - off - states
		if batched {
			if f, err = dropAxis(f, 0, &batch); err != nil {
				return fmt.Errorf("input %d: %w", i, err)
			}
		}
		if k < 0 {
			carried = append(carried, f)
			continue
		}
		axis := 0
		if inAxes != nil {
			axis = inAxes[k]
		}
		if f, err = dropAxis(f, axis, &length); err != nil {
			return fmt.Errorf("scan input %d: %w", k, err)
		}
		slices = append(slices, f)
	}
	outs := c.out
	body, err := c.carry(carried, 0, keep, func(now []Fact) ([]Fact, error) {
		return c.runBody("body", g, append(append([]Fact(nil), now...), slices...))
	})
	if err != nil {
		return err
	}
	for i := range outs {
		f := plain(body[i])
		if i < states {
			f = carried[i]
		} else {
			axis := 0
			if outAxes != nil {
				axis = outAxes[i-states]
			}
			if f, err = addAxis(f, axis, length); err != nil {
				return fmt.Errorf("scan output %d: %w", i-states, err)
			}
		}
		if batched {
			if f, err = addAxis(f, 0, batch); err != nil {
				return err
			}
		}
		outs[i] = f
	}
	return nil
}

// dropAxis removes an axis, merging its extent into ext.
func dropAxis(f Fact, axis int, ext *onnx.Dim) (Fact, error) {
	if f.Kind != Tensor || !f.Type.Ranked {
		return f, nil
	}
	a, err := axisOf(axis, len(f.Type.Dims))
	if err != nil {
		return f, fmt.Errorf("%v: %w", f.Type, err)
	}
	d, ok := mergeDim(*ext, f.Type.Dims[a])
	if !ok {
		return f, fmt.Errorf("axis %d of %v differs from the %v elements of other inputs", a, f.Type, *ext)
	}
	*ext = d
	f.Type.Dims = append(append([]onnx.Dim(nil), f.Type.Dims[:a]...), f.Type.Dims[a+1:]...)
	return f, nil
}

// addAxis inserts an axis.
func addAxis(f Fact, axis int, ext onnx.Dim) (Fact, error) {
	if f.Kind != Tensor || !f.Type.Ranked {
		return f, nil
	}
	a, err := axisOf(axis, len(f.Type.Dims)+1)
	if err != nil {
		return f, err
	}
	dims := append([]onnx.Dim(nil), f.Type.Dims[:a]...)
	f.Type.Dims = append(append(dims, ext), f.Type.Dims[a:]...)
	return f, nil
}
