package trader

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

// history is what a market was prepared from, and its features up to where they are scaled,
// [T,N,F].
type history struct {
	*prepared.History
	unscaled *tensor.Tensor
}

// historyOf prepares the data of a market again, once for all that publish over them, up to where
// they are scaled: an agent that scales by itself must see in a back-test what bars give it, to the
// bit, and scaling cannot be undone exactly. It is nil for markets that were not prepared from a
// configuration.
func historyOf(d *trading.Data) (*history, error) {
	type key struct{}
	h, err := d.Derived(key{}, func() (any, error) { return newHistory(d) })
	if err != nil {
		return nil, err
	}
	return h.(*history), nil
}

func newHistory(d *trading.Data) (*history, error) {
	c, ok := d.Config.(prepared.Config)
	if !ok || d.Scales == nil {
		return nil, nil
	}
	rows, err := prepared.Read(c)
	if err != nil {
		return nil, err
	}
	h, err := prepared.NewHistory(c, rows)
	if err != nil {
		return nil, err
	}
	unscaled := h.Unscaled()
	if unscaled.Len() != len(d.Market.X) || len(h.Features.Columns()) != len(d.Scales) {
		return nil, fmt.Errorf("%w: %v features instead of %d", errChanged, unscaled.Shape(), len(d.Market.X))
	}
	return &history{h, unscaled}, same(h, d)
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
