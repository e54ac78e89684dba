package bake

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The outputs of a [Router] beside the action.
const (
	// ExpertOutput is int64 [batch]: the expert that is in charge, of a mixture that with the
	// largest share.
	ExpertOutput = "expert"
	// SharesOutput is float32 [batch, N]: the shares of the experts in the action.
	SharesOutput = "shares"
	// AllowedOutput is bool [batch, N]: which experts may be chosen, with limits on risk.
	AllowedOutput = "allowed"
	// LossesOutput is float32 [batch, 2·N]: the drawdowns of the experts and then their CVaR, in
	// [0, 1], as the router sees them, with limits on risk.
	LossesOutput = "losses"
	// ExpertScoresOutput is float32 [batch, N]: what a router that chooses one expert would choose
	// it by at this step, whether or not the segment is over.
	ExpertScoresOutput = "expert_scores"
)

// Router is a policy of several: a network of low frequency that says which of the experts acts, or
// in what shares all do, and the experts. All are served models of one batch extent; those that
// take the same input take it in the same form.
type Router struct {
	// Model takes what it shares with the experts, Table, and Mask where it chooses one expert
	// under limits on risk; its Action is int64 [batch], or float32 [batch, N] scores of a mixture,
	// or what Holdings says.
	Model *onnx.Model
	// Experts have Action, all of one type, and may have Scores.
	Experts        []*onnx.Model
	Action, Scores string
	Table, Mask    string
	Mixture        bool
	// Segment is the number of steps that a choice holds for, and UsageWindow the number of choices
	// that usage is counted over.
	Segment, UsageWindow int
	// Low and High limit a mixture's elements, one for all or one for each; nil for no limit.
	Low, High []float64
	// Softmax, unless 0, says that actions are weights and mixtures are of their logarithms within
	// ±Softmax about the middle, whose softmax is the mixture.
	Softmax float64
	// Account names an input float32 [batch, 2] with the value of the account, positive, and the
	// number of the day; it is there with Drawdown or CVaR.
	Account  string
	Drawdown *RouterDrawdown
	CVaR     *RouterCVaR
	// Holdings, unless nil, says that the router chooses which assets may be held, and one of the
	// experts where there are several.
	Holdings *Holdings
}

// RouterDrawdown masks experts whose drawdown from the highest value of so many days is beyond
// Limit, until it is no more than Resume.
type RouterDrawdown struct {
	Limit, Resume float64
	Days          int
}

// RouterCVaR cuts what may be held in assets while the CVaR of the daily returns of an expert in
// charge is beyond Limit and has not come back to Resume. The action are weights, the last of them
// cash.
type RouterCVaR struct {
	Limit, Resume, Level, Cut float64
	// Days is the length of the window, Least the number of returns before which nothing is cut.
	Days, Least int
	// Exposure and Weight are the account's own limits on all assets and on one; 0 is none.
	Exposure, Weight float64
}

// Compose returns the policy as one model: base, experts, router, masks and what they remember. Its
// inputs are those of the experts and the router that are no tables and masks of the router, and
// Account; equal parts of the models are there once. What it remembers is in the metadata. A row
// begins an episode with the initial states, decides at once, and after every Segment rows again.
func (r Router) Compose() (*onnx.Model, error) {
	m, err := r.compose()
	if err != nil {
		return nil, fmt.Errorf("compose router and experts: %w", err)
	}
	return m, nil
}

// composer is the work of Compose.
type composer struct {
	Router
	n      int
	m      *onnx.Model
	b      *onnx.Builder
	states []models.State
	inputs []*onnx.ValueInfo
	scales map[string]bool // by input: whether models scale it themselves
	over   onnx.Value      // bool [batch, 1]: a choice is due
	on     onnx.Value      // float32 [batch, N]: the shares before this step
}

