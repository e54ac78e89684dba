package onnx

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// PrintOptions say what [Fprint] shows.
type PrintOptions struct {
	// Types gives the types printed behind values; nil prints those that the model declares.
	Types Types
	// MaxElements is how many elements of a tensor are printed before a digest takes their place. 0
	// means 8, a negative number none.
	MaxElements int
	// Names prints the names of nodes, which most exporters make up.
	Names bool
	// Docs prints documentation strings and the metadata of nodes.
	Docs bool
}

// Fprint writes a model as text, one node to a line, in the order of the file. The text is a
// function of the model alone, so it serves golden files and diffs:
//
//	graph "policy" {
//	  input %obs: float32[batch,17]
//	  init %fc.weight: float32[64,17] #5f70bf18a0
//	  %h: float32[batch,64] = Gemm<transB=1>(%obs, %fc.weight, %fc.bias)
//	  output %logits: float32[batch,4]
//	}
//
// "_" is an absent input or output. Large tensors show the first digits of the SHA-256 of their
// bytes.
func Fprint(w io.Writer, m *Model, o PrintOptions) error {
	b := bufio.NewWriter(w)
	p := newPrinter(b, o)
	p.model(m)
	if err := b.Flush(); err != nil {
		return fmt.Errorf("print model: %w", err)
	}
	return nil
}

// Sprint is Fprint to a string.
func Sprint(m *Model, o PrintOptions) string {
	var b strings.Builder
	// A strings.Builder does not fail.
	_ = Fprint(&b, m, o)
	return b.String()
}

type printer struct {
	w      *bufio.Writer
	opts   PrintOptions
	most   int
	indent string
	types  Types
}

func newPrinter(w *bufio.Writer, o PrintOptions) *printer {
	p := &printer{w: w, opts: o, most: o.MaxElements}
	if p.most == 0 {
		p.most = 8
	}
	return p
}

func (p *printer) line(format string, args ...any) {
	p.w.WriteString(p.indent)
	fmt.Fprintf(p.w, format, args...)
	p.w.WriteByte('\n')
}

// nest runs f one step further to the right.
func (p *printer) nest(f func()) {
	old := p.indent
	p.indent += "  "
	f()
	p.indent = old
}

func (p *printer) model(m *Model) {
	head := []string{fmt.Sprintf("model ir=%d", m.GetIrVersion())}
	for _, o := range m.GetOpsetImport() {
		if NormalizeDomain(o.Domain) == DomainStandard {
			head = append(head, fmt.Sprintf("opset=%d", o.Version))
		} else {
			head = append(head, fmt.Sprintf("%s=%d", o.Domain, o.Version))
		}
	}
	if m.GetProducerName() != "" {
		head = append(head, fmt.Sprintf("producer=%q", strings.TrimSpace(m.ProducerName+" "+m.ProducerVersion)))
	}
	if m.GetDomain() != "" {
		head = append(head, fmt.Sprintf("domain=%q", m.Domain))
	}
	if m.GetModelVersion() != 0 {
		head = append(head, fmt.Sprintf("version=%d", m.ModelVersion))
	}
	p.line("%s", strings.Join(head, " "))
	for _, e := range sortedProps(m.GetMetadataProps()) {
		p.line("meta %s = %q", bare(e.Key), e.Value)
	}
	p.doc(m.GetDocString())
	if m.GetGraph() == nil {
		p.line("no graph")
	} else {
		p.types = p.opts.Types
		if p.types == nil {
			p.types = DeclaredTypes(m.Graph)
		}
		p.graph("graph "+fmt.Sprintf("%q", m.Graph.Name), m.Graph)
	}
	p.types = func(Value) (TensorType, bool) { return TensorType{}, false }
	for _, f := range m.GetFunctions() {
		p.function(f)
	}
	for i, t := range m.GetTrainingInfo() {
		if t.Initialization != nil {
			p.graph(fmt.Sprintf("training %d initialization", i), t.Initialization)
		}
		if t.Algorithm != nil {
			p.graph(fmt.Sprintf("training %d algorithm", i), t.Algorithm)
		}
	}
}

func sortedProps(list []*MetadataProp) []*MetadataProp {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *MetadataProp) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

