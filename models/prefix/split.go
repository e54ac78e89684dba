package prefix

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Options say what is split off.
type Options struct {
	// Windows are the names of inputs that hold windows, all of one shape behind the batch, which
	// is the symbol Batch.
	Windows []string
	Batch   string
	// Constant says of a parameter whether it stays as it is, and its name. Parameters that are
	// always equal, such as those of a target network whose model is frozen, have one name.
	Constant func(param string) (name string, ok bool)
	// Fixed, unless nil, says which initializers count as constants; what depends on others stays
	// in the rest. So parts may be found that networks with different weights have in common.
	Fixed func(initializer string) bool
}

// Split is networks in two: parts that depend on windows alone, and the rest.
type Split struct {
	// Rest has the networks that were given, with inputs [InputName] in place of what the parts
	// compute. A network's windows are inputs still where something else reads them.
	Rest []*models.Network
	// Parts compute these inputs.
	Parts []*Part
}

// InputName is the input of value i that parts compute, in a network whose windows are an input of
// that name.
func InputName(window string, i int) string { return fmt.Sprintf("%s.frozen%d", window, i) }

// Of splits networks; nil where nothing that pays to be kept depends on windows alone. The networks
// are not changed.
func Of(nets []*models.Network, o Options) (*Split, error) {
	r := &registry{o: o, values: map[string]*value{}, shapes: map[string][]int{}}
	var cuts []*cut
	for _, n := range nets {
		c, err := r.cut(n)
		if err != nil {
			return nil, fmt.Errorf("split %s: %w", n.Model.GetGraph().GetName(), err)
		}
		cuts = append(cuts, c)
	}
	crossing := map[*value]bool{}
	for _, c := range cuts {
		for _, v := range c.crossing {
			crossing[v] = true
		}
	}
	if len(crossing) == 0 {
		return nil, nil
	}
	all := slices.SortedFunc(maps.Keys(crossing), func(a, b *value) int { return a.id - b.id })
	number := map[*value]int{}
	for i, v := range all {
		number[v] = i
	}
	s := &Split{Parts: r.parts(all)}
	for i, c := range cuts {
		rest, err := c.rest(number)
		if err != nil {
			return nil, fmt.Errorf("split %s: %w", nets[i].Model.GetGraph().GetName(), err)
		}
		s.Rest = append(s.Rest, rest)
	}
	return s, nil
}

// value is what nodes of one or more networks compute alike.
type value struct {
	id  int
	key string
	// from is nil for leaves: a constant, a parameter, or else the window.
	from     *step
	constant *onnx.TensorProto
	param    string
	// windowed values depend on the window, weighted ones on a parameter.
	windowed, weighted bool
	// row is the shape of a row's piece, nil where there is none. folded says that the first extent
	// of the value has several for each row of the batch, the first of row.
	row    []int
	folded bool
}

// step is a node that depends on windows, constants and parameters that stay as they are.
type step struct {
	node *onnx.Node
	in   []*value
	out  []*value
}

// registry has the values of all networks.
type registry struct {
	o      Options
	values map[string]*value
	// model is the first network's, whose opset all have; shape is that of a window, and shapes has
	// those of parameters.
	model  *onnx.Model
	shape  []int
	shapes map[string][]int
}

func (r *registry) value(key string, v value) *value {
	if old := r.values[key]; old != nil {
		return old
	}
	v.id, v.key = len(r.values), key
	r.values[key] = &v
	return &v
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d %s", len(p), p)
	}
	return string(h.Sum(nil))
}

// cut is where one network is cut.
type cut struct {
	o   Options
	net *models.Network
	// named are the values that depend on nothing that changes, by their names, and windows has the
	// input that each name depends on.
	named   map[string]*value
	windows map[string]string
	// apart are the nodes of the parts that the rest does not compute.
	apart    map[*onnx.Node]bool
	crossing map[string]*value
}

// cut finds out what of a network depends on windows alone, and where to cut.
func (r *registry) cut(n *models.Network) (*cut, error) {
	c := &cut{o: r.o, net: n, named: map[string]*value{}, windows: map[string]string{}, apart: map[*onnx.Node]bool{}}
	var envs [2]*shape.Env
	for i := range envs {
		var err error
		if envs[i], err = shape.Infer(n.Model, map[string]int{r.o.Batch: i + 2}); err != nil {
			return nil, err
		}
	}
	if r.model == nil {
		r.model = n.Model
	} else if r.model.Opset(onnx.DomainStandard) != n.Model.Opset(onnx.DomainStandard) {
		// The meaning of nodes may differ.
		return c, nil
	}
	if err := r.leaves(c, envs[0]); err != nil {
		return nil, err
	}
	for _, node := range n.Model.Graph.Node {
		if err := r.step(c, node, envs); err != nil {
			return nil, err
		}
	}
	c.choose()
	return c, nil
}

