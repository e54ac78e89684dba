package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// node checks a node against its operator's schema, or against the model's function of that name.
func (c *graphCheck) node(n *Node) {
	if n.OpType == "" {
		c.add(n.Describe(), "it has no operator")
		return
	}
	if !slices.ContainsFunc(n.Output, func(o string) bool { return o != "" }) {
		c.add(n.Describe(), "it has no output")
	}
	c.attributeForm(n)
	if f := c.functions[keyOfCall(n)]; f != nil {
		c.callOf(n, f)
		return
	}
	domain := NormalizeDomain(n.Domain)
	opset := opsetOf(c.opsets, domain)
	if opset == 0 {
		c.add(n.Describe(), "the opset of domain %q is not imported", n.Domain)
		return
	}
	attributeValues(n, opset, func(format string, args ...any) { c.add(n.Describe(), format, args...) })
	if schema.Latest(domain) == 0 {
		key := domain + "." + n.OpType
		if c.opts.Strict {
			c.add(n.Describe(), "no schema is known for domain %q", domain)
		} else if !c.unchecked[key] {
			c.unchecked[key] = true
			c.report.Unchecked = append(c.report.Unchecked, key)
		}
		return
	}
	op, ok := schema.Lookup(domain, n.OpType, opset)
	if !ok {
		if versions := schema.Versions(domain, n.OpType); len(versions) > 0 {
			c.add(n.Describe(), "the operator exists from opset %d on, the model imports %d", versions[0], opset)
		} else {
			c.add(n.Describe(), "there is no such operator")
		}
		return
	}
	if op.Deprecated && !c.opts.Deprecated {
		c.add(n.Describe(), "the operator is deprecated since opset %d", op.Since)
		return
	}
	c.arity(n, op)
	c.attributes(n, op)
	c.elementTypes(n, op)
}

// attributeForm checks what holds for attributes of every operator.
func (c *graphCheck) attributeForm(n *Node) {
	seen := map[string]bool{}
	for _, a := range n.Attribute {
		if a.Name == "" {
			c.add(n.Describe(), "an attribute has no name")
		}
		if seen[a.Name] {
			c.add(n.Describe(), "attribute %q is given twice", a.Name)
		}
		seen[a.Name] = true
		if a.RefAttrName != "" {
			switch {
			case c.function == nil:
				c.add(n.Describe(), "attribute %q refers to an attribute of a function, but is not inside one", a.Name)
			case !declaresAttribute(c.function, a.RefAttrName):
				c.add(n.Describe(), "attribute %q refers to %q, which the function does not declare", a.Name, a.RefAttrName)
			}
			continue
		}
		if a.Type == AttributeProto_TENSOR && a.T == nil || a.Type == AttributeProto_GRAPH && a.G == nil || a.Type == AttributeProto_SPARSE_TENSOR && a.SparseTensor == nil {
			c.add(n.Describe(), "attribute %q holds no %s", a.Name, typeName(a.Type))
		}
		for _, t := range append([]*TensorProto{a.T}, a.Tensors...) {
			if t == nil {
				continue
			}
			if err := checkTensor(t); err != nil {
				c.add(n.Describe(), "attribute %q: %v", a.Name, err)
			}
		}
		for _, t := range append([]*SparseTensorProto{a.SparseTensor}, a.SparseTensors...) {
			if t == nil {
				continue
			}
			if err := checkSparse(t); err != nil {
				c.add(n.Describe(), "attribute %q: sparse %v", a.Name, err)
			}
		}
	}
}

func (c *graphCheck) callOf(n *Node, f *Function) {
	if len(n.Input) > len(f.Input) {
		c.add(n.Describe(), "the function takes %s, the node has %d", plural(len(f.Input), "input"), len(n.Input))
	}
	if len(n.Output) > len(f.Output) {
		c.add(n.Describe(), "the function gives %s, the node has %d", plural(len(f.Output), "output"), len(n.Output))
	}
	for _, a := range n.Attribute {
		if !declaresAttribute(f, a.Name) {
			c.add(n.Describe(), "the function declares no attribute %q", a.Name)
		}
	}
}

func (c *graphCheck) arity(n *Node, op *schema.Operator) {
	count := func(names []string, least, most int, kind string, param func(int) (schema.Param, bool)) {
		have := len(names)
		switch {
		case have < least:
			c.add(n.Describe(), "it has %s, at least %d expected", plural(have, kind), least)
		case most >= 0 && have > most:
			c.add(n.Describe(), "it has %s, at most %d expected", plural(have, kind), most)
		}
		for i, v := range names {
			if p, ok := param(i); ok && v == "" && p.Option == schema.Single {
				c.add(n.Describe(), "%s %q is left out but not optional", kind, p.Name)
			}
		}
	}
	count(n.Input, op.MinInputs, op.MaxInputs, "input", op.Input)
	// A required output may be left out when nothing reads it.
	count(n.Output, op.MinOutputs, op.MaxOutputs, "output", func(int) (schema.Param, bool) { return schema.Param{}, false })
}