func (p *printer) doc(s string) {
	if p.opts.Docs && s != "" {
		p.line("doc %q", s)
	}
}

func (p *printer) graph(head string, g *Graph) {
	p.line("%s {", head)
	p.nest(func() {
		p.doc(g.DocString)
		for _, v := range g.Input {
			p.line("input %s: %s", valueName(v.Name), typeText(v.GetType()))
		}
		for _, t := range g.Initializer {
			p.line("init %s: %s", valueName(t.Name), tensorText(t, p.most))
		}
		for _, t := range g.SparseInitializer {
			p.line("init %s: %s", valueName(t.GetValues().GetName()), sparseText(t, p.most))
		}
		for _, n := range g.Node {
			p.node(n)
		}
		for _, v := range g.Output {
			p.line("output %s: %s", valueName(v.Name), typeText(v.GetType()))
		}
		if p.opts.Docs {
			for _, e := range sortedProps(g.MetadataProps) {
				p.line("meta %s = %q", bare(e.Key), e.Value)
			}
		}
	})
	p.line("}")
}

func (p *printer) function(f *Function) {
	var in, out, attrs, sets []string
	for _, v := range f.Input {
		in = append(in, valueName(v))
	}
	for _, v := range f.Output {
		out = append(out, valueName(v))
	}
	for _, a := range f.Attribute {
		attrs = append(attrs, bare(a))
	}
	for _, a := range f.AttributeProto {
		attrs = append(attrs, p.attribute(a))
	}
	slices.Sort(attrs)
	for _, o := range f.OpsetImport {
		d := o.Domain
		if NormalizeDomain(d) == DomainStandard {
			d = "opset"
		}
		sets = append(sets, fmt.Sprintf("%s=%d", d, o.Version))
	}
	head := "function " + describeFunction(f)
	if len(attrs) > 0 {
		head += "<" + strings.Join(attrs, ", ") + ">"
	}
	p.line("%s(%s) -> (%s) %s {", head, strings.Join(in, ", "), strings.Join(out, ", "), strings.Join(sets, " "))
	p.nest(func() {
		p.doc(f.DocString)
		for _, n := range f.Node {
			p.node(n)
		}
	})
	p.line("}")
}

// node prints a node on one line and its sub-graphs below it.
func (p *printer) node(n *Node) {
	p.line("%s", p.nodeLine(n))
	p.nest(func() {
		if p.opts.Docs {
			p.doc(n.DocString)
			for _, e := range sortedProps(n.MetadataProps) {
				p.line("meta %s = %q", bare(e.Key), e.Value)
			}
		}
		for _, a := range sortedAttributes(n.Attribute) {
			if a.G != nil {
				p.graph(bare(a.Name)+" = graph", a.G)
			}
			for i, g := range a.Graphs {
				p.graph(fmt.Sprintf("%s[%d] = graph", bare(a.Name), i), g)
			}
		}
	})
}

func (p *printer) nodeLine(n *Node) string {
	var b strings.Builder
	for i, o := range n.Output {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(valueName(o))
		if t, ok := p.types(Value(o)); ok && o != "" {
			b.WriteString(": " + t.String())
		}
	}
	b.WriteString(" = ")
	if d := NormalizeDomain(n.Domain); d != "" {
		b.WriteString(bare(d) + ".")
	}
	b.WriteString(bare(n.OpType))
	if n.Overload != "" {
		b.WriteString(":" + bare(n.Overload))
	}
	var attrs []string
	for _, a := range sortedAttributes(n.Attribute) {
		if a.G == nil && len(a.Graphs) == 0 {
			attrs = append(attrs, p.attribute(a))
		}
	}
	if len(attrs) > 0 {
		b.WriteString("<" + strings.Join(attrs, ", ") + ">")
	}
	b.WriteByte('(')
	for i, v := range n.Input {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(valueName(v))
	}
	b.WriteByte(')')
	if p.opts.Names && n.Name != "" {
		fmt.Fprintf(&b, " @%q", n.Name)
	}
	return b.String()
}

func sortedAttributes(list []*Attribute) []*Attribute {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *Attribute) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
