package models

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The distinct values that equal elements need to have: no two weights that were drawn apart have
// so many in common, while tables of small numbers might. minComputed is for names that exporters
// make up for what they fold.
const (
	minDistinct = 64
	minComputed = 16
)

// maxTransposed is the greatest rank of which transposes are tried.
const maxTransposed = 5

// normalizations are the operators whose scales and offsets are never joined.
var normalizations = map[string]bool{
	"BatchNormalization": true, "LayerNormalization": true, "GroupNormalization": true, "InstanceNormalization": true, "RMSNormalization": true,
	"SimplifiedLayerNormalization": true, "SkipLayerNormalization": true, "LpNormalization": true,
}

// joiner finds the initializers that are others in another form; [FindTies] gives the rule.
type joiner struct {
	s *merged
	// apart are initializers that are left alone, and origin tells of those that were cut from
	// another which; modules are those that nodes or parts lie in.
	apart   map[string]bool
	origin  map[string]string
	modules map[string]bool
	// lifted are values of Constant nodes, which no weight is joined to.
	lifted  map[string]bool
	weights []*weight
}

// weight is an initializer that may be joined.
type weight struct {
	p        *onnx.TensorProto
	kind     kind
	computed bool
	shape    []int
	// forms are its elements in its own type and in those narrower ones that the file has.
	forms  []elements
	places []place
	// equal are others with the same elements in some order, and slices those that hold it as a
	// part; misses counts places where it was looked for in vain.
	equal  []*weight
	slices []Join
	misses int
	// of is what it is joined to, and cluster the first of those that it equals as a whole.
	of, cluster *weight
	join        Join
	members     []*weight
}

func (w *weight) own() elements { return w.forms[0] }

// place is where the nodes of a module take a weight; known says that the file names the module.
type place struct {
	op, domain string
	input      int
	path       string
	known      bool
}

// elements are those of a tensor as bits.
type elements struct {
	dtype tensor.DType
	n     int
	at    func(i int) uint64
}

func elementsOf(t *tensor.Tensor) elements {
	e := elements{dtype: t.DType(), n: t.Len()}
	switch t.DType() {
	case tensor.Float32:
		x := t.Float32s()
		e.at = func(i int) uint64 { return uint64(math.Float32bits(x[i])) }
	case tensor.Float64:
		x := t.Float64s()
		e.at = func(i int) uint64 { return math.Float64bits(x[i]) }
	default:
		x := tensor.Data[uint16](t)
		e.at = func(i int) uint64 { return uint64(x[i]) }
	}
	return e
}

// width orders floating-point types by what they can hold.
func width(d tensor.DType) int {
	switch d {
	case tensor.Float64:
		return 3
	case tensor.Float32:
		return 2
	}
	return 1
}

func isJoinable(d tensor.DType) bool {
	return d == tensor.Float32 || d == tensor.Float64 || d == tensor.Float16 || d == tensor.BFloat16
}

// findJoins finds what [FindTies] joins, but for initializers that are apart, or have one origin,
// and returns m with the values of joined Constant nodes as initializers.
func findJoins(m *onnx.Model, apart map[string]bool, origin map[string]string, pairs []Join) (*onnx.Model, []Join, error) {
	all, lifted, err := liftConstants(m, func(string) bool { return true })
	if err != nil {
		return nil, nil, err
	}
	joins, err := newJoiner(all, apart, origin, lifted).find(pairs)
	if err != nil || len(lifted) == 0 {
		return m, joins, err
	}
	m, _, err = liftConstants(m, func(name string) bool {
		return slices.ContainsFunc(joins, func(j Join) bool { return j.Name == name || j.Of == name })
	})
	return m, joins, err
}

