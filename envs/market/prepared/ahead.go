package prepared

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/feature"
	"github.com/onnxrl/onnxrl/envs/market/indicator"
)

// LookAheadNote begins the notes of a manifest that repeat what looks ahead.
const LookAheadNote = "LOOK-AHEAD: "

// lookAhead says in whole sentences what of the features knows the future, as far as the
// configuration and the factors of adjustment tell: statistics of normalisation that were fitted on
// later rows, and levels that were adjusted backwards from the end. [Lookahead] compares features
// bar by bar instead, which cannot see either a factor that the file brings or an extra column that
// was computed elsewhere.
func lookAhead(c Config, data *bars.Data, columns []feature.Column, stats []feature.Statistic) []string {
	out := []string{}
	if c.Normalization.FitOn == "all" && slices.ContainsFunc(stats, func(s feature.Statistic) bool { return s.Scaled }) {
		out = append(out, "Features are scaled by statistics of all rows, those of validation and test included (normalization.fit_on: all).")
	}
	if data.Anchors != nil {
		return out
	}
	symbols := backAdjusted(data)
	if len(symbols) == 0 {
		return out
	}
	which := fmt.Sprintf("%d of %d symbols, such as %s", len(symbols), len(data.Series), symbols[0])
	if names := named(columns, indicator.Price, indicator.Spread); len(names) > 0 {
		out = append(out, fmt.Sprintf("Features in units of price (%s) are of prices that %s adjusts from the end of the file backwards, so that their levels contain later splits and dividends (%s); features.prices: relative has no levels.",
			first(names, 3), data.Adjustment.By, which))
	}
	// Divided by steps of the factor (splits) a volume is in shares of the first row, which looks
	// back.
	if names := named(columns, indicator.Volume, feature.Log); len(names) > 0 && c.Source.AdjustVolume == "inverse" {
		out = append(out, fmt.Sprintf("Features of volume (%s) are divided by a factor that is adjusted from the end of the file backwards (source.adjust_volume: inverse), so that their levels contain later splits (%s).",
			first(names, 3), which))
	}
	return out
}

// backAdjusted returns the symbols whose factors are 1 at the end of their rows, or nearer to it
// than at their beginning, and not everywhere the same: a later event then changes all of the
// factors before it. Factors that are 1 at the first row and accumulate look back only.
func backAdjusted(data *bars.Data) []string {
	var out []string
	for _, s := range data.Each() {
		var factors []float64
		for _, r := range s.Records {
			if r.HasFactor() {
				factors = append(factors, math.Abs(math.Log(r.Factor)))
			}
		}
		// Quotients of rounded prices are not exactly equal.
		if n := len(factors); n > 1 && factors[n-1] < factors[0]-1e-3 {
			out = append(out, s.Symbol)
		}
	}
	return out
}

// named lists the columns that have one of the units.
func named(columns []feature.Column, units ...indicator.Unit) (names []string) {
	for _, c := range columns {
		if slices.Contains(units, c.Unit) {
			names = append(names, c.Name)
		}
	}
	return names
}

// first joins a few names and says that there are more.
func first(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:n], ", ") + " …"
}
