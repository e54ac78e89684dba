package models

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/glob"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TieOptions overrule what [FindTies] decides.
type TieOptions struct {
	// Tie lists patterns of parameters that stay as the file has them although different layers use
	// them. It also lists pairs such as head.weight=transpose(emb.weight) of initializers that are
	// one parameter: A=B, A=transpose(B), A=reshape(B), A=slice(B) or A=cast(B), and cast of one of
	// the others. The elements must be equal bit for bit.
	Tie []string `yaml:"tie,omitempty"`
	// Untie lists patterns of parameters of which every use has a copy of its own, and which are
	// trained apart from other initializers that hold the same elements.
	Untie []string `yaml:"untie,omitempty"`
}

// Validate reports pairs that cannot be read.
func (o TieOptions) Validate() error {
	var p configs.Problems
	for i, s := range o.Tie {
		_, _, err := parsePair(s)
		p.Check(err == nil, fmt.Sprintf("tie[%d]", i), "%v", err)
	}
	return p.Err()
}

// Ties says which initializers of a file are several parameters and which are one.
type Ties struct {
	// Splits are the parameters that an exporter had merged; see [SplitMerged].
	Splits []Split
	// Joins are the initializers that are another one in another form, each after the one it is.
	Joins []Join
}

// Join says that an initializer is another one in another form.
type Join struct {
	Name, Of string
	// op is reshape, transpose, slice, or empty for the same elements in the same shape; cast says
	// that the type is another one.
	op   string
	cast bool
	// shape is that of Name; perm belongs to a transpose, and start, with one entry for every axis
	// of Of, to a slice.
	shape, perm, start []int
	// element i of dims, counted as row-major, is element from + Σ index·step of Of.
	dims, step []int
	from       int
}

// String returns the join as [TieOptions] has it, such as "head.weight=transpose(emb.weight)".
func (j Join) String() string { return j.Name + "=" + j.form() }

func (j Join) form() string {
	s := j.Of
	if j.op != "" {
		s = j.op + "(" + s + ")"
	}
	if j.cast {
		s = "cast(" + s + ")"
	}
	return s
}

// parsePair reads A=transpose(B) and the like; ok is false for a pattern. The result has names,
// operator and cast only.
func parsePair(s string) (j Join, ok bool, err error) {
	var of string
	if j.Name, of, ok = strings.Cut(s, "="); !ok {
		return Join{}, false, nil
	}
	for {
		op, inner, found := strings.Cut(of, "(")
		inner, closed := strings.CutSuffix(inner, ")")
		if !found || !closed {
			break
		}
		switch {
		case op == "cast" && !j.cast && j.op == "":
			j.cast = true
		case slices.Contains([]string{"reshape", "transpose", "slice"}, op) && j.op == "":
			j.op = op
		default:
			return Join{}, false, fmt.Errorf("%q: expected A=B, A=transpose(B), A=reshape(B), A=slice(B) or A=cast(B)", s)
		}
		of = inner
	}
	if j.Of = of; j.Name == "" || j.Of == "" || j.Name == j.Of {
		return Join{}, false, fmt.Errorf("%q: expected the names of two initializers, as in A=transpose(B)", s)
	}
	return j, true, nil
}