// leaves finds constants, parameters and windows of a network.
func (r *registry) leaves(c *cut, env *shape.Env) error {
	for _, t := range c.net.Model.Graph.Initializer {
		if r.o.Fixed != nil && !r.o.Fixed(t.Name) {
			continue
		}
		own := proto.Clone(t).(*onnx.TensorProto)
		own.Name, own.DocString = "", ""
		text, err := onnx.MarshalTensor(own)
		if err != nil {
			return err
		}
		c.named[t.Name] = r.value(digest("constant", string(text)), value{constant: t})
	}
	for _, s := range c.net.Specs {
		if name, ok := r.o.Constant(s.Name); ok {
			r.shapes[name] = s.Shape
			c.named[s.Name] = r.value(digest("param", name), value{param: name, weighted: true})
		}
	}
	for _, name := range r.o.Windows {
		if !slices.Contains(c.net.Inputs, name) {
			continue
		}
		t := env.Type(onnx.Value(name))
		dims, ok := t.Static()
		if !ok || len(dims) == 0 || t.DType != tensor.Float32 || r.shape != nil && !slices.Equal(r.shape, dims[1:]) {
			return fmt.Errorf("input %q is %v, expected windows float32[%s %v]", name, t, r.o.Batch, r.shape)
		}
		r.shape = dims[1:]
		c.named[name] = r.value("window", value{windowed: true})
		c.windows[name] = name
	}
	return nil
}

// step adds a node if it depends on nothing that changes.
func (r *registry) step(c *cut, n *onnx.Node, envs [2]*shape.Env) error {
	if onnx.NormalizeDomain(n.Domain) != "" || len(n.Subgraphs()) > 0 || random(n.OpType) {
		return nil
	}
	s, keys, window := &step{node: n}, []string(nil), ""
	windowed, weighted := false, false
	for _, in := range n.Input {
		v := c.named[in]
		if in != "" && v == nil {
			return nil
		}
		s.in = append(s.in, v)
		if v == nil {
			keys = append(keys, "")
			continue
		}
		keys, windowed, weighted = append(keys, v.key), windowed || v.windowed, weighted || v.weighted
		if w := c.windows[in]; w != "" && window != "" && w != window {
			// It brings two observations together.
			return nil
		} else if w != "" {
			window = w
		}
	}
	for _, out := range n.Output {
		for _, env := range envs {
			if _, ok := env.Type(onnx.Value(out)).Static(); out != "" && !ok {
				// The shape may depend on the rows of the batch together.
				return nil
			}
		}
	}
	plain := n.ShallowClone()
	plain.Name, plain.DocString, plain.MetadataProps, plain.Input, plain.Output = "", "", nil, nil, nil
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(plain)
	if err != nil {
		return err
	}
	key := digest(append(keys, string(text))...)
	for i, out := range n.Output {
		v := r.value(digest(key, fmt.Sprint(i)), value{from: s, windowed: windowed, weighted: weighted})
		if s.out = append(s.out, v); v.from == s {
			v.row, v.folded = rowOf(envs[0].Type(onnx.Value(out)), envs[1].Type(onnx.Value(out)))
		}
		if out == "" {
			continue
		}
		if c.named[out] = v; windowed {
			c.windows[out] = window
		}
	}
	c.apart[n] = windowed
	return nil
}

// random reports whether a node may give something else each time.
func random(op string) bool {
	return strings.HasPrefix(op, "Random") || op == "Multinomial" || op == "Bernoulli" || op == "Dropout"
}

// rowOf returns the shape of a row's piece of a value whose types are those of batches of two and
// of three.
func rowOf(two, three onnx.TensorType) (row []int, folded bool) {
	a, ok := two.Static()
	b, _ := three.Static()
	if !ok || two.DType != tensor.Float32 || len(a) == 0 || len(a) != len(b) || !slices.Equal(a[1:], b[1:]) {
		return nil, false
	}
	k := b[0] - a[0]
	if k < 1 || a[0] != 2*k {
		return nil, false
	}
	if k == 1 {
		return append([]int{}, a[1:]...), false
	}
	return append([]int{k}, a[1:]...), true
}