func (c *graphCheck) attributes(n *Node, op *schema.Operator) {
	for _, a := range n.Attribute {
		formal, ok := op.Attr(a.Name)
		if !ok {
			c.add(n.Describe(), "opset %d of the operator has no attribute %q", op.Since, a.Name)
			continue
		}
		// The oldest files carry no types.
		if a.Type != AttributeProto_UNDEFINED && a.Type.String() != formal.Type {
			c.add(n.Describe(), "attribute %q is %s, %s expected", a.Name, typeName(a.Type), strings.ToLower(formal.Type))
		}
	}
	for _, a := range op.Attributes {
		if a.Required && !n.Has(a.Name) {
			c.add(n.Describe(), "attribute %q is missing", a.Name)
		}
	}
}

// CheckAttributes is an error where an attribute of a node holds a number out of its bounds or a
// word that the standard does not know, in an opset of the node's domain. Kernels and rules need not
// look at that again.
func CheckAttributes(n *Node, opset int) (err error) {
	attributeValues(n, opset, func(format string, args ...any) {
		if err == nil {
			err = fmt.Errorf("%s: %s", n.Describe(), fmt.Sprintf(format, args...))
		}
	})
	return err
}

// attributeValues checks numbers and words of attributes.
func attributeValues(n *Node, opset int, add func(format string, args ...any)) {
	domain := NormalizeDomain(n.Domain)
	for _, a := range n.Attribute {
		if a.RefAttrName != "" {
			continue
		}
		if a.Type == AttributeProto_STRING || a.Type == AttributeProto_STRINGS {
			may := schema.WordsOf(domain, n.OpType, a.Name, schema.Version(domain, n.OpType, opset))
			for _, s := range append([][]byte{a.S}, a.Strings...) {
				if may != nil && !slices.Contains(may, string(s)) && (a.Type == AttributeProto_STRING || s != nil) {
					add("attribute %q is %q, %s expected", a.Name, s, strings.Join(may, ", "))
				}
			}
		}
		b, ok := schema.BoundsOf(n.OpType, a.Name)
		if !ok || domain != DomainStandard && domain != DomainMS {
			continue
		}
		switch {
		case a.Type == AttributeProto_INT || a.Type == AttributeProto_UNDEFINED && len(a.Ints) == 0:
			if !b.Holds(a.I) {
				add("attribute %q is %d, %v expected", a.Name, a.I, b)
			}
		case slices.ContainsFunc(a.Ints, func(v int64) bool { return !b.Holds(v) }):
			list := fmt.Sprint(a.Ints[:min(len(a.Ints), 16)])
			add("attribute %q is %s, numbers of %v expected", a.Name, list, b)
		}
	}
}

// elementTypes checks inputs whose types are known against the operator's constraints, and that
// inputs sharing a type parameter agree.
func (c *graphCheck) elementTypes(n *Node, op *schema.Operator) {
	bound := map[string]string{}
	by := map[string]string{}
	for i, v := range n.Input {
		p, ok := op.Input(i)
		if !ok || v == "" {
			continue
		}
		t, ok := c.types(Value(v))
		if !ok || t.DType == tensor.Undefined {
			continue
		}
		name := standardType(t.DType)
		if name == "" {
			continue
		}
		allowed := op.Types[p.Type]
		// The constraint of a parameter that is not a plain tensor is for the engine to evaluate:
		// the element type says too little.
		if !slices.ContainsFunc(allowed, func(s string) bool { return strings.HasPrefix(s, "tensor(") }) {
			continue
		}
		if !slices.Contains(allowed, name) {
			c.add(n.Describe(), "input %q is %v, which opset %d of the operator does not take", v, t.DType, op.Since)
			continue
		}
		if p.Option == schema.Variadic && p.Heterogeneous {
			continue
		}
		if old := bound[p.Type]; old != "" && old != name {
			c.add(n.Describe(), "inputs %q and %q are %s and %s, one type expected", by[p.Type], v, old, name)
		}
		bound[p.Type], by[p.Type] = name, v
	}
}

// standardType writes a tensor type as the schemas do, or "" for types they do not name.
func standardType(d tensor.DType) string {
	switch d {
	case tensor.Float32:
		return "tensor(float)"
	case tensor.Float64:
		return "tensor(double)"
	}
	if d.Bits() == 0 && d != tensor.String {
		return ""
	}
	return "tensor(" + d.String() + ")"
}