// FindTies says which initializers of m are one parameter and which are several, and returns m with
// those that the exporter had merged cut apart, by the rule of [SplitMerged], and with what Untie
// says. Tied weights that the file holds twice are only found here; [Ties.Join] makes them one.
// Contents are shared with m. Patterns and pairs without effect are errors.
//
// Exporters fold what a network does to a weight into a second initializer: an embedding and, for
// the output projection, its transpose. Two floating-point initializers with at least two extents
// above 1 are one parameter if
//
//   - the elements of one are, bit for bit, those of the other as it is, or in a transpose, a
//     reshape, a contiguous slice or a cast of it, or a cast of one of these;
//   - these elements have at least 64 distinct values, or 16 where the name is one that exporters
//     make up for the result of an operator, such as "t" or "onnx::MatMul_12";
//   - neither is a buffer, what the exporter calls a constant, an operand of a normalisation, or,
//     both of them, a factor of a product element by element;
//   - and the same operator does not take both at the same place in modules that differ in nothing
//     but an index, which is what copies of a layer look like. Where the file does not say which
//     modules they are, initializers of the same form at the same place of the same operator stay
//     apart.
//
// The value of a Constant node that is a weight in another form becomes an initializer. All are
// found by hashes of their elements, in time linear in the file.
func FindTies(m *onnx.Model, o TieOptions) (*onnx.Model, Ties, error) {
	var t Ties
	var keep []string
	var pairs []Join
	for _, s := range o.Tie {
		switch j, pair, err := parsePair(s); {
		case err != nil:
			return nil, t, fmt.Errorf("tie %w", err)
		case pair && (glob.MatchAny(o.Untie, j.Name) || glob.MatchAny(o.Untie, j.Of)):
			return nil, t, fmt.Errorf("tie %q: untie names one of the two", s)
		case pair:
			pairs = append(pairs, j)
		default:
			keep = append(keep, s)
		}
	}
	uses := usesOf(m.Graph)
	apart := map[string]bool{}
	for _, p := range m.Graph.Initializer {
		apart[p.Name] = glob.MatchAny(o.Untie, p.Name)
	}
	for _, n := range m.Graph.Node {
		if name := string(n.Out(0)); standard(n, "Constant") {
			apart[name] = glob.MatchAny(o.Untie, name)
		}
	}
	var several []string
	var all []Join
	for _, pattern := range o.Untie {
		if slices.ContainsFunc(m.Graph.Initializer, func(p *onnx.TensorProto) bool { return glob.Match(pattern, p.Name) && uses[p.Name].nodes > 1 }) {
			several = append(several, pattern)
			continue
		}
		if all == nil {
			var err error
			if _, all, err = findJoins(m, nil, nil, nil); err != nil {
				return nil, t, err
			}
		}
		if !slices.ContainsFunc(all, func(j Join) bool { return glob.Match(pattern, j.Name) || glob.Match(pattern, j.Of) }) {
			return nil, t, fmt.Errorf("untie %q: no initializer of that name is used more than once or tied to another", pattern)
		}
	}
	m, err := Untie(m, several)
	if err != nil {
		return nil, t, err
	}
	for _, p := range m.Graph.Initializer {
		if _, known := apart[p.Name]; !known {
			apart[p.Name] = true
		}
	}
	if m, t.Splits, err = SplitMerged(m, keep); err != nil {
		return nil, t, err
	}
	origin := map[string]string{}
	for _, s := range t.Splits {
		for _, name := range s.Into {
			origin[name] = s.Name
		}
	}
	m, t.Joins, err = findJoins(m, apart, origin, pairs)
	return m, t, err
}

// Join returns a copy of m, which [FindTies] has returned or was made of that, in which tied
// weights that the file holds twice are one initializer and nodes that make the other forms of it.
// Gradients of all uses add up, and no step can part them. Contents are shared with m.
func (t Ties) Join(m *onnx.Model) (*onnx.Model, error) {
	if len(t.Joins) == 0 {
		return m, nil
	}
	m, err := onnx.Upgrade(m, max(m.Opset(onnx.DomainStandard), 13))
	if err != nil {
		return nil, err
	}
	m = m.ShallowClone()
	g, b := m.Graph, onnx.Extend(m)
	types := map[string]tensor.DType{}
	for _, p := range g.Initializer {
		types[p.Name] = tensor.DType(p.DataType)
	}
	var nodes []*onnx.Node
	joined := map[string]bool{}
	for _, j := range t.Joins {
		from, to := types[j.Of], types[j.Name]
		if from == 0 || to == 0 {
			return nil, fmt.Errorf("tie %s: the model has no such initializers", j)
		}
		joined[j.Name] = true
		add := func(op string, last bool, in []onnx.Value, attributes ...*onnx.Attribute) onnx.Value {
			out := onnx.Value(j.Name)
			if !last {
				out = b.Fresh(j.Name + "/" + op)
			}
			n := &onnx.Node{Name: string(out) + "/tie", OpType: op, Output: []string{string(out)}, Attribute: attributes}
			for _, v := range in {
				n.Input = append(n.Input, string(v))
			}
			nodes = append(nodes, n)
			return out
		}
		v := onnx.Value(j.Of)
		if from != to {
			v = add("Cast", j.op == "", []onnx.Value{v}, onnx.AttrInt("to", int(to)))
		}
		switch {
		case j.op == "transpose":
			add("Transpose", true, []onnx.Value{v}, onnx.AttrInts("perm", j.perm...))
		case j.op == "reshape":
			add("Reshape", true, []onnx.Value{v, b.Ints(j.shape...)})
		case j.op == "slice":
			ends, axes := slices.Clone(j.start), make([]int, len(j.start))
			for i := range ends {
				ends[i] += j.dims[i]
				axes[i] = i
			}
			same := len(j.dims) == len(j.shape)
			v = add("Slice", same, []onnx.Value{v, b.Ints(j.start...), b.Ints(ends...), b.Ints(axes...)})
			if !same {
				add("Reshape", true, []onnx.Value{v, b.Ints(j.shape...)})
			}
		case from == to:
			add("Identity", true, []onnx.Value{v})
		}
	}
	g.Node = slices.Concat(nodes, g.Node)
	g.Initializer = slices.DeleteFunc(g.Initializer, func(p *onnx.TensorProto) bool { return joined[p.Name] })
	// Files of IR 3 list initializers among the inputs.
	g.Input = slices.DeleteFunc(g.Input, func(v *onnx.ValueInfo) bool { return joined[v.Name] })
	return m, b.Err()
}

