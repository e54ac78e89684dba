package autodiff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// vjpEinsum: the gradient of an operand is an Einsum of the other operands and the upstream
// gradient whose result carries the operand's labels. Labels that only this operand has were summed
// over, so the gradient is constant along them; a label that the operand repeats selects a
// diagonal, so the gradient is zero off it.
func vjpEinsum(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	var ranks []int
	for _, in := range n.Input {
		ranks = append(ranks, c.Rank(onnx.Value(in)))
	}
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	terms, out, err := parseEinsum(n.Str("equation", ""), ranks)
	if err != nil {
		return nil, err
	}
	d := make([]onnx.Value, len(n.Input))
	for i := range d {
		if !c.Wants(i) {
			continue
		}
		d[i] = c.einsumOperand(n, g[0], terms, out, i)
	}
	return d, nil
}

// einsumOperand builds the gradient of operand i.
func (c *Context) einsumOperand(n *onnx.Node, g onnx.Value, terms []string, out string, i int) onnx.Value {
	_, static := c.Type(n.In(i)).Static()
	ins, from := []onnx.Value{g}, []string{out}
	for j, t := range terms {
		if j != i {
			ins, from = append(ins, n.In(j)), append(from, t)
		}
	}
	available := strings.Join(from, "")
	// want: the operand's labels once each; have: those that the other terms can provide.
	var want, have string
	for _, l := range terms[i] {
		if !strings.ContainsRune(want, l) {
			want += string(l)
			if strings.ContainsRune(available, l) {
				have += string(l)
			}
		}
	}
	d := g
	if len(ins) > 1 || have != out {
		d = c.Op("Einsum", ins, onnx.AttrStr("equation", strings.Join(from, ",")+"->"+have))
	}
	// Labels that the operand alone has, or has with an extent that was broadcast, are brought to
	// the operand's extents.
	if _, ok := c.Type(d).Static(); (!ok || !static) && len(want) == len(terms[i]) {
		var missing []int
		for a, l := range want {
			if !strings.ContainsRune(have, l) {
				missing = append(missing, a)
			}
		}
		if missing == nil {
			return d
		}
		return c.ExpandLike(c.UnbroadcastLike(c.Op("Unsqueeze", two(d, c.b.Ints(missing...))), n.In(i)), n.In(i))
	}
	shape := c.Shape(n.In(i))
	got := c.Shape(d)
	if c.b.Err() != nil {
		return ""
	}
	full, view := make([]int, 0, len(want)), make([]int, 0, len(want))
	k := 0
	for _, l := range want {
		extent := shape[strings.IndexRune(terms[i], l)]
		if k < len(have) && rune(have[k]) == l {
			full, view = append(full, got[k]), append(view, got[k])
			k++
			continue
		}
		full, view = append(full, extent), append(view, 1)
	}
	d = c.Reshape(d, view...)
	unique := make([]int, 0, len(want))
	for _, l := range want {
		unique = append(unique, shape[strings.IndexRune(terms[i], l)])
	}
	for a := range full {
		if unique[a] != full[a] && unique[a] != 1 {
			full[a] = unique[a]
		}
	}
	d = c.Unbroadcast(c.Expand(d, full...), unique)
	if len(want) == len(terms[i]) {
		return d
	}
	return c.diagonal(d, want, terms[i], shape)
}

// diagonal spreads a value with the labels want over a shape whose axes carry labels, some of them
// twice or more: zero where axes of equal label differ in position.
func (c *Context) diagonal(d onnx.Value, want, labels string, shape []int) onnx.Value {
	// The value broadcasts along the repeated axes; a constant mask keeps the diagonal.
	perm, view := make([]int, 0, len(want)), make([]int, len(labels))
	first := map[rune]int{}
	for a, l := range labels {
		view[a] = 1
		if _, ok := first[l]; !ok {
			first[l] = a
			view[a] = shape[a]
		}
	}
	for _, l := range want {
		perm = append(perm, first[l])
	}
	// want lists labels in the order in which the operand first has them, so no transposition is
	// needed.
	if !slices.IsSorted(perm) {
		c.Fail("labels %q are not in the order of %q", want, labels)
		return ""
	}
	d = c.Reshape(d, view...)
	for a, l := range labels {
		f := first[l]
		if a == f {
			continue
		}
		mask := tensor.New(tensor.Float32, shape[f], shape[a])
		for k := range min(shape[f], shape[a]) {
			mask.Float32s()[k*shape[a]+k] = 1
		}
		mv := slices.Repeat([]int{1}, len(labels))
		mv[f], mv[a] = shape[f], shape[a]
		d = c.Mul(d, c.Cast(c.b.Const(mask.Reshape(mv...)), c.DType(d)))
	}
	return d
}

// parseEinsum splits an equation into one label per axis of each operand and of the result. An
// ellipsis becomes labels of its own, aligned at the right; a result that is not written holds the
// ellipsis and then, in alphabetical order, the labels that occur once.
func parseEinsum(equation string, ranks []int) (terms []string, out string, err error) {
	eq := strings.ReplaceAll(equation, " ", "")
	left, right, explicit := strings.Cut(eq, "->")
	terms = strings.Split(left, ",")
	if len(terms) != len(ranks) {
		return nil, "", fmt.Errorf("equation %q has %d operands, the node has %d", equation, len(terms), len(ranks))
	}
	width := 0
	for i, t := range terms {
		if strings.Contains(t, "...") {
			width = max(width, ranks[i]-len(t)+3)
		}
	}
	free := ""
	for l := 'A'; l <= 'z' && len(free) < width; l++ {
		if (l <= 'Z' || l >= 'a') && !strings.ContainsRune(eq, l) {
			free += string(l)
		}
	}
	if len(free) < width {
		return nil, "", fmt.Errorf("equation %q leaves no labels for its ellipsis", equation)
	}
	counts := map[rune]int{}
	for i, t := range terms {
		if strings.Contains(t, "...") {
			k := ranks[i] - len(t) + 3
			if k < 0 {
				return nil, "", fmt.Errorf("equation %q: operand %d of rank %d does not fit %q", equation, i, ranks[i], t)
			}
			terms[i] = strings.Replace(t, "...", free[width-k:], 1)
		}
		if len(terms[i]) != ranks[i] {
			return nil, "", fmt.Errorf("equation %q: operand %d of rank %d does not fit %q", equation, i, ranks[i], t)
		}
		for _, l := range terms[i] {
			counts[l]++
		}
	}
	if explicit {
		return terms, strings.Replace(right, "...", free, 1), nil
	}
	var once []rune
	for l, k := range counts {
		if k == 1 && !strings.ContainsRune(free, l) {
			once = append(once, l)
		}
	}
	slices.Sort(once)
	return terms, free + string(once), nil
}