func (r Router) compose() (*onnx.Model, error) {
	c := &composer{Router: r, n: len(r.Experts), scales: map[string]bool{}}
	least := 2
	if r.Holdings != nil {
		least = 1
	}
	if c.n < least || r.Segment < 1 || r.UsageWindow < 1 {
		return nil, fmt.Errorf("%d experts, segments of %d steps and usage of %d choices: expected at least %d, 1 and 1", c.n, r.Segment, r.UsageWindow, least)
	}
	if (r.Drawdown != nil || r.CVaR != nil) != (r.Account != "") {
		return nil, errors.New("limits on risk need an account, and only they do")
	}
	if err := c.join(); err != nil {
		return nil, err
	}
	c.b = onnx.Extend(c.m)
	if err := c.control(); err != nil {
		return nil, err
	}
	m, err := c.b.Model()
	if err != nil {
		return nil, err
	}
	m.Graph.Input = append(m.Graph.Input, c.inputs...)
	if err := onnx.Sort(m.Graph); err != nil {
		return nil, err
	}
	if err := share(m.Graph); err != nil {
		return nil, err
	}
	if m, err = onnx.Prune(m); err != nil {
		return nil, err
	}
	if err := models.AddStates(m, c.states); err != nil {
		return nil, err
	}
	if _, err := models.States(m); err != nil {
		return nil, err
	}
	var scales []string
	for name, scaled := range c.scales {
		if scaled {
			scales = append(scales, name)
		}
	}
	slices.Sort(scales)
	if len(scales) > 0 {
		m.SetMeta(MetaScales, strings.Join(scales, ","))
	}
	if r.Account != "" {
		if err := r.setLimits(m); err != nil {
			return nil, err
		}
	}
	m = widest(m)
	if err := onnx.Check(m); err != nil {
		return nil, err
	}
	_, err = shape.Infer(m, nil)
	return m, err
}

// prefix is that of the names of a model's values; the router is the last.
func (c *composer) prefix(i int) string {
	if i == c.n {
		return "router/"
	}
	return fmt.Sprintf("expert_%d/", i)
}