// choose decides which values cross. Nodes whose results cannot cross, or are cheap to have from
// what is there, are computed by the rest as well.
func (c *cut) choose() {
	g := c.net.Model.Graph
	producer := map[string]*onnx.Node{}
	for _, n := range g.Node {
		for _, o := range n.Output {
			producer[o] = n
		}
	}
	outputs := map[string]bool{}
	for _, v := range g.Output {
		outputs[v.Name] = true
	}
	for changed := true; changed; {
		changed = false
		c.crossing = map[string]*value{}
		cross := func(name string) {
			if n := producer[name]; n != nil && c.apart[n] {
				c.crossing[name] = c.named[name]
			}
		}
		for name := range outputs {
			cross(name)
		}
		for _, n := range g.Node {
			if !c.apart[n] {
				for _, v := range onnx.Reads(n) {
					cross(string(v))
				}
			}
		}
		known := map[*onnx.Node]bool{}
		// The order of nodes decides, so that equal networks are cut alike.
		for _, n := range g.Node {
			if !c.apart[n] {
				continue
			}
			for _, o := range n.Output {
				if v := c.crossing[o]; v != nil && (v.row == nil || outputs[o] || c.cheap(n, producer, known)) {
					c.apart[n], changed = false, true
					break
				}
			}
		}
	}
}

// cheap reports whether the rest can have a node's result from values that cross anyway, or from
// the window, without the products that are worth keeping. known has what was found out before.
func (c *cut) cheap(n *onnx.Node, producer map[string]*onnx.Node, known map[*onnx.Node]bool) bool {
	if is, ok := known[n]; ok {
		return is
	}
	known[n] = false
	switch n.OpType {
	case "MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "LSTM", "GRU", "RNN", "Attention":
		return false
	}
	for _, in := range n.Input {
		v := c.named[in]
		if in == "" || !v.windowed || v.from == nil || c.crossing[in] != nil {
			continue
		}
		if p := producer[in]; c.apart[p] && !c.cheap(p, producer, known) {
			return false
		}
	}
	known[n] = true
	return true
}

// rest returns the network with inputs for the values that cross, whose numbers are given.
func (c *cut) rest(number map[*value]int) (*models.Network, error) {
	m := c.net.Model.ShallowClone()
	g, b := m.Graph, onnx.Extend(m)
	nodes := g.Node
	g.Node = nil
	names := slices.Sorted(maps.Keys(c.crossing))
	slices.SortStableFunc(names, func(a, b string) int { return number[c.crossing[a]] - number[c.crossing[b]] })
	var inputs []*onnx.ValueInfo
	given := map[string]string{}
	for _, name := range names {
		v := c.crossing[name]
		input := InputName(c.windows[name], number[v])
		if first, ok := given[input]; ok {
			// Two nodes compute the same.
			b.Append(&onnx.Node{OpType: "Identity", Input: []string{first}, Output: []string{name}})
			continue
		}
		given[input] = name
		dims := []onnx.Dim{onnx.Symbol(c.o.Batch)}
		for _, d := range v.row {
			dims = append(dims, onnx.Known(d))
		}
		inputs = append(inputs, onnx.NewValueInfo(onnx.Value(input), onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: dims}))
		if !v.folded {
			b.Append(&onnx.Node{OpType: "Identity", Input: []string{input}, Output: []string{name}})
			continue
		}
		shape := b.Ints(append([]int{-1}, v.row[1:]...)...)
		b.Append(&onnx.Node{OpType: "Reshape", Input: []string{input, string(shape)}, Output: []string{name}})
	}
	if err := b.Err(); err != nil {
		return nil, err
	}
	for i, n := range nodes {
		if !c.apart[c.net.Model.Graph.Node[i]] {
			g.Node = append(g.Node, n)
		}
	}
	pruned, err := onnx.Prune(m)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, n := range pruned.Graph.Node {
		for _, v := range onnx.Reads(n) {
			used[string(v)] = true
		}
	}
	for _, v := range pruned.Graph.Output {
		used[v.Name] = true
	}
	out := &models.Network{Model: pruned, Outputs: c.net.Outputs, Constants: c.net.Constants, Buffers: c.net.Buffers, Notes: c.net.Notes}
	isParam := map[string]bool{}
	for _, s := range c.net.Specs {
		isParam[s.Name] = true
		if used[s.Name] {
			out.Specs = append(out.Specs, s)
		}
	}
	all := append(slices.Clone(inputs), pruned.Graph.Input...)
	pruned.Graph.Input = nil
	for _, v := range all {
		// Other inputs stay even where nothing reads them any more, but for windows.
		if slices.Contains(c.o.Windows, v.Name) && !used[v.Name] || isParam[v.Name] && !used[v.Name] {
			continue
		}
		pruned.Graph.Input = append(pruned.Graph.Input, v)
		if !isParam[v.Name] {
			out.Inputs = append(out.Inputs, v.Name)
		}
	}
	pruned.Graph.ValueInfo = nil
	return out, nil
}
