package feature

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/expression"
	"github.com/onnxrl/onnxrl/envs/market/indicator"
)

// Groups of columns.
const (
	OHLCV      = "OHLCV"
	Indicators = "indicators"
	Extra      = "extra"
	Calendar   = "calendar"
	Listed     = "listed"
)

// Column is one feature.
type Column struct {
	Name  string         `json:"name"`
	Group string         `json:"group"`
	Unit  indicator.Unit `json:"unit"`
	// Kind, Params and Output say which output of which indicator it is.
	Kind   string    `json:"kind,omitempty"`
	Params []float64 `json:"params,omitempty"`
	Output int       `json:"output"`
	// Expression is the factor's, in Qlib's language.
	Expression string `json:"expression,omitempty"`
	// Warmup is the number of bars of the stock before the first with a value.
	Warmup int `json:"warmup"`
}

// Units of features that are not those of an indicator.
const (
	Ratio indicator.Unit = "ratio" // a price relative to another, around zero
	Log   indicator.Unit = "log"   // the logarithm of a volume
	Angle indicator.Unit = "angle" // sine or cosine
	Flag  indicator.Unit = "flag"  // 0 or 1
)

// Features is a checked configuration with its layout. It does not change and may be shared.
type Features struct {
	cfg     Config
	columns []Column
	extra   []int // positions of cfg.Extra in the panel's extra columns
	outputs []int // of each indicator
	form    []form
	// relative is of prices, logs of volumes, and volumes says that there is a column of them.
	relative, logs, volumes bool
	angles                  []string // in the order of the table

	factors   *expression.Program // nil: none
	available int                 // extra columns of the panel
	leftOut   []string            // factors of sets
}

// form says how an indicator's output is written.
type form uint8

const (
	asIs      form = iota
	overClose      // x/close − 1
	perClose       // x/close
	logarithm      // sign(x)·log(1+|x|)
)

// New lays out the features. available are the extra columns of the panels, and hasVolume says
// whether they have volumes.
func New(cfg Config, available []string, hasVolume bool) (*Features, error) {
	if err := configs.Validate(cfg); err != nil {
		return nil, fmt.Errorf("features: %w", err)
	}
	f := &Features{cfg: cfg, available: len(available), relative: cfg.Prices == "relative", logs: cfg.Volume == "log", volumes: cfg.OHLCV && hasVolume}
	add := func(c Column) { f.columns = append(f.columns, c) }
	if cfg.OHLCV {
		unit, warm := indicator.Price, 0
		if f.relative {
			unit, warm = Ratio, 1
		}
		for _, name := range []string{"open", "high", "low", "close"} {
			add(Column{Name: name, Group: OHLCV, Unit: unit, Warmup: warm})
		}
		if f.volumes {
			c := Column{Name: "volume", Group: OHLCV, Unit: indicator.Volume}
			if f.logs {
				c.Unit = Log
			}
			add(c)
		}
	}
	for _, ind := range cfg.Indicators {
		if ind.Kind.Volume && !hasVolume {
			return nil, fmt.Errorf("features: %s needs volumes, and the data have no volume column", ind.Label())
		}
		names := ind.Kind.OutputNames(ind.Params)
		f.outputs = append(f.outputs, len(names))
		for o, out := range ind.Kind.Outputs {
			c := Column{Name: names[o], Group: Indicators, Unit: out.Unit, Kind: ind.Kind.Name, Params: ind.Params, Output: o, Warmup: ind.Kind.Warmup(ind.Params)}
			how := asIs
			switch {
			case f.relative && out.Unit == indicator.Price:
				how, c.Unit = overClose, Ratio
			case f.relative && out.Unit == indicator.Spread:
				how, c.Unit = perClose, Ratio
			case f.logs && out.Unit == indicator.Volume:
				how, c.Unit = logarithm, Log
			}
			f.form = append(f.form, how)
			add(c)
		}
	}
	factors, err := f.layFactors(available, hasVolume)
	if err != nil {
		return nil, fmt.Errorf("features.factors: %w", err)
	}
	f.columns = append(f.columns, factors...)
	for _, name := range cfg.Extra {
		i := slices.Index(available, name)
		if i < 0 {
			return nil, fmt.Errorf("features: extra column %q is not read; add it to source.extra, which has %v", name, available)
		}
		f.extra = append(f.extra, i)
		add(Column{Name: name, Group: Extra, Unit: indicator.Number})
	}
	for _, name := range calendars {
		if slices.Contains(cfg.Calendar, name) {
			f.angles = append(f.angles, name)
			add(Column{Name: name + "_sin", Group: Calendar, Unit: Angle})
			add(Column{Name: name + "_cos", Group: Calendar, Unit: Angle})
		}
	}
	if cfg.Timestamps {
		for _, name := range timestamps {
			add(Column{Name: name, Group: Calendar, Unit: indicator.Number})
		}
	}
	if cfg.Listed {
		add(Column{Name: "listed", Group: Listed, Unit: Flag})
	}
	for i, c := range f.columns {
		if slices.Contains(reserved, c.Name) {
			return nil, fmt.Errorf("features: a column cannot be called %q; rename the extra column in the data", c.Name)
		}
		if slices.ContainsFunc(f.columns[:i], func(o Column) bool { return o.Name == c.Name }) {
			return nil, fmt.Errorf("features: there are two columns called %q; rename the extra column in the data", c.Name)
		}
	}
	return f, nil
}

// reserved names belong to the columns that identify a row of a stored table.
var reserved = []string{"time", "symbol"}

// Columns is the layout of a row. The caller must not change it.
func (f *Features) Columns() []Column { return f.columns }

// Warmup is the number of bars of a stock before its first defined row.
func (f *Features) Warmup() int {
	n := 0
	for _, c := range f.columns {
		n = max(n, c.Warmup)
	}
	return n
}
