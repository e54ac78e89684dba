package prepared

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// factors is a market of two stocks over 400 weekdays whose adjusted closes are the closes times a
// factor of the day.
func factors(factor func(day int) float64) string {
	var b strings.Builder
	b.WriteString("date,symbol,open,high,low,close,adj_close,volume,adj_factor\n")
	day := time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)
	for d := 0; d < 400; day = day.AddDate(0, 0, 1) {
		if day.Weekday() == time.Saturday || day.Weekday() == time.Sunday {
			continue
		}
		for i, s := range []string{"AA", "BB"} {
			f := factor(d)
			p := (50 + float64((d*7+i*3)%11)) / f
			fmt.Fprintf(&b, "%s,%s,%.4f,%.4f,%.4f,%.4f,%.6f,%d,%.6f\n", day.Format(time.DateOnly), s, p, p+1, p-1, p, p*f, 1000+d%7, f)
		}
		d++
	}
	return b.String()
}

// TestManifestSaysWhatLooksAhead: statistics of all rows and levels that are adjusted backwards are
// said in words; what looks back only is not.
func TestManifestSaysWhatLooksAhead(t *testing.T) {
	back := func(d int) float64 {
		if d < 200 {
			return 0.5
		}
		return 1
	}
	onward := func(d int) float64 { return 1 / back(399-d) }
	none := func(int) float64 { return 1 }
	cases := 0
	for _, c := range []struct {
		name   string
		factor func(int) float64
		edit   func(*Config)
		want   []string
	}{
		{"levels adjusted from the end", back, nil, []string{"(open, high, low …) are of prices that adj_close adjusts from the end"}},
		{"relative prices", back, func(c *Config) { c.Features.Prices = "relative" }, nil},
		{"not adjusted", back, func(c *Config) { c.Source.Adjust = "none" }, nil},
		{"a factor from the first row on", onward, func(c *Config) { c.Source.Adjust = "factor" }, nil},
		{"a factor from the end", back, func(c *Config) { c.Source.Adjust = "factor" }, []string{"that factor adjusts from the end"}},
		{"nothing to adjust", none, nil, nil},
		{"levels anchored at the first row", back, func(c *Config) { c.Source.Anchor = bars.First }, nil},
		{"volumes divided by it, anchored", back, func(c *Config) { c.Source.Anchor, c.Source.AdjustVolume = bars.First, "inverse" }, nil},
		{"volumes divided by it", back, func(c *Config) { c.Features.Prices, c.Source.AdjustVolume = "relative", "inverse" }, []string{"source.adjust_volume: inverse"}},
		{"statistics of all rows", none, func(c *Config) { c.Normalization.FitOn = "all" }, []string{"normalization.fit_on: all"}},
		{"statistics of all rows that scale nothing", none, func(c *Config) { c.Normalization.FitOn, c.Normalization.Method = "all", "none" }, nil},
		{"both", back, func(c *Config) { c.Normalization.FitOn = "all" }, []string{"normalization.fit_on: all", "adj_close"}},
	} {
		cfg := config(t, factors(c.factor))
		cfg.Assets, cfg.Source.Extra = []string{"AA", "BB"}, nil
		if c.edit != nil {
			c.edit(&cfg)
		}
		m := mustBuild(t, cfg).Manifest
		ok := len(m.LookAhead) == len(c.want)
		for i := range c.want {
			ok = ok && strings.Contains(m.LookAhead[i], c.want[i]) && slices.Contains(m.Notes, "LOOK-AHEAD: "+m.LookAhead[i])
		}
		if !ok {
			t.Errorf("%s: %q, expected %q", c.name, m.LookAhead, c.want)
		}
		cases++
	}
	if cases != 12 {
		t.Errorf("%d cases", cases)
	}
}
