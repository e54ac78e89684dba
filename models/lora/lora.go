package lora

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// MetaKey is the model metadata property in which [Apply] records the adapters, so that [Merge]
// needs nothing but the model.
const MetaKey = "onnxrl.lora"

// Pattern matches the names of all adapter parameters; training patterns use it.
const Pattern = "lora/*"

// Config selects the adapted layers and the adapters' size.
type Config struct {
	// Rank is r, the inner width of an adapter. It must be positive.
	Rank int `yaml:"rank"`
	// Alpha scales the adapter by Alpha/Rank. 0 means Alpha = Rank, a scale of 1.
	Alpha float64 `yaml:"alpha"`
	// Target lists patterns (globs in which * matches any run of characters) of weight or node
	// names. Empty means every layer that can be adapted and whose weight nothing but layers reads.
	Target []string `yaml:"target"`
	// Seed draws the initial A matrices. Package fit takes the run's seed for 0.
	Seed uint64 `yaml:"seed"`
}

// WithDefaults returns the configuration with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	if c.Alpha == 0 {
		c.Alpha = float64(c.Rank)
	}
	return c
}

// Validate reports all problems of a configuration.
func (c Config) Validate() error {
	var p configs.Problems
	p.AtLeast("rank", c.Rank, 1)
	p.NonNegative("alpha", c.Alpha)
	return p.Err()
}

// Adapter describes one adapted weight.
type Adapter struct {
	// Weight is the adapted initializer; A and B are the adapter's. Several adapters may share a
	// weight, each for nodes of its own.
	Weight string `json:"weight"`
	A      string `json:"a"`
	B      string `json:"b"`
	// Kind is "right" for x·W with W [in, out], "right_t" for the same with a transposed W [out,
	// in], "left" for W·x with W [out, in], "gemm_t" for x·Wᵀ with W [out, in], "conv" for a
	// convolution, and "weight" where A and B are multiplied and added to W [out, …] itself.
	Kind  string  `json:"kind"`
	Scale float64 `json:"scale"`
	Group int     `json:"group,omitempty"`
	// Outputs lists the values that the adapted nodes produce, or the adapted weight.
	Outputs []string `json:"outputs"`
	// Rank is the inner width.
	Rank int `json:"rank"`
	// Merged is what the weight is called once the adapter is merged into it; empty is Weight.
	Merged string `json:"merged,omitempty"`
}

// Apply returns a copy of m with adapters and the list of adapters, in graph order. Weights are
// shared with m. It is an error when a target pattern matches no layer that can be adapted, or when
// m has adapters already.
func Apply(m *onnx.Model, cfg Config) (*onnx.Model, []Adapter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, fmt.Errorf("apply lora: %w", err)
	}
	if _, ok := m.Meta(MetaKey); ok {
		return nil, nil, fmt.Errorf("apply lora: the model has adapters already; merge them first")
	}
	cfg = cfg.WithDefaults()
	out := m.ShallowClone()
	nodes, x := out.Graph.Node, onnx.NewIndex(out.Graph)
	out.Graph.Node = nil
	r := &rewriter{cfg: cfg, b: onnx.Extend(out), byWeight: map[string]*Adapter{}, hit: map[string]bool{},
		x: x, adapted: map[*onnx.Node]bool{}, captured: map[string]bool{}}
	captures(m.Graph, r.captured)
	for _, n := range nodes {
		for _, o := range n.Output {
			if o != "" && !r.b.Claim(o) {
				return nil, nil, fmt.Errorf("apply lora: %w", r.b.Err())
			}
		}
	}
	r.indirect = r.shaped(nodes, m.Graph.Initializer)
	for _, t := range m.Graph.Initializer {
		if r.indirect[t.Name] {
			r.weight(t)
		}
	}
	for _, n := range nodes {
		for i, v := range n.Input {
			if ad := r.byWeight[v]; ad != nil && ad.Kind == kindWeight {
				n.Input[i] = ad.Outputs[0]
			}
		}
		if err := r.node(n); err != nil {
			return nil, nil, fmt.Errorf("apply lora to %s: %w", n.Describe(), err)
		}
	}
	if err := r.b.Err(); err != nil {
		return nil, nil, fmt.Errorf("apply lora: %w", err)
	}
	for _, pat := range cfg.Target {
		if !r.hit[pat] {
			return nil, nil, fmt.Errorf("apply lora: target %q matches no MatMul, Gemm or Conv whose weight is an initializer; %s", pat, r.candidates(nodes))
		}
	}
	if len(r.order) == 0 {
		return nil, nil, fmt.Errorf("apply lora: the model has no MatMul, Gemm or Conv whose weight is a float32 initializer")
	}
	adapters := make([]Adapter, len(r.order))
	for i, w := range r.order {
		if adapters[i] = *r.byWeight[w]; adapters[i].Kind == kindWeight {
			continue
		}
		if err := r.checkUses(r.byWeight[w], onnx.Value(w)); err != nil {
			return nil, nil, fmt.Errorf("apply lora: %w", err)
		}
	}
	return out, adapters, Record(out, adapters)
}

