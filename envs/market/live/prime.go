package live

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// RowsAt writes the rows of one time of a panel, sharing its memory. dst has one for each symbol.
func RowsAt(p *bars.Panel, t int, dst []Row) {
	for n := range p.Symbols {
		i := p.Index(t, n)
		dst[n] = Row{Bar: p.Bars[i], Status: p.Status[i], Extra: p.ExtraAt(t, n)}
		if p.Quotes != nil {
			dst[n].Quote = p.Quotes[i]
		}
	}
}

// Prime appends the times lo..hi-1, hi not included, of a history. After an error the feed is as it
// was before.
func (f *Feed) Prime(p *bars.Panel, lo, hi int) error {
	if !slices.Equal(p.Symbols, f.p.Assets) || !slices.Equal(p.Extra, f.p.Extra) {
		return fmt.Errorf("prime: a history of %v with the columns %v, expected %v with %v", p.Symbols, p.Extra, f.p.Assets, f.p.Extra)
	}
	if err := bars.Lacking(f.quotes, p.Quoted); err != nil {
		return fmt.Errorf("prime: %w", err)
	}
	before := f.SaveState()
	rows := make([]Row, len(p.Symbols))
	for t := lo; t < hi; t++ {
		RowsAt(p, t, rows)
		if err := f.Append(p.Times[t], rows); err != nil {
			if back := f.LoadState(before); back != nil {
				panic(back) // It was saved by the same feed.
			}
			return fmt.Errorf("prime: %w", err)
		}
	}
	return nil
}

// RowOf is the row of a record that was cleaned; valid says that it has prices.
func RowOf(r *bars.Record, valid bool) Row {
	switch {
	case !valid:
		return Row{Status: bars.Missing}
	case r.Suspended:
		return Row{Bar: r.Bar, Status: bars.Suspended, Extra: r.Extra, Quote: r.Quote}
	}
	return Row{Bar: r.Bar, Status: bars.Traded, Extra: r.Extra, Quote: r.Quote}
}
