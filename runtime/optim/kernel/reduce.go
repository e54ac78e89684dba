package kernel

import "math"

const (
	lanes = 32
	// SumBlock is the number of elements SumSquares sums before it adds the
	// result to its total.
	SumBlock = 1 << 16
)

// SumSquares returns the sum of x[i]*x[i] in float64, in which each square is
// exact and no sum of float32 squares overflows: the result is finite exactly
// when every element is.
//
// The order of the additions is part of the definition. Blocks of SumBlock
// elements are summed separately and added up in order; within a block,
// element i belongs to lane i mod 32, each lane adds its elements in order, and
// lanes are then added in pairs 16, 8, 4, 2 and 1 apart.
func SumSquares(x []float32) float64 {
	total := 0.0
	for len(x) > SumBlock {
		total += sumBlock(x[:SumBlock])
		x = x[SumBlock:]
	}
	return total + sumBlock(x)
}

func sumBlock(x []float32) float64 {
	var acc [lanes]float64
	k := sumSquaresVector(x, &acc)
	// k is a multiple of the number of lanes, so lane numbers stay right.
	sumSquaresTwin(x[k:], &acc)
	for d := lanes / 2; d > 0; d /= 2 {
		for i := range d {
			acc[i] += acc[i+d]
		}
	}
	return acc[0]
}

func sumSquaresTwin(x []float32, acc *[lanes]float64) {
	for i, e := range x {
		acc[i%lanes] += float64(float64(e) * float64(e))
	}
}

// FirstNonFinite returns the index of the first infinity or NaN in x, or -1.
func FirstNonFinite(x []float32) int {
	k := finitePrefixVector(x)
	for i, e := range x[k:] {
		if math.Float32bits(e)&0x7f800000 == 0x7f800000 {
			return k + i
		}
	}
	return -1
}
