package onnx

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ChangeKind says how something differs between two models.
type ChangeKind string

// The kinds of change.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
)

// Change is one difference. Before and After are the printed forms; one is empty for what was added
// or removed.
type Change struct {
	Kind   ChangeKind `json:"kind"`
	Name   string     `json:"name"`
	Before string     `json:"before,omitempty"`
	After  string     `json:"after,omitempty"`
}

// ModelDiff lists the differences of two models by what differs. Names of things inside sub-graphs
// start with the path to the sub-graph.
type ModelDiff struct {
	Model        []Change `json:"model,omitempty"` // versions, opsets, producer, metadata
	Inputs       []Change `json:"inputs,omitempty"`
	Outputs      []Change `json:"outputs,omitempty"`
	Initializers []Change `json:"initializers,omitempty"`
	Nodes        []Change `json:"nodes,omitempty"`
	Functions    []Change `json:"functions,omitempty"`
}

// Diff compares two models. Nodes are matched by their first output's name; what remains on both
// sides is matched when it has the same operator and stands at the same place among the remaining.
// The order of nodes and names of nodes are not compared. Weights are compared by content.
func Diff(a, b *Model) *ModelDiff {
	d := &ModelDiff{}
	d.Model = compare(modelFields(a), modelFields(b))
	x, y := flatten(a), flatten(b)
	d.Inputs = compare(x.inputs, y.inputs)
	d.Outputs = compare(x.outputs, y.outputs)
	d.Initializers = compare(x.init, y.init)
	d.Nodes = compareNodes(x.nodes, y.nodes)
	d.Functions = compare(functionTexts(a), functionTexts(b))
	return d
}

// Empty reports whether the models do not differ.
func (d *ModelDiff) Empty() bool { return d.Count() == 0 }

// Count returns the number of changes.
func (d *ModelDiff) Count() int {
	n := 0
	for _, s := range d.sections() {
		n += len(s.changes)
	}
	return n
}

type diffSection struct {
	title   string
	changes []Change
}

func (d *ModelDiff) sections() []diffSection {
	return []diffSection{{"model", d.Model}, {"inputs", d.Inputs}, {"outputs", d.Outputs}, {"initializers", d.Initializers}, {"nodes", d.Nodes}, {"functions", d.Functions}}
}