// Fill adds the content of joined initializers to values, which hold that of the parameters by
// their names, as float32: what is written stays equal.
func (t Ties) Fill(values map[string]*tensor.Tensor) {
	for _, j := range t.Joins {
		x := values[j.Of]
		if x == nil {
			continue
		}
		out := tensor.New(tensor.Float32, j.shape...)
		src, dst := x.Float32s(), out.Float32s()
		strided(j.dims, j.step, j.from, func(i, at int) bool {
			dst[i] = src[at]
			return true
		})
		values[j.Name] = out
	}
}

// Roles returns options in which a pattern that matches a joined initializer matches the parameter
// that it is.
func (t Ties) Roles(m *onnx.Model, o Options) Options {
	root := map[string]string{}
	for _, j := range t.Joins {
		of := j.Of
		if root[of] != "" {
			of = root[of]
		}
		root[j.Name] = of
	}
	for _, list := range []*[]string{&o.Train, &o.Freeze} {
		var out []string
		for _, pattern := range *list {
			var roots []string
			for _, j := range t.Joins {
				if glob.Match(pattern, j.Name) {
					roots = append(roots, root[j.Name])
				}
			}
			if len(roots) == 0 || slices.ContainsFunc(m.Graph.Initializer, func(p *onnx.TensorProto) bool { return root[p.Name] == "" && glob.Match(pattern, p.Name) }) {
				out = append(out, pattern)
			}
			out = append(out, roots...)
		}
		*list = out
	}
	return o
}

// strided calls f with i = 0, 1, … and the offset from + Σ index·step of every index within dims,
// row-major, until it returns false.
func strided(dims, step []int, from int, f func(i, at int) bool) bool {
	n := 1
	for _, d := range dims {
		n *= d
	}
	index := make([]int, len(dims))
	for i, at := 0, from; i < n; i++ {
		if !f(i, at) {
			return false
		}
		for k := len(dims) - 1; k >= 0; k-- {
			at += step[k]
			if index[k]++; index[k] < dims[k] {
				break
			}
			at -= step[k] * dims[k]
			index[k] = 0
		}
	}
	return true
}

// stridesOf returns the elements between neighbours along every axis of a row-major tensor.
func stridesOf(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// computedName matches the names that exporters make up for what they have folded: those of PyTorch's
// operators and those of [folded].
var computedName = regexp.MustCompile(`^(.*/)?_?(t|mT|T|numpy_T|transpose|permute|view|reshape|unsqueeze|squeeze|slice|select|expand|to|_to_copy|type_as|cast|clone|contiguous|detach|alias|Transpose|Reshape|Cast|Slice|Unsqueeze|Squeeze)(_\d+)?(_output_\d+)?$`)

func isComputed(name string) bool { return computedName.MatchString(name) || folded.MatchString(name) }