// liftConstants returns m with floating-point values of Constant nodes of its main graph that have
// two axes or more, and whose names fulfil f, as initializers.
func liftConstants(m *onnx.Model, f func(name string) bool) (_ *onnx.Model, lifted map[string]bool, err error) {
	lifted = map[string]bool{}
	outputs := map[string]bool{}
	for _, v := range m.Graph.Output {
		outputs[v.Name] = true
	}
	c := m.ShallowClone()
	for _, n := range c.Graph.Node {
		name := string(n.Out(0))
		if !standard(n, "Constant") || outputs[name] || n.Attr("value") == nil || !f(name) {
			continue
		}
		t, err := onnx.ConstantOf(n)
		if err != nil {
			return nil, nil, err
		}
		if isJoinable(t.DType()) && t.Rank() >= 2 {
			lifted[name] = true
			c.Graph.Initializer = append(c.Graph.Initializer, onnx.ProtoOf(name, t))
		}
	}
	if len(lifted) == 0 {
		return m, nil, nil
	}
	c.Graph.Node = slices.DeleteFunc(c.Graph.Node, func(n *onnx.Node) bool { return lifted[string(n.Out(0))] })
	return c, lifted, nil
}

func newJoiner(m *onnx.Model, apart map[string]bool, origin map[string]string, lifted map[string]bool) *joiner {
	j := &joiner{s: newMerged(m), apart: apart, origin: origin, lifted: lifted, modules: map[string]bool{}}
	for _, n := range m.Graph.Node {
		if path, ok := moduleOf(n); ok {
			for ; path != "" && !j.modules[path]; path = path[:max(0, strings.LastIndexByte(path, '.'))] {
				j.modules[path] = true
			}
		}
	}
	return j
}

// find returns the joins of the pairs and those that the rule finds, in an order in which each
// follows what it is joined to.
func (j *joiner) find(pairs []Join) ([]Join, error) {
	joined := map[string]*weight{}
	for _, p := range pairs {
		w, err := j.explicit(p, joined)
		if err != nil {
			return nil, fmt.Errorf("tie %q: %w", p.String(), err)
		}
		joined[p.Name] = w
	}
	if err := j.collect(joined); err != nil {
		return nil, err
	}
	j.findEqual()
	j.findSlices()
	for _, w := range j.weights {
		if w.of == nil {
			j.choose(w)
		}
	}
	var list []Join
	done := map[string]bool{}
	var add func(w *weight)
	add = func(w *weight) {
		if w.of == nil || done[w.p.Name] {
			return
		}
		done[w.p.Name] = true
		add(w.of)
		list = append(list, w.join)
	}
	for _, w := range j.weights {
		add(w)
	}
	for _, p := range pairs {
		add(joined[p.Name])
	}
	return list, nil
}

// load reads an initializer.
func (j *joiner) load(p *onnx.TensorProto) (*weight, error) {
	t, err := onnx.TensorOf(p)
	if err != nil {
		return nil, fmt.Errorf("initializer %q: %w", p.Name, err)
	}
	w := &weight{p: p, shape: t.Shape(), computed: isComputed(p.Name), forms: []elements{elementsOf(t)}}
	w.cluster, w.members = w, []*weight{w}
	seen := map[place]bool{}
	for _, u := range j.s.sites[p.Name] {
		at := place{op: u.node.OpType, domain: onnx.NormalizeDomain(u.node.Domain), input: u.input}
		at.path, at.known = j.pathOf(w, u)
		if !seen[at] {
			seen[at] = true
			w.places = append(w.places, at)
		}
	}
	return w, nil
}

// narrow adds the forms of a weight in narrower types; one that overflows there has none.
func (w *weight) narrow(types []tensor.DType) error {
	t, err := onnx.TensorOf(w.p)
	if err != nil {
		return err
	}
	for _, d := range types {
		if width(d) >= width(t.DType()) {
			continue
		}
		x, err := tensor.ToFloat32(t)
		if err != nil {
			return err
		}
		if x, err = tensor.FromFloat32(x, d); err == nil {
			w.forms = append(w.forms, elementsOf(x))
		}
	}
	return nil
}

