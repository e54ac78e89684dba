package onnx

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Bounds on what [Unmarshal] accepts.
const (
	// MaxModelBytes is protobuf's own limit on one message. Larger models keep their weights in
	// external files; see [Save].
	MaxModelBytes = 1<<31 - 1
	// MaxGraphDepth is how many graphs may be nested in each other through node attributes.
	MaxGraphDepth = 32
	// maxMessageDepth bounds nesting of every other kind (types inside types). One nested graph
	// takes three messages: graph, node, attribute.
	maxMessageDepth = 3*MaxGraphDepth + 32
)

// ErrTooDeep is wrapped by the error of a model whose graphs or types are nested deeper than
// [MaxGraphDepth].
var ErrTooDeep = errors.New("nested too deeply")

// Unmarshal decodes a model. The raw data of its tensors is not copied: it aliases b, which must
// stay unchanged for as long as the model is used. Unknown fields are kept. External data is not
// touched; see [Load] and [Model.ResolveExternal]. Memory beyond b is bounded by a small multiple
// of what b holds besides raw data, whatever b says.
func Unmarshal(b []byte) (*Model, error) {
	if len(b) > MaxModelBytes {
		return nil, fmt.Errorf("decode model: %d bytes are more than the %d that one protobuf message may have", len(b), MaxModelBytes)
	}
	if len(b) == 0 {
		return nil, errors.New("decode model: no data")
	}
	m := &Model{}
	if err := decodeModel(m, b); err != nil {
		return nil, fmt.Errorf("decode model: this is no ONNX model, or a damaged one: %w", err)
	}
	if m.Graph == nil {
		return nil, errors.New("decode model: it has no graph")
	}
	return m, nil
}

// UnmarshalTensor decodes one TensorProto, such as the .pb files of ONNX's test cases. Its raw data
// aliases b.
func UnmarshalTensor(b []byte) (*TensorProto, error) {
	if len(b) > MaxModelBytes {
		return nil, fmt.Errorf("decode tensor: %d bytes are more than the %d that one protobuf message may have", len(b), MaxModelBytes)
	}
	t := &TensorProto{}
	if err := decodeTensor(t, b, maxMessageDepth); err != nil {
		return nil, fmt.Errorf("decode tensor: %w", err)
	}
	return t, nil
}

// Field numbers of onnx.proto that lead from a model to raw data.
const (
	fieldModelGraph       = 7
	fieldModelFunctions   = 25
	fieldGraphNode        = 1
	fieldGraphInitializer = 5
	fieldFunctionNode     = 7
	fieldNodeAttribute    = 5
	fieldAttributeTensor  = 5
	fieldAttributeGraph   = 6
	fieldTensorRawData    = 9
)

// The generated decoder copies every bytes field, which would double the memory of a model. So the
// messages on the way to raw data are split by hand into the fields that lead there and the rest,
// which the generated decoder reads.
func split(b []byte, take func(num protowire.Number, body []byte) (bool, error)) (rest []byte, err error) {
	whole := b
	start := 0 // of the run of fields in whole that is not yet copied to rest
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		at := len(whole) - len(b)
		if typ != protowire.BytesType {
			v := protowire.ConsumeFieldValue(num, typ, b[n:])
			if v < 0 {
				return nil, protowire.ParseError(v)
			}
			b = b[n+v:]
			continue
		}
		body, v := protowire.ConsumeBytes(b[n:])
		if v < 0 {
			return nil, protowire.ParseError(v)
		}
		b = b[n+v:]
		taken, err := take(num, body)
		if err != nil {
			return nil, err
		}
		if taken {
			rest = append(rest, whole[start:at]...)
			start = len(whole) - len(b)
		}
	}
	if start == 0 {
		return whole, nil
	}
	return append(rest, whole[start:]...), nil
}

