package onnx

import (
	"fmt"
	"sync"

	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
)

var schemaBodies sync.Map // of bodyKey to *Function

type bodyKey struct {
	domain, op string
	opset      int
}

// SchemaBody returns the function by which the ONNX standard defines a composite operator at an
// opset version, or nil when it gives none that holds for every node. The result is shared and must
// not be changed. [InlineBody] and [Expand] instantiate it.
func SchemaBody(domain, op string, opset int) *Function {
	k := bodyKey{NormalizeDomain(domain), op, opset}
	if f, ok := schemaBodies.Load(k); ok {
		return f.(*Function)
	}
	b := schema.Body(domain, op, opset)
	if b == nil {
		return nil
	}
	f := &Function{}
	if err := decodeFunction(f, b); err != nil {
		panic(fmt.Sprintf("onnx: the embedded body of %s: %v", op, err))
	}
	giveDefaults(f, k)
	got, _ := schemaBodies.LoadOrStore(k, f)
	return got.(*Function)
}

// giveDefaults writes the defaults of the operator's attributes into its body, where the standard
// leaves them to the schema.
func giveDefaults(f *Function, k bodyKey) {
	op, _ := schema.Lookup(k.domain, k.op, k.opset)
	var without []string
	for _, name := range f.Attribute {
		formal, ok := op.Attr(name)
		var a *Attribute
		if ok {
			a = defaultAttribute(formal)
		}
		if a == nil {
			without = append(without, name)
		} else {
			f.AttributeProto = append(f.AttributeProto, a)
		}
	}
	f.Attribute = without
}

// defaultAttribute returns a formal attribute's default, nil when it has none.
func defaultAttribute(f schema.Attr) *Attribute {
	switch d := f.Default.(type) {
	case float64:
		if f.Type == "INT" {
			return AttrInt(f.Name, int(d))
		}
		return AttrFloat(f.Name, float32(d))
	case string:
		return AttrStr(f.Name, d)
	case []any:
		a := &Attribute{Name: f.Name, Type: AttributeProto_AttributeType(AttributeProto_AttributeType_value[f.Type])}
		for _, x := range d {
			switch x := x.(type) {
			case string:
				a.Strings = append(a.Strings, []byte(x))
			case float64:
				if f.Type == "INTS" {
					a.Ints = append(a.Ints, int64(x))
				} else {
					a.Floats = append(a.Floats, float32(x))
				}
			}
		}
		return a
	}
	return nil
}
