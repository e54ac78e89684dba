package shape

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// stringSplit adds an axis for the parts, padded to the longest, and counts them.
func stringSplit(c *call) error {
	t := c.typ(0)
	if t.Ranked {
		c.setDims(0, tensor.String, append(slices.Clone(t.Dims), onnx.Symbol(""))...)
	} else {
		c.setUnranked(0, tensor.String)
	}
	c.set(1, withDType(t, tensor.Int64))
	return nil
}

// stringNormalizer drops stop words, so the last extent is open.
func stringNormalizer(c *call) error {
	d, ok := c.dims(0)
	switch {
	case !ok:
		c.setUnranked(0, tensor.String)
	case len(d) == 1:
		c.setDims(0, tensor.String, onnx.Symbol(""))
	case len(d) == 2 && (!d[0].IsKnown() || d[0].Value == 1):
		c.setDims(0, tensor.String, onnx.Known(1), onnx.Symbol(""))
	default:
		return fmt.Errorf("input %v: want a list or a single row", c.typ(0))
	}
	return nil
}

// tfIdf gives one count per n-gram index, for each row.
func tfIdf(c *call) error {
	idx := c.ints("ngram_indexes")
	if len(idx) == 0 {
		return fmt.Errorf("attribute %q is missing", "ngram_indexes")
	}
	width := slices.Max(idx) + 1
	if slices.Min(idx) < 0 {
		return fmt.Errorf("ngram_indexes hold %d", slices.Min(idx))
	}
	if err := c.ngrams(len(idx)); err != nil {
		return err
	}
	d, ok := c.dims(0)
	switch {
	case !ok:
		c.setUnranked(0, tensor.Float32)
	case len(d) < 2:
		c.setDims(0, tensor.Float32, onnx.Known(width))
	case len(d) == 2:
		c.setDims(0, tensor.Float32, d[0], onnx.Known(width))
	default:
		return fmt.Errorf("input %v: want rank 1 or 2", c.typ(0))
	}
	return nil
}

// ngrams checks that the pool, cut into n-grams of 1, 2, … items where ngram_counts says, holds as
// many as there are indexes.
func (c *call) ngrams(indexes int) error {
	counts := c.ints("ngram_counts")
	pool := len(c.ints("pool_int64s")) + len(c.node.Strs("pool_strings"))
	total := 0
	for i, at := range counts {
		end := pool
		if i+1 < len(counts) {
			end = counts[i+1]
		}
		if at < 0 || end < at || end > pool || (end-at)%(i+1) != 0 {
			return fmt.Errorf("ngram_counts %v do not divide a pool of %d items", counts, pool)
		}
		total += (end - at) / (i + 1)
	}
	if total != indexes {
		return fmt.Errorf("%d ngram_indexes for %d n-grams", indexes, total)
	}
	if w := len(c.floats("weights")); w > 0 && w != indexes {
		return fmt.Errorf("%d weights for %d n-grams", w, indexes)
	}
	lo, hi := c.int("min_gram_length", 0), c.int("max_gram_length", 0)
	if lo > hi || hi > len(counts) {
		return fmt.Errorf("n-grams of %d to %d items, with ngram_counts %v", lo, hi, counts)
	}
	return nil
}

// imageDecoder gives height, width and channels.
func imageDecoder(c *call) error {
	if err := c.rankIs(0, 1); err != nil {
		return err
	}
	channels := 3
	switch f := c.str("pixel_format", "RGB"); f {
	case "RGB", "BGR":
	case "Grayscale":
		channels = 1
	default:
		return fmt.Errorf("pixel_format %q is none of RGB, BGR, Grayscale", f)
	}
	c.setDims(0, tensor.Uint8, onnx.Symbol(""), onnx.Symbol(""), onnx.Known(channels))
	return nil
}