// Record lists a model's adapters in its metadata, in place of those that are listed there.
func Record(m *onnx.Model, adapters []Adapter) error {
	text, err := json.Marshal(adapters)
	if err != nil {
		return fmt.Errorf("record lora: %w", err)
	}
	m.SetMeta(MetaKey, string(text))
	return nil
}

type rewriter struct {
	cfg      Config
	b        *onnx.Builder
	byWeight map[string]*Adapter
	order    []string
	hit      map[string]bool
	// x and captured describe the graph before the rewrite.
	x        *onnx.Index
	captured map[string]bool
	adapted  map[*onnx.Node]bool
	// fixed are the nodes that depend on initializers alone.
	fixed map[*onnx.Node]bool
	// indirect are weights that nodes make something of before layers read them.
	indirect map[string]bool
}

// wanted reports whether a node is a target, and notes which patterns hit.
func (r *rewriter) wanted(n *onnx.Node, w weight) bool {
	if len(r.cfg.Target) == 0 {
		// A weight that something other than layers reads too, as an embedding that is the output
		// projection, could not be merged.
		layers, _ := r.feeds(onnx.Value(w.name), r.fixed)
		return layers
	}
	ok := false
	for _, pat := range r.cfg.Target {
		if w.matches(pat, n) {
			r.hit[pat], ok = true, true
		}
	}
	return ok
}

func (r *rewriter) candidates(nodes []*onnx.Node) string {
	var names []string
	for _, n := range nodes {
		if w, ok := r.weightOf(n); ok && !slices.Contains(names, w.name) {
			names = append(names, w.name)
		}
	}
	names = append(names, slices.Sorted(maps.Keys(r.indirect))...)
	if len(names) == 0 {
		return "there are none"
	}
	if len(names) > 12 {
		names = append(names[:12], "…")
	}
	return "there are " + strings.Join(names, ", ")
}

// node appends a node, adapted when it is a target.
func (r *rewriter) node(n *onnx.Node) error {
	w, ok := r.weightOf(n)
	if !ok || !r.wanted(n, w) {
		r.b.Append(n)
		return nil
	}
	ad, err := r.adapter(n, w)
	if err != nil {
		return err
	}
	r.adapted[n] = true
	y := n.Output[0]
	ad.Outputs = append(ad.Outputs, y)
	base := r.b.Fresh("lora/" + y + "/base")
	n.Output[0] = string(base)
	r.b.Append(n)
	r.b.SetScope("lora/" + y + "/")
	x := n.In(1 - w.input)
	a, b := onnx.Value(ad.A), onnx.Value(ad.B)
	var delta onnx.Value
	switch ad.Kind {
	case "right", "right_t":
		delta = r.b.Op("MatMul", []onnx.Value{r.b.Op("MatMul", []onnx.Value{x, a}), b})
	case "left":
		delta = r.b.Op("MatMul", []onnx.Value{b, r.b.Op("MatMul", []onnx.Value{a, x})})
	case "gemm_t":
		tb := onnx.AttrInt("transB", 1)
		delta = r.b.Op("Gemm", []onnx.Value{r.b.Op("Gemm", []onnx.Value{x, a}, tb), b}, tb)
	case "conv":
		h := r.b.Op("Conv", []onnx.Value{x, a}, n.Attribute...)
		delta = r.b.Op("Conv", []onnx.Value{h, b}, onnx.AttrInt("group", ad.Group))
	}
	scale := ad.Scale
	if n.OpType == "Gemm" {
		scale *= float64(n.Float("alpha", 1))
	}
	if scale != 1 {
		delta = r.b.Op("Mul", []onnx.Value{delta, r.b.Float(float32(scale))})
	}
	r.b.SetScope("")
	r.b.Append(&onnx.Node{OpType: "Add", Name: "lora/" + y + "/add", Input: []string{string(base), string(delta)}, Output: []string{y}})
	return nil
}

