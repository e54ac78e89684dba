package publish

import (
	"errors"
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// errChanged says that what is read now is not what the market was made of.
var errChanged = errors.New("the data are not what they were when the market was prepared")

// newHistory prepares the data of a market again, up to where they are scaled: an agent that scales
// by itself must see in a back-test what bars give it, to the bit, and scaling cannot be undone
// exactly. It returns nil for markets that were not prepared from a configuration. unscaled is
// [T,N,F].
func newHistory(d *trading.Data) (h *prepared.History, unscaled *tensor.Tensor, err error) {
	c, ok := d.Config.(prepared.Config)
	if !ok || d.Scales == nil {
		return nil, nil, nil
	}
	rows, err := prepared.Read(c)
	if err != nil {
		return nil, nil, err
	}
	if h, err = prepared.NewHistory(c, rows); err != nil {
		return nil, nil, err
	}
	unscaled = h.Unscaled()
	if unscaled.Len() != len(d.Market.X) || len(h.Features.Columns()) != len(d.Scales) {
		return nil, nil, fmt.Errorf("%w: %v features instead of %d", errChanged, unscaled.Shape(), len(d.Market.X))
	}
	if err := same(h, d); err != nil {
		return nil, nil, err
	}
	return h, unscaled, nil
}

// same compares times and prices of a history with those of the market. Features follow from them.
func same(h *prepared.History, d *trading.Data) error {
	m, n := d.Market, len(h.Panel.Symbols)
	for i, b := range h.Panel.Bars[h.First*n:] {
		if t := h.Panel.Times[h.First+i/n]; !t.Equal(m.Dates[i/n]) || b.Open != m.Open[i] || b.Close != m.Close[i] {
			return fmt.Errorf("%w: the bar of %s on %s", errChanged, m.Assets[i%n], t.Format(time.DateTime))
		}
	}
	return nil
}
