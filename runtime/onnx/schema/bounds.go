package schema

import (
	"fmt"
	"math"
)

// Bounds are the least and the greatest integer that an attribute may hold, or each number of one
// that is a list.
type Bounds struct{ Min, Max int64 }

// String says what is expected.
func (b Bounds) String() string {
	if b.Max == math.MaxInt32 {
		return fmt.Sprintf("at least %d", b.Min)
	}
	return fmt.Sprintf("%d to %d", b.Min, b.Max)
}

// Holds reports whether a number lies within.
func (b Bounds) Holds(v int64) bool { return b.Min <= v && v <= b.Max }

// positive and natural end where a product with an extent still fits 64 bits.
var (
	positive = Bounds{1, math.MaxInt32}
	natural  = Bounds{0, math.MaxInt32}
)

// byName holds what the standard's text, not its table, says of attributes. An attribute means the
// same in all operators that have it, but for those in byOperator. Kernels divide by most of them.
var byName = map[string]Bounds{
	"batch_axis":           natural,
	"batch_dims":           natural,
	"block_size":           natural,
	"blocksize":            {1, 1 << 20},
	"dilations":            positive,
	"group":                positive,
	"hidden_size":          positive,
	"kernel_shape":         positive,
	"kv_num_heads":         positive,
	"max_gram_length":      positive,
	"max_skip_count":       {0, 1 << 16},
	"min_gram_length":      positive,
	"num_groups":           positive,
	"num_heads":            positive,
	"num_outputs":          positive,
	"num_scan_inputs":      positive,
	"offset_group":         positive,
	"output_height":        {1, 1 << 20},
	"output_padding":       natural,
	"output_width":         {1, 1 << 20},
	"pads":                 {math.MinInt32, math.MaxInt32},
	"pooled_shape":         {1, 1 << 20},
	"q_num_heads":          positive,
	"rotary_embedding_dim": natural,
	"sampling_ratio":       {0, 1 << 20},
	"strides":              positive,
	"time_axis":            natural,
}

var byOperator = map[string]Bounds{
	"LRN.size":          positive,
	"LpNormalization.p": {1, 2},
	"LpPool.p":          positive,
	"GlobalLpPool.p":    positive,
	"UnfoldTensor.size": positive,
	"UnfoldTensor.step": positive,
}

// BoundsOf returns the bounds of an attribute of an operator of the standard domain or of
// com.microsoft; ok is false where any number will do.
func BoundsOf(op, attribute string) (b Bounds, ok bool) {
	if b, ok = byOperator[op+"."+attribute]; ok {
		return b, true
	}
	b, ok = byName[attribute]
	return b, ok
}
