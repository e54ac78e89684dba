package drift

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Key is the entry of a model's metadata that has its reference.
const Key = "onnxrl.observations"

// MaxFeatures is the most features of an input that has statistics.
const MaxFeatures = 1024

// maxBins is the number of bins of a feature without the outermost ones of few values.
const maxBins = 10

// Reference describes the observations that a policy was published on.
type Reference struct {
	// Rows is the number of them.
	Rows   int     `json:"rows"`
	Inputs []Input `json:"inputs"`
}

// Input has the features of an input, in the order of a row's elements.
type Input struct {
	Name     string    `json:"name"`
	Features []Feature `json:"features"`
}

// Feature is the distribution of an element. A value belongs to the first bin whose edge is not
// below it, or to the last one: there is a share more than edges.
type Feature struct {
	Mean   float64   `json:"mean"`
	Std    float64   `json:"std"`
	Edges  []float32 `json:"edges"`
	Shares []float32 `json:"shares"`
}

// Collector gathers observations for a reference. It keeps all rows it is given.
type Collector struct {
	names  []string
	values [][]float32
	width  []int
	rows   int
}

// Add adds rows of the inputs, whose tensors have the rows as their first axis. Names and widths
// are those of the first call.
func (c *Collector) Add(names []string, inputs []*tensor.Tensor, rows int) {
	if c.names == nil {
		c.names, c.values, c.width = slices.Clone(names), make([][]float32, len(names)), make([]int, len(names))
		for i, t := range inputs {
			if c.width[i] = t.Len() / t.Shape()[0]; c.width[i] > MaxFeatures || !counted(t) {
				c.width[i] = 0
			}
		}
	}
	for i, t := range inputs {
		for k := range c.width[i] * rows {
			c.values[i] = append(c.values[i], at(t, k))
		}
	}
	c.rows += rows
}

// counted reports whether elements are numbers that can be compared.
func counted(t *tensor.Tensor) bool {
	switch t.DType() {
	case tensor.Float32, tensor.Float64, tensor.Int64, tensor.Int32, tensor.Uint8:
		return true
	}
	return false
}

// at is an element as a number.
func at(t *tensor.Tensor, i int) float32 {
	switch t.DType() {
	case tensor.Float32:
		return t.Float32s()[i]
	case tensor.Float64:
		return float32(t.Float64s()[i])
	case tensor.Int64:
		return float32(t.Int64s()[i])
	case tensor.Int32:
		return float32(t.Int32s()[i])
	}
	return float32(t.Bytes()[i])
}

// Reference describes what was added, and is nil without any rows or features. Masks say what is
// allowed, and not what is seen: truth values have no statistics.
func (c *Collector) Reference() *Reference {
	r := &Reference{Rows: c.rows}
	for i, name := range c.names {
		in, w := Input{Name: name}, c.width[i]
		for f := range w {
			list := make([]float32, 0, c.rows)
			for k := f; k < len(c.values[i]); k += w {
				list = append(list, c.values[i][k])
			}
			in.Features = append(in.Features, feature(list))
		}
		if w > 0 {
			r.Inputs = append(r.Inputs, in)
		}
	}
	if c.rows == 0 || len(r.Inputs) == 0 {
		return nil
	}
	return r
}

// feature describes values.
func feature(list []float32) Feature {
	wide := make([]float64, 0, len(list))
	for _, v := range list {
		if v-v == 0 {
			wide = append(wide, float64(v))
		}
	}
	slices.Sort(wide)
	var f Feature
	if len(wide) > 0 {
		f.Mean = stat.Mean(wide, nil)
		f.Std = math.Sqrt(stat.PopVariance(wide, nil))
		f.Edges = edges(wide)
	}
	counts := make([]int, len(f.Edges)+1)
	for _, v := range list {
		counts[bin(f.Edges, v)]++
	}
	for _, n := range counts {
		f.Shares = append(f.Shares, float32(n)/float32(len(list)))
	}
	return f
}

// edges bounds the bins of sorted values.
func edges(sorted []float64) (out []float32) {
	distinct := slices.Compact(slices.Clone(sorted))
	if len(distinct) <= maxBins {
		out = append(out, math.Nextafter32(float32(distinct[0]), float32(math.Inf(-1))))
		for i := 1; i < len(distinct); i++ {
			out = append(out, float32((distinct[i-1]+distinct[i])/2))
		}
		return append(out, float32(distinct[len(distinct)-1]))
	}
	for k := 1; k < maxBins; k++ {
		e := float32(stat.Quantile(float64(k)/maxBins, stat.Empirical, sorted, nil))
		if len(out) == 0 || e > out[len(out)-1] {
			out = append(out, e)
		}
	}
	return out
}

// bin is the bin of a value: the number of edges below it.
func bin(edges []float32, v float32) int {
	if v != v {
		return len(edges)
	}
	n := 0
	for _, e := range edges {
		// The sign of the difference: which way a branch goes could not be foretold.
		n += int(math.Float32bits(e-v) >> 31)
	}
	return n
}

// Text is the reference as metadata hold it.
func (r *Reference) Text() string {
	// Mean and deviation are finite, as are edges, so everything can be encoded.
	b, _ := json.Marshal(r)
	return string(b)
}

// Parse reads what Text has written.
func Parse(text string) (*Reference, error) {
	r := &Reference{}
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("metadata %s: %w", Key, err)
	}
	if r.Rows < 1 || len(r.Inputs) == 0 {
		return nil, fmt.Errorf("metadata %s: %d rows of %d inputs, expected some", Key, r.Rows, len(r.Inputs))
	}
	for _, in := range r.Inputs {
		for i, f := range in.Features {
			if len(f.Shares) != len(f.Edges)+1 || !slices.IsSorted(f.Edges) {
				return nil, fmt.Errorf("metadata %s: input %q, feature %d: %d shares of the bins that %d edges bound, expected one more than edges, which rise", Key, in.Name, i, len(f.Shares), len(f.Edges))
			}
		}
		if len(in.Features) == 0 || len(in.Features) > MaxFeatures {
			return nil, fmt.Errorf("metadata %s: input %q has %d features, expected 1 to %d", Key, in.Name, len(in.Features), MaxFeatures)
		}
	}
	return r, nil
}
