package onnx

import (
	"errors"
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// CheckOptions say what is checked beyond the standard's rules.
type CheckOptions struct {
	// Strict makes operators of domains without a schema, such as com.microsoft, problems.
	// Otherwise they are listed as unchecked.
	Strict bool
	// Deprecated lets operators pass that the standard has withdrawn; engines still execute them.
	Deprecated bool
	// Finite looks for NaN and infinite numbers in initializers, which reads all weights.
	Finite bool
	// Types gives the types of values; nil uses the types that the model declares. Operators are
	// checked only where the types of their inputs are known.
	Types Types
}

// Problem is one fault of a model.
type Problem struct {
	// Where names the graph, node, function or value.
	Where string
	// Text says what is wrong and what was expected.
	Text string
}

// String joins the two parts.
func (p Problem) String() string { return p.Where + ": " + p.Text }

// Report is what a check found.
type Report struct {
	Problems []Problem
	// Unchecked lists operators without a schema, as domain.Name, each once.
	Unchecked []string
	// Dropped counts problems beyond the first [MaxProblems].
	Dropped int
}

// MaxProblems is how many problems a [Report] lists.
const MaxProblems = 100

// ErrInvalidModel is wrapped by the errors of [Check].
var ErrInvalidModel = errors.New("model is not valid")

// Err returns nil when there is no problem, else an error that lists them all, one to a line.
func (r *Report) Err() error {
	if len(r.Problems) == 0 {
		return nil
	}
	var b strings.Builder
	for i, p := range r.Problems {
		if i > 0 {
			b.WriteString("\n\t")
		}
		b.WriteString(p.String())
	}
	if r.Dropped > 0 {
		fmt.Fprintf(&b, "\n\t… and %d more", r.Dropped)
	}
	return fmt.Errorf("%w: %s", ErrInvalidModel, b.String())
}

// Check verifies a model by the rules of the ONNX specification and returns all problems in one
// error, nil when there are none. See [CheckOptions.Check].
func Check(m *Model) error { return CheckOptions{}.Check(m).Err() }

// Check verifies a model:
//
//   - every value is defined once, before it is used, and no sub-graph hides an outer name; cycles
//     are listed node by node
//   - inputs and outputs of the main graph have types
//   - opsets are imported and known; operators exist at the imported version and are not deprecated
//   - numbers of inputs and outputs, names and types of attributes, required attributes, and, where
//     types are known, element types
//   - initializers hold as much data as their shapes ask for
//   - functions: the same, and that none calls itself
//
// The model is not changed and no weights are copied.
func (o CheckOptions) Check(m *Model) *Report {
	c := &checker{opts: o, model: m, report: &Report{}, functions: map[functionKey]*Function{}, unchecked: map[string]bool{}}
	c.checkModel()
	return c.report
}

type checker struct {
	opts      CheckOptions
	model     *Model
	report    *Report
	functions map[functionKey]*Function
	unchecked map[string]bool
	types     Types
}

func (c *checker) add(where, format string, args ...any) {
	if len(c.report.Problems) >= MaxProblems {
		c.report.Dropped++
		return
	}
	c.report.Problems = append(c.report.Problems, Problem{Where: where, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) checkModel() {
	m := c.model
	if m.GetGraph() == nil {
		c.add("model", "it has no graph")
		return
	}
	if newest := int64(Version_IR_VERSION); m.IrVersion <= 0 || m.IrVersion > newest {
		c.add("model", "ir_version is %d, expected 1 to %d", m.IrVersion, newest)
	}
	c.imports("model", m.OpsetImport)
	for _, f := range m.Functions {
		k := keyOfFunction(f)
		if c.functions[k] != nil {
			c.add("function "+describeFunction(f), "it is defined twice")
		}
		c.functions[k] = f
		if err := shadows(f); err != nil {
			c.add("function "+describeFunction(f), "%v", err)
		}
	}
	seen := map[string]bool{}
	for _, p := range m.MetadataProps {
		if seen[p.Key] {
			c.add("model", "metadata %q is given twice", p.Key)
		}
		seen[p.Key] = true
	}
	c.types = c.opts.Types
	if c.types == nil {
		c.types = DeclaredTypes(m.Graph)
	}
	g := &graphCheck{checker: c, opsets: m.OpsetImport, where: fmt.Sprintf("graph %q", m.Graph.Name)}
	g.graph(m.Graph, nil, true)
	for _, f := range m.Functions {
		c.function(f)
	}
	c.recursion()
}

// imports checks a list of imported opsets.
func (c *checker) imports(where string, list []*OperatorSet) {
	if len(list) == 0 {
		c.add(where, "it imports no opset")
	}
	seen := map[string]bool{}
	for _, o := range list {
		d := NormalizeDomain(o.Domain)
		if seen[d] {
			c.add(where, "it imports the opset of domain %q twice", o.Domain)
		}
		seen[d] = true
		switch latest := schema.Latest(d); {
		case o.Version < 1:
			c.add(where, "it imports opset %d of domain %q", o.Version, o.Domain)
		case d == DomainStandard && o.Version > int64(latest):
			c.add(where, "it imports opset %d; the newest known is %d", o.Version, latest)
		}
	}
}

func (c *checker) function(f *Function) {
	where := "function " + describeFunction(f)
	if f.Name == "" {
		c.add(where, "it has no name")
	}
	c.imports(where, f.OpsetImport)
	types := c.types
	// The values of a function have whatever types its callers give them.
	c.types = func(Value) (TensorType, bool) { return TensorType{}, false }
	g := &graphCheck{checker: c, opsets: f.OpsetImport, where: where, function: f}
	g.function_(f)
	c.types = types
}

// recursion looks for functions that call themselves.
func (c *checker) recursion() {
	state := map[*Function]int{} // 1 being visited, 2 done
	var visit func(f *Function) bool
	visit = func(f *Function) bool {
		switch state[f] {
		case 1:
			return true
		case 2:
			return false
		}
		state[f] = 1
		defer func() { state[f] = 2 }()
		var nodes func(list []*Node) bool
		nodes = func(list []*Node) bool {
			for _, n := range list {
				if g := c.functions[keyOfCall(n)]; g != nil && visit(g) {
					return true
				}
				for _, s := range n.Subgraphs() {
					if nodes(s.Node) {
						return true
					}
				}
			}
			return false
		}
		return nodes(f.Node)
	}
	for _, f := range c.model.Functions {
		if visit(f) {
			c.add("function "+describeFunction(f), "it calls itself, directly or through others")
			return
		}
	}
}

// checkNumbers reports the first number of a tensor that is not finite.
func (c *checker) checkNumbers(t *TensorProto) {
	if !dtypeOf(t).IsFloat() || t.DataLocation == TensorProto_EXTERNAL {
		return
	}
	x, err := TensorOf(t)
	if err != nil {
		return
	}
	if i := firstNonFinite(x); i >= 0 {
		c.add(fmt.Sprintf("initializer %q", t.Name), "element %d is not a finite number", i)
	}
}

func firstNonFinite(x *tensor.Tensor) int {
	// A number is not finite when its exponent's bits are all ones.
	switch x.DType() {
	case tensor.Float32:
		for i, v := range tensor.Data[float32](x) {
			if v-v != 0 {
				return i
			}
		}
	case tensor.Float64:
		for i, v := range x.Float64s() {
			if v-v != 0 {
				return i
			}
		}
	case tensor.Float16:
		for i, v := range tensor.Data[uint16](x) {
			if v&0x7c00 == 0x7c00 {
				return i
			}
		}
	case tensor.BFloat16:
		for i, v := range tensor.Data[uint16](x) {
			if v&0x7f80 == 0x7f80 {
				return i
			}
		}
	}
	return -1
}
