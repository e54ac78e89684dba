package feed_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/feed"
)

// TestQuotedMarket prepares a stock with a factor, limits, a suspension and two days at a limit,
// and looks at what accounts get of it.
func TestQuotedMarket(t *testing.T) {
	text := new(strings.Builder)
	fmt.Fprintln(text, "date,symbol,open,high,low,close,volume,adj_factor,suspended,limit_up,limit_down")
	for day := range 260 {
		open, close, up, down, factor, suspended := 10.0, 10.2, 11.0, 9.0, 2.0, 0
		switch day {
		case 100:
			close = up
		case 101:
			open, close = up, 10.5
		case 102:
			open, close = 9.5, down
		case 103:
			suspended = 1
		case 104:
			up, down = 0, 0
		}
		if day >= 150 {
			open, close, up, down, factor = 5, 5.1, 5.5, 4.5, 4 // two for one
		}
		limits := fmt.Sprintf("%.2f,%.2f", up, down)
		if up == 0 {
			limits = ","
		}
		fmt.Fprintf(text, "%s,AA,%.2f,%.2f,%.2f,%.2f,%d,%g,%d,%s\n", time.Date(2020, 1, 1+day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), open, max(open, close), min(open, close), close, 1000, factor, suspended, limits)
	}
	set := prepare(t, text.String())
	m := feed.FromSet(set).Market
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	dropped := set.Manifest.DroppedRows
	const both = trading.Both
	checked := 0
	for day := dropped; day < m.Len()+dropped; day++ {
		b := day - dropped
		open, close := both, both
		switch day {
		case 100:
			close = trading.CanSell
		case 101:
			open = trading.CanSell
		case 102:
			close = trading.CanBuy
		case 103:
			open, close = 0, 0
		}
		checked++
		if m.AtOpen[b] != open || m.Tradable[b] != close {
			t.Errorf("day %d: %b at the open and %b at the close, expected %b and %b", day, m.AtOpen[b], m.Tradable[b], open, close)
		}
		if raw := m.Raw; raw.Close[b]*raw.Factor[b] != m.Close[b] || raw.Open[b] != set.Quotes[bars.RawOpen][b] {
			t.Errorf("day %d: the close %g times %g is not %g", day, raw.Close[b], raw.Factor[b], m.Close[b])
		}
	}
	if checked != 183 || m.Raw.Open[150-dropped] != 5 || m.Open[150-dropped] != 20 || m.Open[149-dropped] != 20 {
		t.Errorf("%d days; day 150 opens at %g, adjusted %g", checked, m.Raw.Open[150-dropped], m.Open[150-dropped])
	}
	// A market without limits and factors has nothing of this.
	if plain := feed.FromSet(prepare(t, write(t))).Market; plain.AtOpen != nil || plain.Raw != nil {
		t.Error("limits or factors are made up")
	}
}