// join puts router and experts side by side.
func (c *composer) join() error {
	models := append(slices.Clone(c.Experts), c.Model)
	opset := oldestOpset
	for _, m := range models {
		opset = max(opset, m.Opset(onnx.DomainStandard))
	}
	action := outputType(models[0], c.Action)
	for i, m := range models {
		what := fmt.Sprintf("expert %d", i)
		if i == c.n {
			what = "router"
		}
		m, err := onnx.Upgrade(m, opset)
		if err == nil {
			err = c.add(i, m)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		t := outputType(models[i], c.Action)
		switch {
		case i == c.n && c.Mixture && (t.DType != tensor.Float32 || len(t.Dims) != 2 || t.Dims[1] != onnx.Known(c.n)):
			return fmt.Errorf("router: output %q is %v, expected the scores float32[batch %d]", c.Action, t, c.n)
		case i == c.n && c.Holdings != nil && (t.DType != tensor.Int64 || len(t.Dims) != 2 || t.Dims[1] != onnx.Known(len(c.heads()))):
			return fmt.Errorf("router: output %q is %v, expected the choices int64[batch %d]", c.Action, t, len(c.heads()))
		case i == c.n && c.Holdings == nil && !c.Mixture && (t.DType != tensor.Int64 || len(t.Dims) != 1):
			return fmt.Errorf("router: output %q is %v, expected the choice int64[batch]", c.Action, t)
		case i < c.n && (len(t.Dims) == 0 || t.DType != action.DType || !slices.Equal(t.Dims[1:], action.Dims[1:])):
			return fmt.Errorf("%s: output %q is %v, that of the first is %v", what, c.Action, t, action)
		}
	}
	if c.Mixture && action.DType != tensor.Float32 {
		return fmt.Errorf("a mixture of %v", action)
	}
	if c.CVaR != nil && (action.DType != tensor.Float32 || len(action.Dims) != 2 || !action.Dims[1].IsKnown()) {
		return fmt.Errorf("a limit on CVaR cuts weights, and the action is %v", action)
	}
	return nil
}

// add appends a model, the router as number n. Inputs keep their names where experts share them.
func (c *composer) add(i int, m *onnx.Model) error {
	states, err := models.States(m)
	if err != nil {
		return err
	}
	prefix := c.prefix(i)
	own := func(name string) bool {
		return isState(states, name) || i == c.n && (name == c.Table || name == c.Mask)
	}
	// masked is what experts have in the place of the mask.
	masked := func(name string) bool {
		return i < c.n && c.Holdings != nil && c.Holdings.Orders > 0 && name == c.Holdings.Mask
	}
	public := map[string]bool{}
	scales := map[string]bool{}
	if list, ok := m.Meta(MetaScales); ok {
		for name := range strings.SplitSeq(list, ",") {
			scales[name] = true
		}
	}
	for _, v := range m.Graph.Inputs() {
		t, ok := v.TensorType()
		if !ok || len(t.Dims) == 0 || t.Dims[0].IsKnown() {
			return fmt.Errorf("input %q is %v, expected a symbolic batch in front", v.Name, t)
		}
		t.Dims = append([]onnx.Dim{onnx.Symbol("batch")}, t.Dims[1:]...)
		if own(v.Name) {
			if isState(states, v.Name) {
				c.inputs = append(c.inputs, onnx.NewValueInfo(onnx.Value(prefix+v.Name), t))
			}
			continue
		}
		public[v.Name] = !masked(v.Name)
		at := slices.IndexFunc(c.inputs, func(have *onnx.ValueInfo) bool { return have.Name == v.Name })
		if at < 0 {
			c.inputs = append(c.inputs, onnx.NewValueInfo(onnx.Value(v.Name), t))
			c.scales[v.Name] = scales[v.Name]
			continue
		}
		if have, _ := c.inputs[at].TensorType(); have.DType != t.DType || !slices.Equal(have.Dims, t.Dims) {
			return fmt.Errorf("input %q is %v, and that of the models before is %v", v.Name, t, have)
		}
		if c.scales[v.Name] != scales[v.Name] {
			return fmt.Errorf("input %q is scaled by some of the models themselves and by others not", v.Name)
		}
	}
	if m, err = onnx.Rename(m, func(v onnx.Value) onnx.Value {
		switch {
		case public[string(v)]:
			return v
		case masked(string(v)):
			return expertsMask
		}
		return onnx.Value(prefix) + v
	}); err != nil {
		return err
	}
	for _, n := range m.Graph.Node {
		if n.Name != "" {
			n.Name = prefix + n.Name
		}
	}
	for _, s := range states {
		c.states = append(c.states, models.State{Input: prefix + s.Input, Output: prefix + s.Output, Shape: s.Shape, Initial: s.Initial})
	}
	if c.m == nil {
		m.Graph.Input, m.Graph.Output, m.Graph.ValueInfo, m.MetadataProps = nil, nil, nil, nil
		m.Graph.Name, m.Graph.DocString = "router", ""
		c.m = m
		return nil
	}
	for _, o := range m.OpsetImport {
		d := onnx.NormalizeDomain(o.Domain)
		if have := c.m.Opset(d); have != 0 && have != int(o.Version) {
			return fmt.Errorf("it imports version %d of the operators %q, and the models before %d", o.Version, d, have)
		}
		c.m.SetOpset(d, int(o.Version))
	}
	c.m.IrVersion = max(c.m.IrVersion, m.IrVersion)
	g := c.m.Graph
	g.Node, g.Initializer = append(g.Node, m.Graph.Node...), append(g.Initializer, m.Graph.Initializer...)
	g.SparseInitializer = append(g.SparseInitializer, m.Graph.SparseInitializer...)
	return nil
}

func (c *composer) op(op string, in ...onnx.Value) onnx.Value { return c.b.Op(op, in) }

// along appends an operator that takes its axis as an attribute.
func (c *composer) along(op string, axis int, in ...onnx.Value) onnx.Value {
	return c.b.Op(op, in, onnx.AttrInt("axis", axis))
}

// sum adds up the last axis, which stays with an extent of 1 where keep is 1.
func (c *composer) sum(x onnx.Value, axis, keep int) onnx.Value {
	return c.b.Op("ReduceSum", []onnx.Value{x, c.b.Ints(axis)}, onnx.AttrInt("keepdims", keep))
}

// float makes numbers of truths.
func (c *composer) float(x onnx.Value) onnx.Value {
	return c.b.Op("Cast", []onnx.Value{x}, onnx.AttrInt("to", int(tensor.Float32)))
}

// state declares something that is remembered. The output is given later, by keep.
func (c *composer) state(name string, initial float32, shape ...int) onnx.Value {
	s := models.ZeroState("router/"+name, shape...)
	s.Initial = []float32{initial}
	c.states = append(c.states, s)
	dims := []onnx.Dim{onnx.Symbol("batch")}
	for _, n := range shape {
		dims = append(dims, onnx.Known(n))
	}
	c.inputs = append(c.inputs, onnx.NewValueInfo(onnx.Value(s.Input), onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: dims}))
	return onnx.Value(s.Input)
}

