package models

import (
	"math"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// kindKey is where PyTorch's exporter, from 2.6 on, says what an initializer was in the network.
const kindKey = "pkg.torch.export.graph_signature.InputSpec.kind"

// declaredKinds returns what the exporter says of the graph's values: "PARAMETER", "BUFFER" or
// "CONSTANT_TENSOR".
func declaredKinds(g *onnx.Graph) map[string]string {
	kinds := map[string]string{}
	for _, v := range g.ValueInfo {
		for _, p := range v.MetadataProps {
			if p.Key == kindKey {
				kinds[v.Name] = p.Value
			}
		}
	}
	return kinds
}

// isBuffer recognises tensors that a network's code computed once and never trained, by their
// content. Only what is used element by element, or picked from, is looked at: the weights of
// products never are.
func isBuffer(p *onnx.TensorProto, u use) (bool, error) {
	if u.elementwise+u.moved != u.nodes || len(p.Dims) == 0 {
		return false, nil
	}
	x, err := float32s(p)
	if err != nil {
		return false, err
	}
	if len(x) < 4 {
		return false, nil
	}
	for _, v := range x {
		if v-v != 0 {
			return false, nil
		}
	}
	columns := 1
	if len(p.Dims) > 1 {
		columns = int(p.Dims[len(p.Dims)-1])
	}
	rows := len(x) / columns
	if columns == 1 || rows == 1 {
		return isProgression(x), nil
	}
	if len(p.Dims) > 1 {
		// Leading extents repeat one table.
		rows = min(rows, int(p.Dims[len(p.Dims)-2]))
	}
	table := x[:rows*columns]
	for at := rows * columns; at < len(x); at += len(table) {
		for i, v := range table {
			if x[at+i] != v {
				return false, nil
			}
		}
	}
	return isSinusoids(table, columns) || isTriangle(table, columns), nil
}

// isProgression reports whether numbers that are not all equal grow by a constant or by a constant
// factor: positions, atoms of a distribution, frequencies, slopes.
func isProgression(x []float32) bool {
	n := len(x)
	first, last := float64(x[0]), float64(x[n-1])
	if first == last {
		return false
	}
	scale := math.Max(math.Abs(first), math.Abs(last))
	arithmetic, geometric := true, first*last > 0
	for i, v := range x {
		at := float64(i) / float64(n-1)
		arithmetic = arithmetic && math.Abs(float64(v)-(first+at*(last-first))) <= 1e-6*scale
		if geometric {
			want := first * math.Pow(last/first, at)
			geometric = math.Abs(float64(v)-want) <= 1e-5*math.Abs(want)
		}
	}
	return arithmetic || geometric
}

// isSinusoids reports whether every column is a sampled sine of some frequency and phase, and not
// all of them are constant: x[i+1] + x[i−1] = 2·cos ω·x[i] with one ω for each column.
func isSinusoids(x []float32, columns int) bool {
	rows := min(len(x)/columns, 64) // Far rows of long tables hold rounded angles.
	if rows < 4 {
		return false
	}
	varies := false
	for c := range columns {
		at := func(r int) float64 { return float64(x[r*columns+c]) }
		var cross, square, largest float64
		for r := range rows {
			largest = math.Max(largest, math.Abs(at(r)))
			varies = varies || at(r) != at(0)
			if r > 0 && r < rows-1 {
				cross, square = cross+at(r)*(at(r-1)+at(r+1)), square+at(r)*at(r)
			}
		}
		if largest > 1+1e-6 {
			return false
		}
		if square == 0 {
			if largest != 0 {
				return false
			}
			continue
		}
		factor := cross / square
		if math.Abs(factor) > 2+1e-3 {
			return false
		}
		for r := 1; r < rows-1; r++ {
			if math.Abs(at(r-1)+at(r+1)-factor*at(r)) > 1e-4*largest {
				return false
			}
		}
	}
	return varies
}

// isTriangle reports whether a square holds ones on one side of its diagonal and zeros on the
// other.
func isTriangle(x []float32, columns int) bool {
	if len(x) != columns*columns {
		return false
	}
	lower, upper := x[columns], x[1]
	if lower+upper != 1 || lower*upper != 0 {
		return false
	}
	for i, v := range x {
		switch r, c := i/columns, i%columns; {
		case r > c && v != lower, r < c && v != upper, r == c && v != x[0], v != 0 && v != 1:
			return false
		}
	}
	return true
}
