package shape

import "fmt"

// singles lists the inputs that kernels read one number of, whatever their shape: a scalar or a
// list of one. Of an empty one they would read what lies behind it.
var singles = map[string][]int{
	"BlackmanWindow": {0}, "CumProd": {1}, "CumSum": {1}, "DFT": {1, 2}, "Dropout": {1, 2},
	"HammingWindow": {0}, "HannWindow": {0}, "If": {0}, "Loop": {0, 1}, "MelWeightMatrix": {0, 1, 2, 3, 4},
	"NonMaxSuppression": {2, 3, 4}, "OneHot": {1}, "Pad": {2}, "Range": {0, 1, 2}, "STFT": {1, 3}, "SequenceAt": {1},
	"SequenceErase": {1}, "SequenceInsert": {2}, "TopK": {1}, "Trilu": {1},
}

// single checks the inputs that hold one number.
func (c *call) single() error {
	for _, i := range singles[c.node.OpType] {
		if !c.has(i) {
			continue
		}
		if n, ok := elements(c.typ(i)); ok && n != 1 {
			return fmt.Errorf("input %d %q is %v, want one element", i, c.node.In(i), c.typ(i))
		}
	}
	return nil
}

// filled checks that no extent of input i is zero from an axis on: kernels divide by them.
func (c *call) filled(i, from int) error {
	t := c.typ(i)
	for a, d := range t.Dims {
		if a >= from && d.IsKnown() && d.Value == 0 {
			return fmt.Errorf("input %d %q is %v, want at least one element on axis %d", i, c.node.In(i), t, a)
		}
	}
	return nil
}