// keep makes a value what a state is at the next step.
func (c *composer) keep(state, next onnx.Value) {
	i := slices.IndexFunc(c.states, func(s models.State) bool { return s.Input == string(state) })
	c.output(next, c.states[i].Output, tensor.Float32, c.states[i].Shape...)
}

// output makes a value an output.
func (c *composer) output(v onnx.Value, name string, d tensor.DType, shape ...int) {
	dims := []onnx.Dim{onnx.Symbol("batch")}
	for _, n := range shape {
		dims = append(dims, onnx.Known(n))
	}
	c.b.Output(c.b.Rename(v, name), onnx.TensorType{DType: d, Ranked: true, Dims: dims})
}

// control appends what stands between router and experts.
func (c *composer) control() error {
	c.b.SetScope("router/control/")
	n := c.n
	left := c.state("left", 0, 1)
	c.on = c.state("shares", 0, n)
	c.over = c.op("Less", left, c.b.Float(0.5))
	// The last decision counts when the next one is due; before the first there is none.
	used := c.usage(c.on)
	table := []onnx.Value{c.on, used}
	var allowed, factors, drawdown, cvar onnx.Value
	if c.Account != "" {
		allowed, factors, drawdown, cvar = c.books(c.on)
		table = append(table, drawdown, cvar)
	}
	// The columns of an expert stand together.
	order := make([]int, 0, len(table)*n)
	for i := range n {
		for k := range table {
			order = append(order, k*n+i)
		}
	}
	c.b.Rename(c.along("Gather", 1, c.along("Concat", 1, table...), c.b.Ints(order...)), c.prefix(n)+c.Table)
	masked := slices.ContainsFunc(c.Model.Graph.Inputs(), func(v *onnx.ValueInfo) bool { return v.Name == c.Mask })
	if masked {
		mask := allowed
		if mask == "" {
			// Everything may be chosen.
			mask = c.op("Less", c.on, c.b.Float(2))
		}
		if c.Holdings != nil {
			open, err := c.open()
			if err != nil {
				return err
			}
			mask = c.holdMask(open, mask)
		}
		c.b.Rename(mask, c.prefix(n)+c.Mask)
	} else if allowed != "" && !c.Mixture || c.Holdings != nil {
		return fmt.Errorf("router: it has no input %q for what cannot be chosen", c.Mask)
	}
	decision := onnx.Value(c.prefix(n) + c.Action)
	var fresh, held onnx.Value
	if c.Holdings != nil {
		held, decision = c.hold(decision)
		c.maskOrders(held)
	}
	if c.Mixture {
		if allowed != "" {
			decision = c.op("Where", allowed, decision, c.b.Float(-1e30))
		}
		fresh = c.along("Softmax", 1, decision)
	} else {
		fresh = c.float(c.op("Equal", c.op("Unsqueeze", decision, c.b.Ints(1)), c.b.Const(places(n))))
	}
	shares := c.op("Where", c.over, fresh, c.on)
	chosen := c.b.Op("ArgMax", []onnx.Value{shares}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 0))
	action := c.act(shares, chosen)
	if c.Holdings != nil {
		action = c.restrict(action, held)
	}
	if c.CVaR != nil {
		action = c.cut(action, c.sum(c.op("Mul", shares, factors), 1, 1))
	}
	c.b.SetScope("")
	c.output(action, c.Action, outputType(c.Experts[0], c.Action).DType, c.extents()...)
	if c.Scores != "" {
		c.scores(chosen)
	}
	c.output(chosen, ExpertOutput, tensor.Int64)
	c.output(shares, SharesOutput, tensor.Float32, n)
	if allowed != "" {
		c.output(allowed, AllowedOutput, tensor.Bool, n)
		c.output(c.along("Concat", 1, drawdown, cvar), LossesOutput, tensor.Float32, 2*n)
	}
	if c.Holdings != nil {
		c.heldOutputs(held)
	}
	c.keep(c.on, shares)
	c.keep(left, c.op("Sub", c.op("Where", c.over, c.b.Float(float32(c.Segment)), left), c.b.Float(1)))
	c.remember()
	return c.b.Err()
}

