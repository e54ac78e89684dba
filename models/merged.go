package models

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/glob"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Split says that an initializer was several parameters: the first keeps its name, the others have
// names of their own.
type Split struct {
	Name string
	Into []string
}

// SplitMerged returns a copy of m in which parameters of different layers that an exporter merged,
// because they began equal, are initializers of their own, and says which they were. Those that
// match a pattern of keep stay as they are; a pattern that matches no initializer that is used more
// than once is an error. Contents are shared with m.
//
// PyTorch's exporters merge initializers of equal content: the fresh scales and biases of all
// normalisation layers, zero biases, and whole layers that were copied from one, as in
// nn.TransformerEncoder. Weights that a network ties on purpose look the same. The rule that
// distinguishes them:
//
//   - A use belongs to the parameter whose name an Identity gives it, which is what PyTorch's
//     TorchScript exporter leaves behind, or else to the module that the using node lies in. Where
//     the file does not say that, it belongs to the nearest weights on the way to it, because a
//     layer that is used twice has the same ones.
//   - Uses inside the module that the initializer is called after, and uses in one module, are one
//     parameter's. Elements of a list of parameters, which end in a number, are used once.
//   - A scalar that an operator's own implementation uses, such as the ½ of GELU, is a literal that
//     equals the parameter, and becomes a constant.
//   - If all elements are equal, as in fresh scales and biases, the uses of different modules are
//     cut apart; so are those of normalisations, if the file says which modules they lie in.
//   - Otherwise they are cut apart only where the same operator takes them at the same place in
//     modules that differ in nothing but an index, layers.0 and layers.1. Everything else, such as
//     an embedding that is also the output projection, stays tied.
func SplitMerged(m *onnx.Model, keep []string) (*onnx.Model, []Split, error) {
	c := m.ShallowClone()
	s := newMerged(c)
	for _, pattern := range keep {
		if !slices.ContainsFunc(c.Graph.Initializer, func(p *onnx.TensorProto) bool { return glob.Match(pattern, p.Name) && len(s.sites[p.Name]) > 1 }) {
			return nil, nil, fmt.Errorf("tie %q: no initializer of that name is used more than once", pattern)
		}
	}
	var splits []Split
	for _, p := range slices.Clone(c.Graph.Initializer) {
		if len(s.sites[p.Name]) < 2 || s.public[p.Name] || glob.MatchAny(keep, p.Name) || !tensor.DType(p.DataType).IsFloat() {
			continue
		}
		into, err := s.split(p)
		if err != nil {
			return nil, nil, fmt.Errorf("split %q: %w", p.Name, err)
		}
		if len(into) > 0 {
			splits = append(splits, Split{Name: p.Name, Into: into})
		}
	}
	if !s.changed {
		return m, nil, nil
	}
	// Identity nodes whose result has become an initializer.
	initializers := map[string]bool{}
	for _, p := range c.Graph.Initializer {
		initializers[p.Name] = true
	}
	c.Graph.Node = slices.DeleteFunc(c.Graph.Node, func(n *onnx.Node) bool { return standard(n, "Identity") && initializers[string(n.Out(0))] })
	return c, splits, s.b.Err()
}

// site is one use of an initializer.
type site struct {
	node  *onnx.Node
	input int
	// alias is the name that Identity nodes give the initializer on the way, or empty.
	alias string
}

// merged is the work of [SplitMerged].
type merged struct {
	b     *onnx.Builder
	model *onnx.Model
	uses  map[string]use
	kinds map[string]string
	// sites lists the uses of every initializer by its name; public are the names that the graph's
	// interface shows.
	sites  map[string][]site
	public map[string]bool
	// root maps initializers and their aliases to the initializer; constant says whether all of its
	// elements are equal.
	root     map[string]*onnx.TensorProto
	constant map[string]bool
	x        *onnx.Index
	changed  bool
}

func newMerged(m *onnx.Model) *merged {
	g := m.Graph
	s := &merged{
		b: onnx.Extend(m), model: m, uses: usesOf(g), kinds: declaredKinds(g), sites: map[string][]site{}, public: map[string]bool{}, root: map[string]*onnx.TensorProto{},
		constant: map[string]bool{}, x: onnx.NewIndex(g),
	}
	for _, p := range g.Initializer {
		s.root[p.Name] = p
	}
	identity := map[*onnx.Node]bool{}
	// Exporters put them first, but chains of them are in order too.
	for _, n := range g.Node {
		if p := s.root[string(n.In(0))]; p != nil && standard(n, "Identity") {
			s.root[string(n.Out(0))], identity[n] = p, true
		}
	}
	for _, v := range slices.Concat(g.Input, g.Output) {
		if p := s.root[v.Name]; p != nil {
			s.public[p.Name] = true
		}
	}
	// The walk never fails, because this function does not.
	_ = m.EachGraph(func(g *onnx.Graph) error {
		for _, n := range g.Node {
			if identity[n] {
				continue
			}
			for i, name := range n.Input {
				p := s.root[name]
				if p == nil || typeOnly(n, i) {
					continue
				}
				at := site{node: n, input: i}
				if name != p.Name {
					at.alias = name
				}
				s.sites[p.Name] = append(s.sites[p.Name], at)
			}
		}
		return nil
	})
	return s
}