// Fprint writes the differences as text: "+" what was added, "-" what was removed, both for what
// changed.
func (d *ModelDiff) Fprint(w io.Writer) error {
	b := bufio.NewWriter(w)
	mark := func(sign, text string) {
		for l := range strings.Lines(text) {
			b.WriteString("  " + sign + " " + strings.TrimSuffix(l, "\n") + "\n")
		}
	}
	for _, s := range d.sections() {
		if len(s.changes) == 0 {
			continue
		}
		fmt.Fprintf(b, "%s\n", s.title)
		for _, c := range s.changes {
			if c.Before != "" {
				mark("-", c.Before)
			}
			if c.After != "" {
				mark("+", c.After)
			}
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("print difference: %w", err)
	}
	return nil
}

// entry is one comparable thing: its identity and its printed form.
type entry struct {
	key, text string
	op        string // nodes only
}

func modelFields(m *Model) []entry {
	out := []entry{{key: "ir_version", text: fmt.Sprintf("ir_version %d", m.GetIrVersion())},
		{key: "producer", text: fmt.Sprintf("producer %q %q", m.GetProducerName(), m.GetProducerVersion())},
		{key: "model", text: fmt.Sprintf("model domain %q version %d", m.GetDomain(), m.GetModelVersion())},
		{key: "graph", text: fmt.Sprintf("graph %q", m.GetGraph().GetName())}}
	for _, o := range m.GetOpsetImport() {
		out = append(out, entry{key: "opset " + NormalizeDomain(o.Domain), text: fmt.Sprintf("opset %q %d", NormalizeDomain(o.Domain), o.Version)})
	}
	for _, p := range sortedProps(m.GetMetadataProps()) {
		out = append(out, entry{key: "meta " + p.Key, text: fmt.Sprintf("meta %s = %q", bare(p.Key), p.Value)})
	}
	return out
}

func functionTexts(m *Model) []entry {
	var out []entry
	for _, f := range m.GetFunctions() {
		text := render(func(p *printer) { p.function(f) })
		out = append(out, entry{key: describeFunction(f), text: text})
	}
	return out
}

// render runs a printer that shows no types, into a string.
func render(f func(*printer)) string {
	var s strings.Builder
	w := bufio.NewWriter(&s)
	p := newPrinter(w, PrintOptions{})
	p.types = func(Value) (TensorType, bool) { return TensorType{}, false }
	f(p)
	w.Flush()
	return strings.TrimSuffix(s.String(), "\n")
}

type flat struct{ inputs, outputs, init, nodes []entry }

// flatten lists everything of the main graph and its sub-graphs.
func flatten(m *Model) flat {
	var f flat
	var walk func(g *Graph, path string)
	walk = func(g *Graph, path string) {
		for _, v := range g.GetInput() {
			f.inputs = append(f.inputs, entry{key: path + v.Name, text: path + valueName(v.Name) + ": " + typeText(v.GetType())})
		}
		for _, v := range g.GetOutput() {
			f.outputs = append(f.outputs, entry{key: path + v.Name, text: path + valueName(v.Name) + ": " + typeText(v.GetType())})
		}
		for _, t := range g.GetInitializer() {
			f.init = append(f.init, entry{key: path + t.Name, text: path + valueName(t.Name) + ": " + tensorText(t, 8)})
		}
		for _, t := range g.GetSparseInitializer() {
			f.init = append(f.init, entry{key: path + t.GetValues().GetName(), text: path + valueName(t.GetValues().GetName()) + ": " + sparseText(t, 8)})
		}
		for _, n := range g.GetNode() {
			key := firstOutput(n)
			f.nodes = append(f.nodes, entry{key: path + key, op: path + n.OpType, text: path + render(func(p *printer) { p.w.WriteString(p.nodeLine(n)) })})
			for _, a := range n.Attribute {
				for i, s := range append([]*Graph{a.G}, a.Graphs...) {
					if s != nil {
						step := a.Name
						if i > 0 {
							step = fmt.Sprintf("%s[%d]", a.Name, i-1)
						}
						walk(s, path+key+"/"+step+": ")
					}
				}
			}
		}
	}
	walk(m.GetGraph(), "")
	return f
}

func firstOutput(n *Node) string {
	for _, o := range n.Output {
		if o != "" {
			return o
		}
	}
	return n.Name
}

func compare(a, b []entry) []Change {
	out, restA, restB := match(a, b)
	for _, e := range restA {
		out = append(out, Change{Kind: Removed, Name: e.key, Before: e.text})
	}
	for _, e := range restB {
		out = append(out, Change{Kind: Added, Name: e.key, After: e.text})
	}
	return out
}

// match compares entries of equal keys and returns those that only one side has.
func match(a, b []entry) (changes []Change, restA, restB []entry) {
	right := map[string][]int{}
	for i, e := range b {
		right[e.key] = append(right[e.key], i)
	}
	used := make([]bool, len(b))
	for _, e := range a {
		list := right[e.key]
		if len(list) == 0 {
			restA = append(restA, e)
			continue
		}
		other := b[list[0]]
		used[list[0]], right[e.key] = true, list[1:]
		if other.text != e.text {
			changes = append(changes, Change{Kind: Changed, Name: e.key, Before: e.text, After: other.text})
		}
	}
	for i, e := range b {
		if !used[i] {
			restB = append(restB, e)
		}
	}
	return changes, restA, restB
}

func compareNodes(a, b []entry) []Change {
	out, restA, restB := match(a, b)
	// The same operator at the same place among what is left was most likely renamed.
	byOp := map[string][]int{}
	for i, e := range restB {
		byOp[e.op] = append(byOp[e.op], i)
	}
	paired := make([]bool, len(restB))
	restA = slices.DeleteFunc(restA, func(e entry) bool {
		list := byOp[e.op]
		if len(list) == 0 {
			return false
		}
		i := list[0]
		byOp[e.op], paired[i] = list[1:], true
		out = append(out, Change{Kind: Changed, Name: e.key, Before: e.text, After: restB[i].text})
		return true
	})
	for _, e := range restA {
		out = append(out, Change{Kind: Removed, Name: e.key, Before: e.text})
	}
	for i, e := range restB {
		if !paired[i] {
			out = append(out, Change{Kind: Added, Name: e.key, After: e.text})
		}
	}
	return out
}