func merge(m proto.Message, b []byte, depth int) error {
	if len(b) == 0 {
		return nil
	}
	err := proto.UnmarshalOptions{Merge: true, RecursionLimit: depth}.Unmarshal(b, m)
	// The library's error for this says "exceeded max recursion depth" and has no type.
	if err != nil && depth < maxMessageDepth && tooDeep(b, depth) {
		return ErrTooDeep
	}
	return err
}

// tooDeep looks for a chain of length-delimited fields longer than depth. It is asked only after
// decoding failed, to word the error.
func tooDeep(b []byte, depth int) bool {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		v := protowire.ConsumeFieldValue(num, typ, b[n:])
		if v < 0 {
			return false
		}
		if typ == protowire.BytesType {
			body, _ := protowire.ConsumeBytes(b[n:])
			if depth <= 1 || tooDeep(body, depth-1) {
				return true
			}
		}
		b = b[n+v:]
	}
	return false
}

func decodeModel(m *Model, b []byte) error {
	rest, err := split(b, func(num protowire.Number, body []byte) (bool, error) {
		switch num {
		case fieldModelGraph:
			if m.Graph == nil {
				m.Graph = &Graph{}
			}
			return true, decodeGraph(m.Graph, body, MaxGraphDepth)
		case fieldModelFunctions:
			f := &Function{}
			m.Functions = append(m.Functions, f)
			return true, decodeFunction(f, body)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	return merge(m, rest, maxMessageDepth)
}

func decodeFunction(f *Function, b []byte) error {
	rest, err := split(b, func(num protowire.Number, body []byte) (bool, error) {
		if num != fieldFunctionNode {
			return false, nil
		}
		n := &Node{}
		f.Node = append(f.Node, n)
		return true, decodeNode(n, body, MaxGraphDepth)
	})
	if err != nil {
		return fmt.Errorf("function: %w", err)
	}
	return merge(f, rest, maxMessageDepth)
}

func decodeGraph(g *Graph, b []byte, depth int) error {
	if depth <= 0 {
		return ErrTooDeep
	}
	rest, err := split(b, func(num protowire.Number, body []byte) (bool, error) {
		switch num {
		case fieldGraphNode:
			n := &Node{}
			g.Node = append(g.Node, n)
			if err := decodeNode(n, body, depth); err != nil {
				return true, fmt.Errorf("node %d: %w", len(g.Node)-1, err)
			}
			return true, nil
		case fieldGraphInitializer:
			t := &TensorProto{}
			g.Initializer = append(g.Initializer, t)
			if err := decodeTensor(t, body, maxMessageDepth); err != nil {
				return true, fmt.Errorf("initializer %d: %w", len(g.Initializer)-1, err)
			}
			return true, nil
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	return merge(g, rest, 3*depth)
}

func decodeNode(n *Node, b []byte, depth int) error {
	rest, err := split(b, func(num protowire.Number, body []byte) (bool, error) {
		if num != fieldNodeAttribute {
			return false, nil
		}
		a := &Attribute{}
		n.Attribute = append(n.Attribute, a)
		return true, decodeAttribute(a, body, depth)
	})
	if err != nil {
		return err
	}
	return merge(n, rest, 3*depth)
}

func decodeAttribute(a *Attribute, b []byte, depth int) error {
	rest, err := split(b, func(num protowire.Number, body []byte) (bool, error) {
		switch num {
		case fieldAttributeTensor:
			if a.T == nil {
				a.T = &TensorProto{}
			}
			return true, decodeTensor(a.T, body, maxMessageDepth)
		case fieldAttributeGraph:
			if a.G == nil {
				a.G = &Graph{}
			}
			return true, decodeGraph(a.G, body, depth-1)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	return merge(a, rest, 3*depth)
}

func decodeTensor(t *TensorProto, b []byte, depth int) error {
	rest, err := split(b, func(num protowire.Number, body []byte) (bool, error) {
		if num != fieldTensorRawData {
			return false, nil
		}
		// The capacity is cut so that an append to raw data can never write into the file's next
		// field.
		t.RawData = body[:len(body):len(body)]
		return true, nil
	})
	if err != nil {
		return err
	}
	return merge(t, rest, depth)
}