// split cuts one initializer apart and returns the new names.
func (s *merged) split(p *onnx.TensorProto) ([]string, error) {
	sites := s.sites[p.Name]
	if k, err := s.kindOf(p, sites); err != nil || k != isAParameter {
		return nil, err
	}
	equal, err := s.isConstant(p)
	if err != nil {
		return nil, err
	}
	var order []string
	groups := map[string][]site{}
	for _, u := range sites {
		k := s.key(p, u)
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], u)
	}
	// The parameter of the initializer's own module keeps the name.
	if i := slices.Index(order, ownKey); i > 0 {
		order = slices.Insert(slices.Delete(order, i, i+1), 0, ownKey)
	}
	if i := slices.Index(order, literalKey); i >= 0 && len(order) > 1 {
		order = append(slices.Delete(order, i, i+1), literalKey)
	}
	var into []string
	data, err := onnx.TensorOf(p)
	if err != nil {
		return nil, err
	}
	first := groups[order[0]]
	for _, k := range order[1:] {
		if !equal && !ofNorms(first, groups[k]) && !s.copied(p, first, groups[k]) {
			continue
		}
		name := groups[k][0].alias
		if k == literalKey {
			name = string(s.b.Initializer("const/"+p.Name, data))
		} else if name == "" {
			name = string(s.b.Initializer(s.nameFor(p.Name, first[0], groups[k][0]), data))
		} else {
			s.model.Graph.Initializer = append(s.model.Graph.Initializer, onnx.ProtoOf(name, data))
		}
		for _, u := range groups[k] {
			u.node.Input[u.input] = name
		}
		s.changed = true
		if k != literalKey {
			into = append(into, name)
		}
	}
	return into, s.b.Err()
}

// kindOf decides as [FromModel] would if every use were a direct one; statistics are buffers.
func (s *merged) kindOf(p *onnx.TensorProto, sites []site) (kind, error) {
	all := s.uses[p.Name]
	seen := map[string]bool{}
	for _, u := range sites {
		if u.alias != "" && !seen[u.alias] {
			seen[u.alias] = true
			all = all.add(s.uses[u.alias])
			// The Identity itself.
			all.nodes--
			all.moved--
		}
	}
	if all.statistics() {
		return isABuffer, nil
	}
	return kindOf(p, all, s.kinds[p.Name])
}

func (s *merged) isConstant(p *onnx.TensorProto) (bool, error) {
	equal, ok := s.constant[p.Name]
	if ok {
		return equal, nil
	}
	x, err := float32s(p)
	if err != nil {
		return false, err
	}
	equal = true
	for _, v := range x {
		equal = equal && v == x[0]
	}
	s.constant[p.Name] = equal
	return equal, nil
}

// ownKey stands for the module that an initializer is called after.
const ownKey = "own"

// literalKey stands for literals in the implementation of operators.
const literalKey = "literal"

// key tells uses of one parameter from those of another. Uses that nothing is known of share the
// empty key.
func (s *merged) key(p *onnx.TensorProto, u site) string {
	if u.alias != "" {
		return "alias " + u.alias
	}
	path, ok := moduleOf(u.node)
	switch {
	case ok && len(p.Dims) == 0 && folded.MatchString(string(u.node.Out(0))):
		return literalKey
	case ok && element.MatchString(p.Name):
		return "element " + strconv.Itoa(slices.Index(s.sites[p.Name], u))
	case !ok:
		if w := s.nearest(u.node, p); w != "" {
			return "weights " + w
		}
		return ""
	}
	if owner, ok := ownerOf(p.Name); ok && within(path, owner) {
		return ownKey
	}
	return "module " + path
}

