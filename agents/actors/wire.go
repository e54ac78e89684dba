package actors

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
)

// protocol is the version of the messages. Both sides are to have the same.
const protocol = 1

// request is what a group sends to the process of an actor: gob, on one stream, answered in turns
// by a reply. The first one has Begin, all others Play.
type request struct {
	Begin *beginning
	Play  *order
}

// beginning says what is to be acted in, by what, and from where on.
type beginning struct {
	Protocol int
	// Document is that of the run, which is opened there as it is here.
	Document     []byte
	Index, Count int
	// Params are the parameters of the learner, by name, little-endian.
	Params   map[string][]byte
	Position *Position
}

// order asks for an unroll with parameters of a version: the segments that learning changes,
// little-endian.
type order struct {
	Number, Version int64
	Values          [][]byte
}

// reply has an error, an unroll, or neither after the beginning.
type reply struct {
	Error  string
	Played *handed
}

// handed is a [Played] whose arrays are bytes.
type handed struct {
	Number, Version int64
	Rows            int
	Arrays          []array
	Tally           Tally
	Position        Position
}

// array is a slice of Of: bool, byte, int64, float32 or float64.
type array struct {
	Name, Of string
	Len      int
	Data     []byte
}

// pack returns what is sent of an unroll.
func pack(p *Played) (*handed, error) {
	h := &handed{Number: p.Number, Version: p.Version, Rows: p.Rows, Tally: p.Tally, Position: p.Position}
	for _, name := range slices.Sorted(maps.Keys(p.Arrays)) {
		a := array{Name: name}
		switch x := p.Arrays[name].(type) {
		case []bool:
			a.Of, a.Len = "bool", len(x)
		case []byte:
			a.Of, a.Len = "byte", len(x)
		case []int64:
			a.Of, a.Len = "int64", len(x)
		case []float32:
			a.Of, a.Len = "float32", len(x)
		case []float64:
			a.Of, a.Len = "float64", len(x)
		default:
			return nil, fmt.Errorf("send an unroll: %q is %T", name, x)
		}
		var err error
		if a.Data, err = binary.Append(nil, binary.LittleEndian, p.Arrays[name]); err != nil {
			return nil, fmt.Errorf("send an unroll: %q: %w", name, err)
		}
		h.Arrays = append(h.Arrays, a)
	}
	return h, nil
}

// unpack is the inverse of pack. Lengths are looked at before anything is made of them.
func (h *handed) unpack() (*Played, error) {
	p := &Played{Number: h.Number, Unroll: &agents.Unroll{Version: h.Version, Rows: h.Rows, Arrays: map[string]any{}}, Tally: h.Tally, Position: h.Position}
	for _, a := range h.Arrays {
		size, ok := map[string]int{"bool": 1, "byte": 1, "int64": 8, "float32": 4, "float64": 8}[a.Of]
		if !ok || a.Len < 0 || len(a.Data)/size != a.Len || len(a.Data)%size != 0 {
			return nil, fmt.Errorf("receive an unroll: %q is of %d %s in %d bytes", a.Name, a.Len, a.Of, len(a.Data))
		}
		var to any
		switch a.Of {
		case "bool":
			to = make([]bool, a.Len)
		case "byte":
			to = make([]byte, a.Len)
		case "int64":
			to = make([]int64, a.Len)
		case "float32":
			to = make([]float32, a.Len)
		case "float64":
			to = make([]float64, a.Len)
		}
		if _, err := binary.Decode(a.Data, binary.LittleEndian, to); err != nil {
			return nil, fmt.Errorf("receive an unroll: %q: %w", a.Name, err)
		}
		p.Arrays[a.Name] = to
	}
	return p, nil
}