// weight adds the adapter of a weight that no layer reads as it is, unless it is no target.
func (r *rewriter) weight(t *onnx.TensorProto) {
	w := weight{name: t.Name, dims: t.Dims}
	if !r.wanted(&onnx.Node{}, w) {
		return
	}
	ad := r.draw(w, kindWeight, 1)
	r.b.SetScope("lora/" + w.name + "/")
	cols, shape := 1, make([]int, len(t.Dims))
	for i, d := range t.Dims {
		if shape[i] = int(d); i > 0 {
			cols *= int(d)
		}
	}
	a, b := onnx.Value(ad.A), onnx.Value(ad.B)
	if len(shape) > 2 {
		a = r.b.Op("Reshape", []onnx.Value{a, r.b.Ints(ad.Rank, cols)})
		b = r.b.Op("Reshape", []onnx.Value{b, r.b.Ints(shape[0], ad.Rank)})
	}
	delta := r.b.Op("MatMul", []onnx.Value{b, a})
	if len(shape) > 2 {
		delta = r.b.Op("Reshape", []onnx.Value{delta, r.b.Ints(shape...)})
	}
	if ad.Scale != 1 {
		delta = r.b.Op("Mul", []onnx.Value{delta, r.b.Float(float32(ad.Scale))})
	}
	ad.Outputs = []string{string(r.b.Op("Add", []onnx.Value{onnx.Value(w.name), delta}))}
	r.b.SetScope("")
}

// adapter returns the adapter of a weight, made on first use: a weight shared by several nodes has
// one adapter.
func (r *rewriter) adapter(n *onnx.Node, w weight) (*Adapter, error) {
	kind, group, weight := "right", 0, w.name
	switch {
	case n.OpType == "Gemm" && n.Int("transB", 0) != 0:
		if kind = "gemm_t"; w.transposed {
			kind = "right"
		}
	case n.OpType == "MatMul" && w.input == 0:
		kind = "left"
	case w.transposed:
		kind = "right_t"
	case n.OpType == "Conv":
		kind, group = "conv", n.Int("group", 1)
	}
	if ad := r.byWeight[weight]; ad != nil {
		if ad.Kind != kind || ad.Group != group {
			return nil, fmt.Errorf("weight %q is used as %s here and as %s elsewhere; exclude it from the targets", weight, kind, ad.Kind)
		}
		return ad, nil
	}
	return r.draw(w, kind, group), nil
}

// draw makes the adapter of a weight.
func (r *rewriter) draw(w weight, kind string, group int) *Adapter {
	ad := &Adapter{Weight: w.name, Kind: kind, Group: group, Rank: r.cfg.Rank, Scale: r.cfg.Alpha / float64(r.cfg.Rank)}
	d := w.dims
	k := r.cfg.Rank
	var aShape, bShape []int
	fan := 1
	switch kind {
	case "right":
		aShape, bShape, fan = []int{int(d[0]), k}, []int{k, int(d[1])}, int(d[0])
	case "right_t":
		aShape, bShape, fan = []int{int(d[1]), k}, []int{k, int(d[0])}, int(d[1])
	case "left", "gemm_t":
		aShape, bShape, fan = []int{k, int(d[1])}, []int{int(d[0]), k}, int(d[1])
	case "conv", kindWeight:
		aShape, bShape = []int{k * group}, []int{int(d[0]), k}
		for _, e := range d[1:] {
			aShape = append(aShape, int(e))
			fan *= int(e)
		}
		for range d[2:] {
			bShape = append(bShape, 1)
		}
	}
	a, b := tensor.New(tensor.Float32, aShape...), tensor.New(tensor.Float32, bShape...)
	bound := float32(1 / math.Sqrt(float64(max(fan, 1))))
	rng.New(r.cfg.Seed).Split("lora").Split(w.name).Stream().FillUniform32(a.Float32s(), -bound, bound)
	ad.A = string(r.b.Initializer("lora/"+w.name+"/A", a))
	ad.B = string(r.b.Initializer("lora/"+w.name+"/B", b))
	r.byWeight[w.name] = ad
	r.order = append(r.order, w.name)
	return ad
}