// nearest names the weights, other than p and than fresh scales and biases, of the node itself or
// else of the closest nodes before it that have any.
func (s *merged) nearest(n *onnx.Node, p *onnx.TensorProto) string {
	level, seen := []*onnx.Node{n}, map[*onnx.Node]bool{n: true}
	for range 16 {
		var names []string
		var next []*onnx.Node
		for _, n := range level {
			for _, in := range n.Input {
				q := s.root[in]
				if q == nil {
					if before := s.x.Producer(onnx.Value(in)); before != nil && !seen[before] {
						seen[before] = true
						next = append(next, before)
					}
					continue
				}
				if q == p || !tensor.DType(q.DataType).IsFloat() || len(q.Dims) < 2 {
					continue
				}
				if equal, err := s.isConstant(q); err == nil && !equal {
					names = append(names, in)
				}
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			return strings.Join(slices.Compact(names), " ")
		}
		level = next
	}
	return ""
}

// ofNorms reports whether normalisations in modules that the file names are all that uses a
// parameter.
func ofNorms(groups ...[]site) bool {
	return !slices.ContainsFunc(slices.Concat(groups...), func(u site) bool {
		_, known := moduleOf(u.node)
		return !normalizations[u.node.OpType] || !known && u.alias == ""
	})
}

// copied reports whether two groups of uses are those of a layer and its copy.
func (s *merged) copied(p *onnx.TensorProto, a, b []site) bool {
	x, y := pathOf(p.Name, a[0]), pathOf(p.Name, b[0])
	if x == y || index.ReplaceAllString(x, "#") != index.ReplaceAllString(y, "#") {
		return false
	}
	return slices.ContainsFunc(a, func(u site) bool {
		return slices.ContainsFunc(b, func(v site) bool {
			return u.node.OpType == v.node.OpType && u.node.Domain == v.node.Domain && u.input == v.input
		})
	})
}

// element matches the end of the name of a list's element.
var element = regexp.MustCompile(`\.\d+$`)

// index matches a component of a module's path that is a number.
var index = regexp.MustCompile(`\b\d+\b`)

// pathOf is the path of the layer that a use belongs to: that of the parameter's name, unless the
// node lies in another module.
func pathOf(name string, u site) string {
	if u.alias != "" {
		name = u.alias
	}
	owner, named := ownerOf(name)
	path, ok := moduleOf(u.node)
	if !ok || named && (u.alias != "" || within(path, owner) || within(owner, path)) {
		return owner
	}
	return path
}

// nameFor makes the name of a parameter of the module of v after that of u.
func (s *merged) nameFor(name string, u, v site) string {
	from, _ := moduleOf(u.node)
	to, ok := moduleOf(v.node)
	if element.MatchString(name) {
		for i := 0; ; i++ {
			if next := element.ReplaceAllString(name, "."+strconv.Itoa(i)); s.b.Free(next) {
				return next
			}
		}
	}
	if !ok || folded.MatchString(name) {
		for i := 2; ; i++ {
			if next := name + "." + strconv.Itoa(i); s.b.Free(next) {
				return next
			}
		}
	}
	rest, found := strings.CutPrefix(name, from+".")
	if !found || from == "" {
		rest = name[strings.LastIndexByte(name, '.')+1:]
	}
	if to == "" {
		return rest
	}
	return to + "." + rest
}

// scopesKey is where PyTorch's exporter, from 2.5 on, lists the modules that a node lies in, the
// outermost first and the node's own name at the end.
const scopesKey = "pkg.torch.onnx.name_scopes"

// moduleOf returns the path of the module that a node lies in, with dots, as PyTorch writes it; ok
// is false when the file does not say.
func moduleOf(n *onnx.Node) (path string, ok bool) {
	for _, p := range n.MetadataProps {
		if p.Key == scopesKey {
			var scopes []string
			for _, part := range strings.Split(strings.Trim(p.Value, "[]"), ",") {
				scopes = append(scopes, strings.Trim(part, ` '"`))
			}
			if len(scopes) < 2 {
				return "", false
			}
			return scopes[len(scopes)-2], true
		}
	}
	// TorchScript: /enc/layers.0/norm1/LayerNormalization, where layers.0 is one module, and the
	// modules of a list inside a list are called after both.
	if !strings.HasPrefix(n.Name, "/") {
		return "", false
	}
	parts := strings.Split(n.Name[1:], "/")
	for _, part := range parts[:len(parts)-1] {
		switch last := path[strings.LastIndexByte(path, '/')+1:]; {
		case path == "":
			path = part
		case strings.HasPrefix(part, last+"."):
			path = path[:len(path)-len(last)] + part
		default:
			path += "/" + part
		}
	}
	return strings.ReplaceAll(path, "/", "."), true
}

// ownerOf returns the path of the module that an initializer is called after; ok is false for names
// that an exporter made up.
func ownerOf(name string) (path string, ok bool) {
	if folded.MatchString(name) || literal.MatchString(name) {
		return "", false
	}
	return name[:max(0, strings.LastIndexByte(name, '.'))], true
}

// within reports whether a module is another one or a part of it. A number after an underscore is
// TorchScript's for a module that is called again.
func within(path, owner string) bool {
	if owner == "" {
		return true
	}
	rest, ok := strings.CutPrefix(path, owner)
	return ok && (rest == "" || rest[0] == '.' || again.MatchString(rest))
}

var again = regexp.MustCompile(`^_\d+(\.|$)`)
