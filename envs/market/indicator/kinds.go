package indicator

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/state"
)

// Indicator is the state of one indicator on one asset. It is not safe for concurrent use.
type Indicator interface {
	// Next takes the bar that follows those given before and writes one value per output of its
	// kind into out, which must be long enough. Values are NaN until the kind's warm-up is over.
	// The bar's prices must be finite and its volume finite and not negative.
	Next(b *bars.Bar, out []float64)
	// State saves what changes from bar to bar, or restores it into an indicator of the same kind
	// and parameters that has been given no bar.
	State(c *state.Codec)
}

// Unit says what a value measures; it decides how a feature may be expressed relative to the price.
type Unit string

// Units of outputs.
const (
	Price   Unit = "price"   // the asset's currency; scales with the price level
	Spread  Unit = "spread"  // a difference of prices; scales with the price level and is around zero
	Volume  Unit = "volume"  // shares or contracts
	Percent Unit = "percent" // 0..100, -100..0 or unbounded, of no unit
	Number  Unit = "number"  // without unit
	Sign    Unit = "sign"    // -1 or 1
)

// Param is a parameter of a kind.
type Param struct {
	Name    string
	Default float64
	Min     float64
	// Real parameters may have a fraction; others are numbers of bars.
	Real bool
}

// Output is one value of an indicator. The name is empty for the main output, which is called like
// the indicator.
type Output struct {
	Name string
	Unit Unit
}

// Kind describes an indicator.
type Kind struct {
	Name   string
	Title  string
	Params []Param
	// Each says that a list of numbers in the configuration means several indicators, one for each
	// number.
	Each    bool
	Outputs []Output
	// Volume says that the indicator makes no sense without volumes.
	Volume bool
	// Warmup is the number of bars before the first bar with defined values.
	Warmup func(p []float64) int
	// New returns the state before the first bar. The parameters have been checked.
	New func(p []float64) Indicator
	// check looks at parameters together, after each has passed on its own; nil where there is
	// nothing to check.
	check func(p []float64) error
}

// kinds is every indicator, in the order in which features are laid out.
var kinds = []*Kind{
	&sma, &ema, &rsi, &macd, &atr, &natr, &bbands, &ichimoku, &heikinAshi, &supertrend,
	&stddev, &roc, &obv, &mfi, &stoch, &cci, &willr, &adx, &donchian, &keltner, &vwap,
}

// Kinds returns the table of indicators. The caller must not change it.
func Kinds() []*Kind { return kinds }

// Names returns the names of all kinds in the order of the table.
func Names() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	return names
}

// Find returns the kind of this name, or nil.
func Find(name string) *Kind {
	if i := slices.IndexFunc(kinds, func(k *Kind) bool { return k.Name == name }); i >= 0 {
		return kinds[i]
	}
	return nil
}

// maxPeriod bounds numbers of bars, so that a slip in a configuration does not reserve gigabytes.
const maxPeriod = 100_000

// Complete returns p followed by the defaults of the parameters it leaves out, or an error that
// names the parameter.
func (k *Kind) Complete(p []float64) ([]float64, error) {
	if len(p) > len(k.Params) {
		return nil, fmt.Errorf("%s takes %d parameters%s, found %d", k.Name, len(k.Params), k.paramNames(), len(p))
	}
	full := slices.Clone(p)
	for i, param := range k.Params {
		if i >= len(p) {
			full = append(full, param.Default)
		}
		v := full[i]
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0) || v < param.Min:
			return nil, fmt.Errorf("%s of %s must be at least %v, is %v", param.Name, k.Name, param.Min, v)
		case !param.Real && (v != math.Trunc(v) || v > maxPeriod):
			return nil, fmt.Errorf("%s of %s must be a whole number of at most %d, is %v", param.Name, k.Name, maxPeriod, v)
		}
	}
	if k.check != nil {
		if err := k.check(full); err != nil {
			return nil, err
		}
	}
	return full, nil
}

func (k *Kind) paramNames() string {
	if len(k.Params) == 0 {
		return ""
	}
	names := make([]string, len(k.Params))
	for i, p := range k.Params {
		names[i] = p.Name
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// Label is the name of the indicator with these parameters, such as macd_12_26_9.
func (k *Kind) Label(p []float64) string {
	var b strings.Builder
	b.WriteString(k.Name)
	for _, v := range p {
		b.WriteByte('_')
		b.WriteString(strconv.FormatFloat(v, 'f', -1, 64))
	}
	return b.String()
}

// OutputNames are the names of the outputs with these parameters, such as macd_12_26_9_signal.
func (k *Kind) OutputNames(p []float64) []string {
	names := make([]string, len(k.Outputs))
	for i, o := range k.Outputs {
		names[i] = k.Label(p)
		if o.Name != "" {
			names[i] += "_" + o.Name
		}
	}
	return names
}

// Run computes an indicator over a series: result[output][bar].
func Run(ind Indicator, outputs int, series []bars.Bar) [][]float64 {
	result := make([][]float64, outputs)
	for i := range result {
		result[i] = make([]float64, len(series))
	}
	out := make([]float64, outputs)
	for t := range series {
		ind.Next(&series[t], out)
		for i, v := range out {
			result[i][t] = v
		}
	}
	return result
}

// period is the usual single parameter.
func period(def, least float64) []Param { return []Param{{Name: "period", Default: def, Min: least}} }
