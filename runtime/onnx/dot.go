package onnx

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Dot writes the main graph in Graphviz's language: inputs, outputs and nodes as boxes, one edge
// per value read, labelled with the value's type where types knows it (nil: what the model
// declares). Initializers are not drawn; a node's box lists those it reads.
func Dot(w io.Writer, m *Model, types Types) error {
	d := newDrawing(m, types)
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "digraph %s {\n", dotQuote(m.GetGraph().GetName()))
	b.WriteString("  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=10, fillcolor=\"#eef2f7\", color=\"#8a97a8\"];\n")
	b.WriteString("  edge [fontname=\"Helvetica\", fontsize=8, color=\"#8a97a8\"];\n")
	for i, n := range d.boxes {
		fill := map[boxKind]string{inputBox: "#dff0e0", outputBox: "#fbe4d5"}[n.kind]
		fmt.Fprintf(b, "  n%d [label=%s", i, dotQuote(strings.Join(n.lines, "\n")))
		if fill != "" {
			fmt.Fprintf(b, ", fillcolor=%q", fill)
		}
		b.WriteString("];\n")
	}
	for _, e := range d.edges {
		fmt.Fprintf(b, "  n%d -> n%d", e.from, e.to)
		if e.label != "" {
			fmt.Fprintf(b, " [label=%s]", dotQuote(e.label))
		}
		b.WriteString(";\n")
	}
	b.WriteString("}\n")
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write dot: %w", err)
	}
	return nil
}

// dotQuote makes a string of Graphviz's language; newlines become line breaks of the label.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

type boxKind int

const (
	nodeBox boxKind = iota
	inputBox
	outputBox
)

// box is one rectangle of a picture.
type box struct {
	kind  boxKind
	lines []string
	title string // shown when the pointer rests on it
}

type edge struct {
	from, to int
	label    string
}

// drawing is the main graph as boxes and edges, before layout.
type drawing struct {
	boxes []box
	edges []edge
}

func newDrawing(m *Model, types Types) *drawing {
	g := m.GetGraph()
	if types == nil {
		types = DeclaredTypes(g)
	}
	typeOf := func(v Value) string {
		t, ok := types(v)
		if !ok {
			return ""
		}
		return t.String()
	}
	d := &drawing{}
	source := map[Value]int{}
	for _, v := range g.Inputs() {
		source[Value(v.Name)] = len(d.boxes)
		d.boxes = append(d.boxes, box{kind: inputBox, lines: []string{v.Name, typeText(v.GetType())}, title: "input " + v.Name})
	}
	init, constants := map[string]string{}, map[string]string{}
	for _, t := range g.GetInitializer() {
		init[t.Name] = dtypeOf(t).String() + strings.ReplaceAll(fmt.Sprint(t.Dims), " ", ",")
	}
	p := newPrinter(nil, PrintOptions{Names: true})
	p.types = types
	isOutput := map[string]bool{}
	for _, v := range g.GetOutput() {
		isOutput[v.Name] = true
	}
	boxOf := map[*Node]int{}
	for _, n := range g.GetNode() {
		// Exporters make a node of every number. Drawn as boxes they would hide the network, so
		// they are listed like initializers.
		if n.OpType == "Constant" && n.Domain == "" && len(n.Output) == 1 && len(n.Attribute) == 1 && !isOutput[n.Output[0]] {
			constants[n.Output[0]] = attributeText(n.Attribute[0], 4)
			continue
		}
		lines := []string{n.OpType}
		if dom := NormalizeDomain(n.Domain); dom != "" {
			lines[0] = dom + "." + n.OpType
		}
		const most = 3
		shown := 0
		for _, v := range n.Input {
			if typ, ok := init[v]; ok {
				if shown++; shown <= most {
					lines = append(lines, shorten(v, 28)+" "+typ)
				}
			} else if text, ok := constants[v]; ok {
				if shown++; shown <= most {
					lines = append(lines, shorten(text, 40))
				}
			}
		}
		if shown > most {
			lines = append(lines, fmt.Sprintf("and %d more", shown-most))
		}
		for _, s := range n.Subgraphs() {
			lines = append(lines, fmt.Sprintf("[%s: %s]", shorten(s.Name, 20), plural(len(s.Node), "node")))
		}
		boxOf[n] = len(d.boxes)
		d.boxes = append(d.boxes, box{lines: lines, title: p.nodeLine(n)})
		for _, o := range n.Output {
			if o != "" {
				source[Value(o)] = len(d.boxes) - 1
			}
		}
	}
	for _, n := range g.GetNode() {
		to, drawn := boxOf[n]
		if !drawn {
			continue
		}
		for _, v := range Reads(n) {
			if s, ok := source[v]; ok {
				d.edges = append(d.edges, edge{from: s, to: to, label: typeOf(v)})
			}
		}
	}
	for _, v := range g.GetOutput() {
		d.boxes = append(d.boxes, box{kind: outputBox, lines: []string{v.Name, typeText(v.GetType())}, title: "output " + v.Name})
		if s, ok := source[Value(v.Name)]; ok {
			d.edges = append(d.edges, edge{from: s, to: len(d.boxes) - 1, label: typeOf(Value(v.Name))})
		}
	}
	return d
}

// shorten keeps the end of a long name, which is what tells layers apart.
func shorten(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return "…" + string(r[len(r)-most+1:])
}