// collect lists the weights that may be joined, the wider and the larger ones first, then those
// with names of their own.
func (j *joiner) collect(joined map[string]*weight) error {
	g := j.s.model.Graph
	for _, p := range g.Initializer {
		if j.apart[p.Name] || !isJoinable(tensor.DType(p.DataType)) || len(j.s.sites[p.Name]) == 0 {
			continue
		}
		wide, n := 0, 1
		for _, d := range p.Dims {
			n *= int(d)
			if d > 1 {
				wide++
			}
		}
		if wide < 2 || n < minComputed || slices.ContainsFunc(j.s.sites[p.Name], func(u site) bool { return normalizations[u.node.OpType] }) {
			continue
		}
		k, err := j.s.kindOf(p, j.s.sites[p.Name])
		if err != nil {
			return err
		}
		made := isComputed(p.Name) || literal.MatchString(p.Name) || j.lifted[p.Name]
		if k == isABuffer || k == isAConstant && (!made || j.s.kinds[p.Name] != "") {
			continue
		}
		w := joined[p.Name]
		if w == nil {
			if w, err = j.load(p); err != nil {
				return err
			}
			w.kind = k
		}
		j.weights = append(j.weights, w)
	}
	var types []tensor.DType
	for _, w := range j.weights {
		if d := w.own().dtype; !slices.Contains(types, d) {
			types = append(types, d)
		}
	}
	for _, w := range j.weights {
		if err := w.narrow(types); err != nil {
			return fmt.Errorf("initializer %q: %w", w.p.Name, err)
		}
	}
	slices.SortStableFunc(j.weights, func(a, b *weight) int {
		flag := func(made bool) int {
			if made {
				return 1
			}
			return 0
		}
		if d := width(b.own().dtype) - width(a.own().dtype); d != 0 {
			return d
		}
		if d := b.own().n - a.own().n; d != 0 {
			return d
		}
		if d := flag(j.lifted[a.p.Name]) - flag(j.lifted[b.p.Name]); d != 0 {
			return d
		}
		return flag(a.computed) - flag(b.computed)
	})
	return nil
}

// bucket is what equal elements have in common, in whatever order they lie.
type bucket struct {
	dtype tensor.DType
	n     int
	sum   uint64
}

// findEqual lists for every weight those before it with the same elements in some order.
func (j *joiner) findEqual() {
	count := map[bucket]int{}
	for _, w := range j.weights {
		for _, e := range w.forms {
			count[bucket{e.dtype, e.n, 0}]++
		}
	}
	groups := map[bucket][]*weight{}
	for _, w := range j.weights {
		for i, e := range w.forms {
			if count[bucket{e.dtype, e.n, 0}] < 2 {
				continue
			}
			key := bucket{dtype: e.dtype, n: e.n}
			for k := range e.n {
				key.sum += mix(e.at(k))
			}
			if i == 0 {
				w.equal = slices.Clone(groups[key])
			}
			groups[key] = append(groups[key], w)
		}
	}
}

// mix spreads the bits of an element over a word; it is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// window is the number of neighbours by which a part is looked for in a larger tensor, and base the
// factor of their rolling hash.
const (
	window = 8
	base   = 0x9e3779b97f4a7c15
)

// anchor is a run of distinct elements of a weight, which begins at an offset.
type anchor struct {
	w  *weight
	at int
}

// findSlices looks for every weight in the larger ones: for the hash of one run of its elements at
// every place there.
func (j *joiner) findSlices() {
	anchors := map[tensor.DType]map[uint64][]anchor{}
	least := map[tensor.DType]int{}
	for _, w := range j.weights {
		e := w.own()
		at, ok := w.anchor()
		if !ok {
			continue
		}
		if anchors[e.dtype] == nil {
			anchors[e.dtype] = map[uint64][]anchor{}
		}
		var h uint64
		for k := range window {
			h = h*base + mix(e.at(at+k))
		}
		anchors[e.dtype][h] = append(anchors[e.dtype][h], anchor{w, at})
		if n, ok := least[e.dtype]; !ok || e.n < n {
			least[e.dtype] = e.n
		}
	}
	last := uint64(1)
	for range window {
		last *= base
	}
	for _, w := range j.weights {
		for _, e := range w.forms {
			if table := anchors[e.dtype]; table != nil && e.n > least[e.dtype] {
				w.scan(e, table, last)
			}
		}
	}
}

