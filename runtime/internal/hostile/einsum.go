package hostile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// terms are those of one operand of an equation, and results those behind the arrow; "none" stands
// for an equation without an arrow.
var (
	terms   = []string{"", "...", "ii", "ij", "...i", "i...", "j...i"}
	results = []string{"none", "", "...", "ij", "...i", "j...i", "ii"}
	// alone and given are for equations of one operand.
	alone = []string{"ji", "jik", "iij", "i...j", "ij...", "...ij", "k"}
	given = []string{"ji", "kij", "j...", "...ji", "k"}
)

// extents are those of letters, and spread those that an ellipsis stands for.
var (
	extents = []map[rune]int{{'i': 2, 'j': 3, 'k': 4}, {'i': 1, 'j': 0, 'k': 2}}
	spread  = [][]int{{}, {3}, {2, 3}, {1}, {0}}
)

// Equations lists Einsums of one, two and three operands: every combination of terms and results,
// with ellipses of several ranks and extents of 0 and 1.
func Equations() []Variant {
	var out []Variant
	add := func(results []string, list ...string) {
		for _, r := range results {
			eq := strings.Join(list, ",")
			if r != "none" {
				eq += "->" + r
			}
			for k, ext := range extents {
				for _, shapes := range operands(list, ext) {
					if k > 0 && !strings.ContainsAny(eq, "ijk") {
						continue
					}
					out = append(out, einsumOf(eq, shapes, false))
					if len(list) == 2 && strings.Count(eq, "...") > 1 && k == 0 {
						out = append(out, einsumOf(eq, shapes, true))
					}
				}
			}
		}
	}
	for _, a := range terms {
		for _, b := range terms {
			add(results, a, b)
		}
	}
	add(results, "...i", "...", "j...i")
	add(results, "...ij", "...")
	for _, a := range slices.Concat(terms, alone) {
		add(slices.Concat(results, given), a)
	}
	return out
}

// operands lists the shapes that fit the terms: each ellipsis with each number of axes.
func operands(terms []string, ext map[rune]int) [][][]int {
	if len(terms) == 0 {
		return [][][]int{nil}
	}
	head, tail, dots := strings.Cut(terms[0], "...")
	spreads := spread
	if !dots {
		spreads = spread[:1]
	}
	var out [][][]int
	for _, rest := range operands(terms[1:], ext) {
		for _, s := range spreads {
			var shape []int
			for _, r := range head {
				shape = append(shape, ext[r])
			}
			shape = append(shape, s...)
			for _, r := range tail {
				shape = append(shape, ext[r])
			}
			out = append(out, append([][]int{shape}, rest...))
		}
	}
	return out
}

// einsumOf makes a model of one Einsum. A shape that is hidden follows from the data of a run, and
// so does its rank.
func einsumOf(eq string, shapes [][]int, hidden bool) Variant {
	value := fmt.Sprintf("%s of %v", eq, shapes)
	if hidden {
		value += ", hidden"
	}
	return Variant{"equations", "Einsum", "equation", value, "", func() (*onnx.Model, []*tensor.Tensor, error) {
		b := onnx.NewBuilder("einsum", 18)
		var in []*tensor.Tensor
		var names []onnx.Value
		for i, s := range shapes {
			t := tensor.New(tensor.Float32, s...)
			for k := range t.Float32s() {
				t.Float32s()[k] = float32(k + 1)
			}
			in = append(in, t)
			x := b.Input(fmt.Sprint("x", i), onnx.TypeOf(tensor.Float32, s...))
			if hidden {
				to := tensor.New(tensor.Float32, len(s))
				for k, d := range s {
					to.Float32s()[k] = float32(d)
				}
				in = append(in, to)
				like := b.Input(fmt.Sprint("s", i), onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("")}})
				x = b.Op("Reshape", []onnx.Value{x, b.Op("Cast", []onnx.Value{like}, onnx.AttrInt("to", int(tensor.Int64)))})
			}
			names = append(names, x)
		}
		b.Output(b.Op("Einsum", slices.Clone(names), onnx.AttrStr("equation", eq)), onnx.TensorType{DType: tensor.Float32})
		m, err := b.Model()
		return m, in, err
	}}
}
