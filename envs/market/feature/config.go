package feature

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/indicator"
)

// Config chooses features.
type Config struct {
	// OHLCV adds open, high, low, close and volume.
	OHLCV bool `yaml:"ohlcv"`
	// Indicators are features computed from the bars.
	Indicators indicator.Set `yaml:"indicators"`
	// Factors are features in Qlib's expression language.
	Factors Factors `yaml:"factors,omitzero"`
	// Extra are columns of source.extra to use as features.
	Extra []string `yaml:"extra"`
	// Calendar are parts of the bar's time, each as sine and cosine: time_of_day, weekday,
	// month_day, year_day.
	Calendar []string `yaml:"calendar"`
	// Timestamps adds the month, day, weekday, hour and minute of the bar's time, each from −0.5 to
	// 0.5, as Informer's time features are.
	Timestamps bool `yaml:"timestamps,omitzero"`
	// Listed adds the flag that is 1 from a stock's first bar on.
	Listed bool `yaml:"listed"`
	// Prices says how prices are expressed: level, or relative (to the close before for open, high,
	// low and close; to the close for indicators), which is comparable between stocks and decades.
	Prices string `yaml:"prices"`
	// Volume says how volumes are expressed: level, or log (the logarithm of 1 + volume, with the
	// sign of the volume).
	Volume string `yaml:"volume"`
}

// Default returns the features of the QTMRL specification.
func Default() Config {
	c := Config{OHLCV: true, Listed: true, Prices: "level", Volume: "level"}
	for _, i := range []struct {
		kind   string
		params []float64
	}{
		{"sma", []float64{10}}, {"sma", []float64{20}}, {"sma", []float64{50}}, {"ema", []float64{12}}, {"ema", []float64{26}}, {"rsi", []float64{14}},
		{"macd", []float64{12, 26, 9}}, {"atr", []float64{14}}, {"bbands", []float64{20, 2}}, {"ichimoku", []float64{9, 26, 52}}, {"heikin_ashi", nil},
		{"supertrend", []float64{10, 3}},
	} {
		if err := c.Indicators.Add(i.kind, i.params...); err != nil {
			panic(err) // The list above is wrong.
		}
	}
	return c
}

// calendars are the calendar features in their order.
var calendars = []string{"time_of_day", "weekday", "month_day", "year_day"}

// Validate reports what is wrong with the fields.
func (c Config) Validate() error {
	var p configs.Problems
	p.OneOf("prices", c.Prices, "level", "relative")
	p.OneOf("volume", c.Volume, "level", "log")
	for i, name := range c.Calendar {
		p.OneOf(fmt.Sprintf("calendar[%d]", i), name, calendars...)
		p.Check(!slices.Contains(c.Calendar[:i], name), fmt.Sprintf("calendar[%d]", i), "%q is there twice", name)
	}
	for i, name := range c.Extra {
		p.Check(!slices.Contains(c.Extra[:i], name), fmt.Sprintf("extra[%d]", i), "%q is there twice", name)
	}
	p.Check(c.OHLCV || len(c.Indicators) > 0 || len(c.Factors.Sets)+len(c.Factors.Expressions) > 0 || len(c.Extra) > 0 || len(c.Calendar) > 0 || c.Timestamps, "", "there are no features")
	return p.Err()
}
