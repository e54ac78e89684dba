package prepared

import (
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/feature"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// History is what [Build] makes a set of: all bars, those that the set drops included, and the
// layout of its features. Whoever computes features bar by bar replays it to arrive at the set's.
type History struct {
	Panel    *bars.Panel
	Features *feature.Features
	// Reports say what was found in the rows of each symbol.
	Reports []bars.SymbolReport
	// Anchors are where the factors of the symbols were divided; nil without source.anchor.
	Anchors []bars.Anchor
	// First is the position in the panel of the first row of the set.
	First int
}

// NewHistory cleans and aligns rows that Read has returned as Build does. The window and the split
// of the configuration are not used.
func NewHistory(c Config, data *bars.Data) (*History, error) {
	if err := configs.Validate(c); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	a, err := align(c, data)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	h := &History{Panel: a.panel, Features: a.features, Reports: a.reports, Anchors: data.Anchors}
	if c.DropUndefined {
		h.First = a.firstDefined()
	}
	if h.First == len(a.panel.Times) {
		return nil, fmt.Errorf("prepare: no stock has all its features at any of %d bars: %s", len(a.panel.Times), slowest(a.features))
	}
	return h, nil
}

// Unscaled computes the rows of the set before scaling, [T,N,F], as [feature.Features.Unscaled]
// writes them.
func (h *History) Unscaled() *tensor.Tensor {
	p, f := h.Panel, h.Features
	n, width := len(p.Symbols), len(f.Columns())
	x := tensor.New(tensor.Float32, len(p.Times)-h.First, n, width)
	blank := make([]float64, width)
	for i := 0; i < x.Len(); i += width {
		f.Unscaled(blank, false, x.Float32s()[i:])
	}
	for sym := range n {
		f.Rows(p, sym, func(t int, row []float64, defined bool) {
			if t >= h.First {
				f.Unscaled(row, defined, x.Float32s()[((t-h.First)*n+sym)*width:])
			}
		})
	}
	return x
}
