package shape

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// einsum follows numpy.einsum's notation: letters name axes, "..." stands for broadcast axes, and
// without "->" the output holds the letters that occur once, sorted, after the broadcast axes. As
// the standard says, and unlike numpy, "..." stands for the same number of axes in every term; ONNX
// Runtime relies on it.
func einsum(c *call) error {
	eq := strings.ReplaceAll(c.str("equation", ""), " ", "")
	left, right, explicit := strings.Cut(eq, "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(c.ins) {
		return fmt.Errorf("equation %q has %d terms for %d inputs", eq, len(terms), len(c.ins))
	}
	ext := map[rune]onnx.Dim{}
	count := map[rune]int{}
	var dots onnx.TensorType // the broadcast axes, when seen
	dots.Ranked = true
	whole, seen := true, false
	for i, term := range terms {
		head, tail, ellipsis := strings.Cut(term, "...")
		letters := head + tail
		for _, r := range letters {
			if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
				return fmt.Errorf("equation %q: %q is no axis", eq, r)
			}
			count[r]++
			if _, ok := ext[r]; !ok {
				ext[r] = onnx.Symbol("")
			}
		}
		t := c.typ(i)
		if !t.Ranked {
			whole = whole && !ellipsis
			continue
		}
		n := len(t.Dims)
		if len(letters) > n || !ellipsis && len(letters) != n {
			return fmt.Errorf("equation %q: term %q does not fit input %d, %v", eq, term, i, t)
		}
		axes := slices.Concat(t.Dims[:len(head)], t.Dims[n-len(tail):])
		for j, r := range letters {
			// An axis of extent 1 is stretched, as ONNX Runtime and numpy do.
			d, ok := broadcastDim(ext[r], axes[j])
			if ext[r] == onnx.Symbol("") {
				d, ok = axes[j], true
			}
			if !ok {
				return fmt.Errorf("equation %q: axis %q is %v, but input %d, %v, has %v", eq, r, ext[r], i, t, axes[j])
			}
			ext[r] = d
		}
		if ellipsis {
			covered := t.Dims[len(head) : n-len(tail)]
			if seen && len(covered) != len(dots.Dims) {
				return fmt.Errorf("equation %q: the ellipsis stands for %d axes of input %d, %v, and for %d of an input before it; the same number expected", eq, len(covered), i, t, len(dots.Dims))
			}
			seen = true
			b, err := broadcast(dots, onnx.TensorType{Ranked: true, Dims: covered})
			if err != nil {
				return fmt.Errorf("equation %q: %w", eq, err)
			}
			dots = b
		}
	}
	if !explicit {
		var once []rune
		for r, n := range count {
			if n == 1 {
				once = append(once, r)
			}
		}
		slices.Sort(once)
		right = string(once)
		if strings.Contains(left, "...") {
			right = "..." + right
		}
	}
	head, tail, ellipsis := strings.Cut(right, "...")
	if ellipsis && !whole {
		c.setUnranked(0, c.dtype(0))
		return nil
	}
	var out []onnx.Dim
	add := func(letters string) error {
		for _, r := range letters {
			d, ok := ext[r]
			if !ok {
				return fmt.Errorf("equation %q: output axis %q occurs in no input", eq, r)
			}
			out = append(out, d)
		}
		return nil
	}
	if err := add(head); err != nil {
		return err
	}
	if ellipsis {
		out = append(out, dots.Dims...)
	}
	if err := add(tail); err != nil {
		return err
	}
	c.setDims(0, c.dtype(0), out...)
	return nil
}