// scan looks for the anchors of other weights in a form of w.
func (w *weight) scan(e elements, table map[uint64][]anchor, last uint64) {
	// Most runs are nobody's; a few bits of their hash tell so.
	var some [1 << 10]uint64
	for h := range table {
		some[h>>54] |= 1 << (h >> 48 & 63)
	}
	var ring [window]uint64
	var h uint64
	for i := range e.n {
		x := mix(e.at(i))
		h = h*base + x - ring[i%window]*last
		ring[i%window] = x
		if i < window-1 || some[h>>54]>>(h>>48&63)&1 == 0 {
			continue
		}
		for _, a := range table[h] {
			if a.w == w || a.w.own().n >= e.n || a.w.misses > 64 || len(a.w.slices) >= 4 {
				continue
			}
			if s, ok := sliceAt(a.w, w, e, i-window+1, a.at); ok {
				a.w.slices = append(a.w.slices, s)
				a.w.equal = append(a.w.equal, w)
			} else {
				a.w.misses++
			}
		}
	}
}

// anchor chooses a run of distinct elements, within the last axis where that is long enough.
func (w *weight) anchor() (at int, ok bool) {
	e := w.own()
	row := w.shape[len(w.shape)-1]
	if row < window {
		row = e.n
	}
search:
	for i := 0; i+window <= e.n; i++ {
		if i%row > row-window {
			continue
		}
		for k := range window {
			for l := range k {
				if e.at(i+k) == e.at(i+l) {
					continue search
				}
			}
		}
		return i, true
	}
	return 0, false
}

// sliceAt reports whether small is the part of big, of which e is a form, that has small's element
// at where big has its element in.
func sliceAt(small, big *weight, e elements, in, at int) (Join, bool) {
	dims := small.shape
	for len(dims) > 0 && len(dims) > len(big.shape) && dims[0] == 1 {
		dims = dims[1:]
	}
	if len(dims) > len(big.shape) {
		return Join{}, false
	}
	dims = slices.Concat(slices.Repeat([]int{1}, len(big.shape)-len(dims)), dims)
	join := Join{Name: small.p.Name, Of: big.p.Name, op: "slice", cast: small.own().dtype != big.own().dtype, shape: small.shape, dims: dims, step: stridesOf(big.shape), start: make([]int, len(dims))}
	inner := stridesOf(dims)
	for i := range dims {
		join.start[i] = in/join.step[i]%big.shape[i] - at/inner[i]%dims[i]
		if join.start[i] < 0 || join.start[i]+dims[i] > big.shape[i] {
			return Join{}, false
		}
		join.from += join.start[i] * join.step[i]
	}
	own := small.own()
	return join, strided(dims, join.step, join.from, func(i, at int) bool { return own.at(i) == e.at(at) })
}

// relate says how a is made of all elements of b.
func relate(a, b *weight) (Join, bool) {
	e := a.own()
	i := slices.IndexFunc(b.forms, func(f elements) bool { return f.dtype == e.dtype })
	if i < 0 || b.forms[i].n != e.n {
		return Join{}, false
	}
	f := b.forms[i]
	equal := func(k, at int) bool { return e.at(k) == f.at(at) }
	join := Join{Name: a.p.Name, Of: b.p.Name, cast: i > 0, shape: a.shape, dims: []int{e.n}, step: []int{1}}
	if strided(join.dims, join.step, 0, equal) {
		if !slices.Equal(a.shape, b.shape) {
			join.op = "reshape"
		}
		return join, true
	}
	if len(a.shape) != len(b.shape) || len(a.shape) > maxTransposed {
		return Join{}, false
	}
	join.op, join.dims, join.step = "transpose", a.shape, make([]int, len(a.shape))
	strides := stridesOf(b.shape)
	var try func(perm []int) bool
	try = func(perm []int) bool {
		k := len(perm)
		if k == len(a.shape) {
			join.perm = slices.Clone(perm)
			return strided(join.dims, join.step, 0, equal)
		}
		for axis, d := range b.shape {
			if d != a.shape[k] || slices.Contains(perm, axis) {
				continue
			}
			if join.step[k] = strides[axis]; try(append(perm, axis)) {
				return true
			}
		}
		return false
	}
	return join, try(nil)
}

