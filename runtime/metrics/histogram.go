package metrics

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

const histogramBuckets = 30

// histogram is tensorflow.HistogramProto: a bucket holds the values up to and including its limit.
type histogram struct {
	low, high, sum, squares float64
	count                   int
	limits, counts          [histogramBuckets]float64
}

func newHistogram(data []float32) histogram {
	h := histogram{low: math.Inf(1), high: math.Inf(-1)}
	for _, x := range data {
		v := float64(x)
		if v-v != 0 {
			continue
		}
		h.count++
		h.sum += v
		h.squares += v * v
		h.low, h.high = min(h.low, v), max(h.high, v)
	}
	if h.count == 0 {
		return h
	}
	width := (h.high - h.low) / histogramBuckets
	if width == 0 {
		width = 1.0 / histogramBuckets // all values are equal: they fall into the first of buckets that span one
	}
	for i := range h.limits {
		h.limits[i] = h.low + width*float64(i+1)
	}
	if h.high > h.low {
		h.limits[histogramBuckets-1] = h.high
	}
	for _, x := range data {
		if v := float64(x); v-v == 0 {
			h.counts[max(0, min(int(math.Ceil((v-h.low)/width))-1, histogramBuckets-1))]++
		}
	}
	return h
}

func (h histogram) encode() []byte {
	var b []byte
	for i, v := range []float64{h.low, h.high, float64(h.count), h.sum, h.squares} {
		b = protowire.AppendTag(b, protowire.Number(i+1), protowire.Fixed64Type)
		b = protowire.AppendFixed64(b, math.Float64bits(v))
	}
	b = append(b, message(6, doubles(h.limits[:]))...)
	return append(b, message(7, doubles(h.counts[:]))...)
}

func doubles(values []float64) []byte {
	var b []byte
	for _, v := range values {
		b = protowire.AppendFixed64(b, math.Float64bits(v))
	}
	return b
}