// extents are those of an action without the batch.
func (c *composer) extents() (list []int) {
	for _, d := range outputType(c.Experts[0], c.Action).Dims[1:] {
		list = append(list, d.Value)
	}
	return list
}

// remember keeps what experts remember, which see every step, and what the router does, which sees
// those at which a choice is due.
func (c *composer) remember() {
	own := models.StatePrefix + "router/"
	for _, s := range c.states {
		if strings.HasPrefix(s.Input, own) {
			continue
		}
		dims := []onnx.Dim{onnx.Symbol("batch")}
		for _, n := range s.Shape {
			dims = append(dims, onnx.Known(n))
		}
		next := onnx.Value(s.Output)
		if strings.HasPrefix(s.Input, c.prefix(c.n)) {
			over := c.over
			if k := len(s.Shape); k > 1 {
				axes := make([]int, k-1)
				for i := range axes {
					axes[i] = 2 + i
				}
				over = c.op("Unsqueeze", over, c.b.Ints(axes...))
			} else if k == 0 {
				over = c.op("Squeeze", over, c.b.Ints(1))
			}
			next = c.op("Where", over, next, onnx.Value(s.Input))
			for i := range c.states {
				if c.states[i].Input == s.Input {
					c.states[i].Output = s.Output + "/kept"
					next = c.b.Rename(next, s.Output+"/kept")
				}
			}
		}
		c.b.Output(next, onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: dims})
	}
}

// usage returns the shares of the experts in the choices of late, and one choice for each.
func (c *composer) usage(on onnx.Value) onnx.Value {
	ring := c.state("usage", 0, c.n, c.UsageWindow)
	// Before the first choice nobody has a share, and what is counted is nothing.
	next := c.op("Where", c.op("Unsqueeze", c.over, c.b.Ints(2)), c.shift(ring, c.UsageWindow, on), ring)
	c.keep(ring, next)
	counts := c.op("Add", c.sum(next, 2, 0), c.b.Float(1))
	return c.op("Div", counts, c.sum(counts, 1, 1))
}

// shift drops the oldest of a ring [batch, N, length] and appends the newest [batch, N].
func (c *composer) shift(ring onnx.Value, length int, newest onnx.Value) onnx.Value {
	rest := c.op("Slice", ring, c.b.Ints(1), c.b.Ints(length), c.b.Ints(2))
	return c.along("Concat", 2, rest, c.op("Unsqueeze", newest, c.b.Ints(2)))
}

// renew is shift where fresh [batch, 1] is, and elsewhere puts the value [batch, N, 1] in the place
// of the newest.
func (c *composer) renew(ring onnx.Value, length int, fresh, newest onnx.Value) onnx.Value {
	if length == 1 {
		return newest
	}
	later := c.op("Slice", ring, c.b.Ints(1), c.b.Ints(length), c.b.Ints(2))
	same := c.op("Slice", ring, c.b.Ints(0), c.b.Ints(length-1), c.b.Ints(2))
	return c.along("Concat", 2, c.op("Where", c.op("Unsqueeze", fresh, c.b.Ints(2)), later, same), newest)
}