// choose joins a weight to one of those that hold its elements, or leaves it apart. Of several it
// takes the one whose module is the nearest.
func (j *joiner) choose(w *weight) {
	need := minDistinct
	if w.computed {
		need = minComputed
	}
	if len(w.equal) == 0 || !w.own().distinct(need) {
		return
	}
	sharing := func(x *weight) int {
		if len(w.places) == 0 || len(x.places) == 0 {
			return 0
		}
		a, b := strings.Split(w.places[0].path, "."), strings.Split(x.places[0].path, ".")
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	candidates := slices.Clone(w.equal)
	slices.SortStableFunc(candidates, func(a, b *weight) int { return sharing(b) - sharing(a) })
	for _, x := range candidates {
		if x.kind != isAParameter && x.of == nil || j.lifted[x.p.Name] || j.sameOrigin(w, x) || x.reaches(w) {
			continue
		}
		join, whole := relate(w, x)
		if !whole {
			i := slices.IndexFunc(w.slices, func(s Join) bool { return s.Of == x.p.Name })
			if i < 0 || copies(w, x) {
				continue
			}
			w.of, w.join = x, w.slices[i]
			return
		}
		if slices.ContainsFunc(x.cluster.members, func(y *weight) bool { return copies(w, y) }) {
			continue
		}
		w.of, w.join = x, join
		w.follow(x)
		return
	}
}

// follow puts a weight, and what it was the first of, into the cluster of another.
func (w *weight) follow(x *weight) {
	for _, y := range w.members {
		y.cluster = x.cluster
	}
	x.cluster.members = append(x.cluster.members, w.members...)
	w.members = nil
}

// reaches reports whether w is joined, by way of others, to x.
func (w *weight) reaches(x *weight) bool {
	for ; w != nil; w = w.of {
		if w == x {
			return true
		}
	}
	return false
}

// sameOrigin reports whether the exporter had merged the two, and they were cut apart.
func (j *joiner) sameOrigin(a, b *weight) bool {
	of := func(w *weight) string {
		if name := j.origin[w.p.Name]; name != "" {
			return name
		}
		return w.p.Name
	}
	return of(a) == of(b)
}

// distinct reports whether there are at least n distinct elements.
func (e elements) distinct(n int) bool {
	seen := map[uint64]bool{}
	for i := 0; i < e.n && len(seen) < n; i++ {
		seen[e.at(i)] = true
	}
	return len(seen) >= n
}

// digits match an index, wherever in a name it stands.
var digits = regexp.MustCompile(`\d+`)

func unindexed(name string) string { return digits.ReplaceAllString(name, "#") }

// copies reports whether two weights are used as those of a layer and its copy. Where the file does
// not say which modules they belong to, they are if they have the same form.
func copies(a, b *weight) bool {
	if !a.computed && !b.computed && a.p.Name != b.p.Name && unindexed(a.p.Name) == unindexed(b.p.Name) && share(a, b, func(x, y place) bool { return true }) {
		return true
	}
	return share(a, b, func(x, y place) bool {
		scale := x.domain == onnx.DomainStandard && (x.op == "Mul" || x.op == "Div")
		if !x.known || !y.known {
			return scale || sameForm(a, b) || sameForm(b, a)
		}
		return scale || x.path != y.path && unindexed(x.path) == unindexed(y.path)
	})
}

func sameForm(a, b *weight) bool {
	j, ok := relate(a, b)
	return ok && j.op == ""
}

// share reports whether the same operator takes both at the same place, where that fulfils f.
func share(a, b *weight, f func(x, y place) bool) bool {
	return slices.ContainsFunc(a.places, func(x place) bool {
		return slices.ContainsFunc(b.places, func(y place) bool {
			return x.op == y.op && x.domain == y.domain && x.input == y.input && f(x, y)
		})
	})
}

// pathOf is the path of the module that a weight belongs to where u uses it: that of its name, or
// else of the node. A module that TorchScript's exporter met again is the one it met first.
func (j *joiner) pathOf(w *weight, u site) (path string, known bool) {
	name := w.p.Name
	if u.alias != "" {
		name = u.alias
	}
	if !isComputed(name) && !literal.MatchString(name) {
		if owner, ok := ownerOf(name); ok && owner != "" {
			return owner, true
		}
	}
	path, known = moduleOf(u.node)
	parts := strings.Split(path, ".")
	for i := range parts {
		first := slices.Clone(parts[:i+1])
		if first[i] = called.ReplaceAllString(first[i], ""); first[i] != parts[i] && j.modules[strings.Join(first, ".")] {
			parts[i] = first[i]
		}
	}
	return strings.Join(parts, "."), known
}

// called matches what TorchScript's exporter appends to a module that is called again.
var called = regexp.MustCompile(`_\d+$`)

// explicit joins the two weights of a pair.
func (j *joiner) explicit(p Join, joined map[string]*weight) (*weight, error) {
	if joined[p.Name] != nil && joined[p.Name].of != nil {
		return nil, fmt.Errorf("%q is tied to %q already", p.Name, joined[p.Name].of.p.Name)
	}
	var pair [2]*weight
	for i, name := range []string{p.Name, p.Of} {
		if w := joined[name]; w != nil {
			pair[i] = w
			continue
		}
		k := slices.IndexFunc(j.s.model.Graph.Initializer, func(t *onnx.TensorProto) bool { return t.Name == name })
		if k < 0 || !isJoinable(tensor.DType(j.s.model.Graph.Initializer[k].DataType)) {
			return nil, fmt.Errorf("the main graph has no floating-point initializer %q", name)
		}
		w, err := j.load(j.s.model.Graph.Initializer[k])
		if err != nil {
			return nil, err
		}
		if w.kind, err = j.s.kindOf(w.p, j.s.sites[name]); err != nil {
			return nil, err
		}
		pair[i], joined[name] = w, w
	}
	a, b := pair[0], pair[1]
	if b.reaches(a) {
		return nil, fmt.Errorf("%q is tied to %q itself", p.Of, p.Name)
	}
	if err := b.narrow([]tensor.DType{a.own().dtype}); err != nil {
		return nil, err
	}
	join, ok := relate(a, b)
	if !ok && p.op == "slice" {
		join, ok = partOf(a, b)
	}
	b.forms = b.forms[:1]
	if !ok || join.op != p.op || join.cast != p.cast {
		is := ""
		if ok {
			is = "; it is " + join.form()
		}
		return nil, fmt.Errorf("%q (%v%v) is not bit for bit %s, where %q is %v%v%s", p.Name, a.own().dtype, a.shape, p.form(), p.Of, b.own().dtype, b.shape, is)
	}
	a.of, a.join = b, join
	if join.op != "slice" {
		a.follow(b)
	}
	return a, nil
}

// partOf looks for a at every place of b.
func partOf(a, b *weight) (Join, bool) {
	for _, e := range b.forms {
		if e.dtype != a.own().dtype || a.own().n == 0 {
			continue
		}
		for in := range e.n {
			if e.at(in) == a.own().at(0) {
				if s, ok := sliceAt(a, b, e, in, 0); ok {
					return s, true
				}
			}
		}
	}
	return Join{}, false
}
