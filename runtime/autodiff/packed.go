package autodiff

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// piece is a gradient, or one term of it, that lies flattened in a pack: n elements from at on.
type piece struct {
	pack  onnx.Value
	at, n int
}

// packed is what a branch hands over of the gradient of w: a value, pieces of packs, or nothing.
type packed struct {
	w, value onnx.Value
	pieces   []piece
}

// packs reports whether the gradient of a value is handed over in a pack: inside another branch,
// which hands it on, so that it costs one output at every level and not one for each value.
func (p *pass) packs(w onnx.Value) bool {
	_, static := p.c.Type(w).Static()
	return p.outer[w] && static && p.c.DType(w) == tensor.Float32
}

// packedOf returns what a branch hands over of the gradient of w. Pieces alone stay where they are.
func (p *pass) packedOf(grads map[string][]onnx.Value, w onnx.Value) packed {
	var all []piece
	for _, t := range grads[string(w)] {
		if p.pieces[t] == nil {
			return packed{w: w, value: p.accumulate(grads, string(w))}
		}
		all = append(all, p.pieces[t]...)
	}
	return packed{w: w, pieces: all}
}

// packGradients gives both branches one more output that holds what they hand over, the first
// branch's in front of the second's, with zeros for what the other one has. It returns where the
// terms of each gradient lie in it, and its length.
func (p *pass) packGradients(sides []*branch) (places map[onnx.Value][]piece, length int) {
	c := p.c
	places = map[onnx.Value][]piece{}
	parts, sizes := make([][]onnx.Value, len(sides)), make([]int, len(sides))
	for i, b := range sides {
		start, at := length, map[onnx.Value]int{}
		b.backward = append(b.backward, c.emitted(func() {
			for _, k := range b.packed {
				if n := prod(c.Shape(k.w)); k.value != "" && n > 0 {
					parts[i] = append(parts[i], c.Reshape(k.value, n))
					places[k.w] = append(places[k.w], piece{at: length, n: n})
					length += n
				}
				for _, s := range k.pieces {
					if _, ok := at[s.pack]; !ok {
						at[s.pack] = length
						parts[i] = append(parts[i], s.pack)
						length += prod(c.Shape(s.pack))
					}
					places[k.w] = append(places[k.w], piece{at: at[s.pack] + s.at, n: s.n})
				}
			}
		})...)
		sizes[i] = length - start
	}
	if length == 0 {
		return places, 0
	}
	for i, b := range sides {
		b.backward = append(b.backward, c.emitted(func() {
			all := parts[i]
			if rest := length - sizes[i]; rest > 0 && i == 0 {
				all = append(all, c.Fill(tensor.Float32, 0, rest))
			} else if rest > 0 {
				all = append([]onnx.Value{c.Fill(tensor.Float32, 0, rest)}, all...)
			}
			v := c.Concat(0, all...)
			if len(all) == 1 {
				v = c.Unary("Identity", v)
			}
			b.gradients = append(b.gradients, v)
		})...)
	}
	return places, length
}

// leaveIn records that the terms lie in a pack.
func (p *pass) leaveIn(pack onnx.Value, length int, places map[onnx.Value][]piece) {
	p.c.env.Set(pack, factOf(onnx.TypeOf(tensor.Float32, length)))
	for _, list := range places {
		for i := range list {
			list[i].pack = pack
		}
	}
}

// virtual returns a name that stands for a gradient of w that lies in a pack. No node makes it.
func (p *pass) virtual(w onnx.Value, places []piece) onnx.Value {
	v := p.c.b.Fresh("piece")
	p.c.env.Set(v, factOf(p.c.Type(w)))
	if p.pieces == nil {
		p.pieces = map[onnx.Value][]piece{}
	}
	p.pieces[v] = places
	return v
}

// takeOut emits a gradient that lies in a pack; other values are returned as they are.
func (p *pass) takeOut(v onnx.Value) onnx.Value {
	var sum onnx.Value
	for _, s := range p.pieces[v] {
		t := s.pack
		if length := prod(p.c.Shape(t)); s.n < length {
			t = p.c.Slice(t, []int{s.at}, []int{s.at + s.n}, []int{0}, nil)
		}
		if sum == "" {
			sum = t
		} else {
			sum = p.c.Add(sum, t)
		}
	}
	if sum == "" {
		return v
	}
	return p.c.ReshapeLike(sum, v)
}