// never is in the place of returns and days that are not there: it is beyond all of them.
const never = 1e30

// books appends what the account has made of 1 while each expert was in charge, and says who may be
// chosen, what their limits on positions are multiplied by, and how far they are, all [batch, N].
func (c *composer) books(on onnx.Value) (allowed, factors, drawdown, cvar onnx.Value) {
	b, n := c.b, c.n
	account := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(2)}}
	// Experts and routers may observe it, too.
	if at := slices.IndexFunc(c.inputs, func(have *onnx.ValueInfo) bool { return have.Name == c.Account }); at < 0 {
		c.inputs = append(c.inputs, onnx.NewValueInfo(onnx.Value(c.Account), account))
	} else if have, _ := c.inputs[at].TensorType(); have.DType != account.DType || !slices.Equal(have.Dims, account.Dims) {
		b.Fail(fmt.Errorf("input %q of experts or router is %v, expected %v", c.Account, have, account))
	}
	parts := b.OpN("Split", "", 2, []onnx.Value{onnx.Value(c.Account), b.Ints(1, 1)}, onnx.AttrInt("axis", 1))
	value, day := parts[0], parts[1]
	before, last := c.state("account", 0, 1), c.state("day", -never, 1)
	c.keep(before, value)
	c.keep(last, day)
	// In the first step nobody has a share in what is divided by.
	made := c.op("Div", c.op("Sub", value, before), c.op("Max", before, b.Float(1/never)))
	fresh := c.op("Greater", day, last)

	book := c.state("book", 1, n)
	now := c.op("Mul", book, c.op("Add", c.op("Mul", on, made), b.Float(1)))
	c.keep(book, now)
	zeros := func() onnx.Value { return c.op("Mul", on, b.Float(0)) }

	if d := c.Drawdown; d != nil {
		ring, current := c.state("peaks", 0, n, d.Days), c.op("Unsqueeze", now, b.Ints(2))
		newest := c.op("Slice", ring, b.Ints(d.Days-1), b.Ints(d.Days), b.Ints(2))
		peaks := c.renew(ring, d.Days, fresh, c.op("Where", c.op("Unsqueeze", fresh, b.Ints(2)), current, c.op("Max", newest, current)))
		c.keep(ring, peaks)
		peak := c.op("Squeeze", b.OpN("TopK", "", 2, []onnx.Value{peaks, b.Ints(1)})[0], b.Ints(2))
		drawdown = c.op("Div", c.op("Sub", peak, now), peak)
		stopped, number := c.trip("stopped", drawdown, d.Limit, d.Resume)
		// The least drawdown among those that are not stopped, and if all are, among all.
		least := b.Op("ArgMin", []onnx.Value{c.op("Add", drawdown, c.op("Mul", number, b.Float(2)))}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 1))
		allowed = c.op("Or", c.op("Not", stopped), c.op("Equal", least, b.Const(places(n))))
	} else {
		drawdown = zeros()
		allowed = c.op("Less", drawdown, b.Float(1))
	}
	v := c.CVaR
	if v == nil {
		return allowed, "", drawdown, zeros()
	}
	// The last value of the day before; without one, on the first day, the return is beyond all.
	base, days := c.state("base", 0, n), c.state("days", 0, 1)
	from := c.op("Where", fresh, c.op("Where", c.op("Greater", before, b.Float(0)), book, b.Float(0)), base)
	c.keep(base, from)
	count := c.op("Min", c.op("Add", days, c.float(fresh)), b.Float(float32(v.Days+1)))
	c.keep(days, count)
	ring := c.state("returns", never, n, v.Days)
	gain := c.op("Min", c.op("Div", c.op("Sub", now, from), from), b.Float(never))
	returns := c.renew(ring, v.Days, fresh, c.op("Unsqueeze", gain, b.Ints(2)))
	c.keep(ring, returns)
	weights := v.weights()
	worst := b.OpN("TopK", "", 2, []onnx.Value{returns, b.Ints(weights.Shape()[1])}, onnx.AttrInt("largest", 0))[0]
	tail := c.along("Gather", 0, b.Const(weights), b.Op("Cast", []onnx.Value{count}, onnx.AttrInt("to", int(tensor.Int64))))
	loss := c.sum(c.op("Mul", worst, tail), 2, 0)
	cut, _ := c.trip("cut", loss, v.Limit, v.Resume)
	return allowed, c.op("Where", cut, b.Float(float32(v.Cut)), b.Float(1)), drawdown, c.op("Clip", loss, b.Float(0), b.Float(1))
}

// weights [Days + 2, most] has, by the number of days that were seen, what the returns weigh in the
// CVaR, the worst first: 0 as long as there are too few, when nothing is cut.
func (v *RouterCVaR) weights() *tensor.Tensor {
	most := min(v.Days, int((1-v.Level)*float64(v.Days)+1e-9)+1)
	t := tensor.New(tensor.Float32, v.Days+2, most)
	for n := v.Least; n <= v.Days; n++ {
		days := (1 - v.Level) * float64(n)
		for i := range most {
			if w := min(days-float64(i), 1); w > 1e-9 {
				t.Float32s()[(n+1)*most+i] = float32(-w / days)
			}
		}
	}
	return t
}

// places are the numbers [1, n] from 0.
func places(n int) *tensor.Tensor {
	t := tensor.New(tensor.Int64, 1, n)
	for i := range n {
		t.Int64s()[i] = int64(i)
	}
	return t
}

// trip passes a limit, or ends it once the value has come back: a truth, and as a number.
func (c *composer) trip(name string, value onnx.Value, limit, resume float64) (on, number onnx.Value) {
	was := c.state(name, 0, c.n)
	threshold := c.op("Where", c.op("Greater", was, c.b.Float(0.5)), c.b.Float(float32(resume)), c.b.Float(float32(limit)))
	on = c.op("Greater", value, threshold)
	number = c.float(on)
	c.keep(was, number)
	return on, number
}

// act returns the action of the expert that is chosen, or the mixture.
func (c *composer) act(shares, chosen onnx.Value) onnx.Value {
	b := c.b
	if !c.Mixture {
		return c.pick(c.Action, chosen, len(c.extents()))
	}
	var actions []onnx.Value
	size := 1
	for _, n := range c.extents() {
		size *= n
	}
	for i := range c.n {
		actions = append(actions, c.op("Reshape", onnx.Value(c.prefix(i)+c.Action), b.Ints(-1, 1, size)))
	}
	all := c.along("Concat", 1, actions...)
	if s := float32(c.Softmax); s > 0 {
		l := c.op("Log", all)
		ends := func(largest int) onnx.Value {
			return b.OpN("TopK", "", 2, []onnx.Value{l, b.Ints(1)}, onnx.AttrInt("largest", largest))[0]
		}
		most := ends(1)
		middle := c.op("Mul", c.op("Add", c.op("Max", ends(0), c.op("Sub", most, b.Float(2*s))), most), b.Float(0.5))
		all = c.op("Min", c.op("Max", c.op("Sub", l, middle), b.Float(-s)), b.Float(s))
	}
	mixed := c.op("Squeeze", c.op("MatMul", c.op("Unsqueeze", shares, b.Ints(1)), all), b.Ints(1))
	switch {
	case c.Softmax > 0:
		mixed = c.along("Softmax", 1, mixed)
	case c.Low != nil:
		limit := func(of []float64) onnx.Value {
			t := tensor.New(tensor.Float32, size)
			for i := range t.Float32s() {
				t.Float32s()[i] = float32(of[i%len(of)])
			}
			return b.Const(t)
		}
		mixed = c.op("Min", c.op("Max", mixed, limit(c.Low)), limit(c.High))
	}
	return c.op("Reshape", mixed, b.Ints(append([]int{-1}, c.extents()...)...))
}

// pick returns an output of the expert that is chosen, of so many axes behind the batch.
func (c *composer) pick(output string, chosen onnx.Value, axes int) onnx.Value {
	if t := outputType(c.Experts[0], output); axes == 1 && t.Dims[1].IsKnown() {
		var all []onnx.Value
		for i := range c.n {
			all = append(all, onnx.Value(c.prefix(i)+output))
		}
		rows := c.op("Reshape", c.along("Concat", 1, all...), c.b.Ints(0, c.n, t.Dims[1].Value))
		return c.b.Op("GatherND", []onnx.Value{rows, c.op("Unsqueeze", chosen, c.b.Ints(1))}, onnx.AttrInt("batch_dims", 1))
	}
	out := onnx.Value(c.prefix(c.n-1) + output)
	at := chosen
	if axes > 0 {
		list := make([]int, axes)
		for i := range list {
			list[i] = 1 + i
		}
		at = c.op("Unsqueeze", chosen, c.b.Ints(list...))
	}
	for i := range c.n - 1 {
		out = c.op("Where", c.op("Equal", at, c.b.Int(i)), onnx.Value(c.prefix(i)+output), out)
	}
	return out
}

// scores are what choices are made by, of the expert in charge and of the router, where they tell.
func (c *composer) scores(chosen onnx.Value) {
	t := outputType(c.Experts[0], c.Scores)
	all := !c.Mixture && len(t.Dims) == 2 && t.Dims[1].IsKnown()
	for _, m := range c.Experts {
		o := outputType(m, c.Scores)
		all = all && o.DType == t.DType && slices.Equal(o.Dims[min(1, len(o.Dims)):], t.Dims[1:])
	}
	if all {
		c.output(c.pick(c.Scores, chosen, 1), c.Scores, t.DType, t.Dims[1].Value)
	}
	if o := outputType(c.Model, c.Scores); !c.Mixture && len(o.Dims) == 2 && o.Dims[1] == onnx.Known(c.n) {
		c.output(onnx.Value(c.prefix(c.n)+c.Scores), ExpertScoresOutput, o.DType, c.n)
	}
}

// cut limits weights [batch, assets and cash] to what the account may hold where its limits are
// multiplied by a factor [batch, 1], and gives the rest to the cash.
func (c *composer) cut(weights, factor onnx.Value) onnx.Value {
	b, v := c.b, c.CVaR
	n := c.extents()[0] - 1
	cash := tensor.New(tensor.Float32, 1, n+1)
	cash.Float32s()[n] = 1
	exposure, limited := v.Exposure, weights
	if exposure == 0 {
		exposure = 1
	}
	if v.Weight > 0 {
		most := tensor.New(tensor.Float32, 1, n+1)
		for i := range n {
			most.Float32s()[i] = float32(v.Weight)
		}
		limited = c.op("Min", weights, c.op("Mul", factor, b.Const(most)))
	}
	sum := c.sum(c.op("Slice", limited, b.Ints(0), b.Ints(n), b.Ints(1)), 1, 1)
	most := factor
	if exposure != 1 {
		most = c.op("Mul", factor, b.Float(float32(exposure)))
	}
	part := c.op("Min", c.op("Div", most, c.op("Max", sum, b.Float(1/never))), b.Float(1))
	// The assets keep a part, and the cash has the rest: of weights without cash in them.
	assets := tensor.New(tensor.Float32, 1, n+1)
	for i := range n {
		assets.Float32s()[i] = 1
	}
	scaled := c.op("Mul", c.op("Mul", limited, b.Const(assets)), part)
	rest := c.op("Max", c.op("Sub", b.Float(1), c.op("Mul", sum, part)), b.Float(0))
	// Without a cut the action stays as it is, to the bit.
	return c.op("Where", c.op("Less", factor, b.Float(1)), c.op("Add", scaled, c.op("Mul", rest, b.Const(cash))), weights)
}
