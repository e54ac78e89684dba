package feature

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/expression"
	"github.com/onnxrl/onnxrl/envs/market/indicator"
	"github.com/onnxrl/onnxrl/envs/market/state"
)

// Factors are features written in Qlib's expression language ([expression]). On bars without
// trading all fields are missing, as in Qlib's data.
type Factors struct {
	// Sets are Qlib's factor sets: alpha158, alpha360. Factors of fields that the data lack are
	// left out, and a note says which.
	Sets []string `yaml:"sets,omitempty"`
	// Expressions are factors of one's own.
	Expressions []Expression `yaml:"expressions,omitempty"`
	// Missing says what stands for a value that is missing after the warm-up: zero, last (the value
	// before), or nothing, which leaves the row undefined and the stock not tradable.
	Missing string `yaml:"missing,omitempty"`
}

// Expression is a factor.
type Expression struct {
	// Name of the feature; the expression itself where it is empty.
	Name string `yaml:"name"`
	// Expr is an expression over $open, $high, $low, $close, $volume and the columns of
	// source.extra, such as Ref($close, 5)/$close.
	Expr string `yaml:"expr"`
}

func (e Expression) named() string {
	if e.Name == "" {
		return e.Expr
	}
	return e.Name
}

// Validate reports what is wrong with the fields.
func (c Factors) Validate() error {
	var p configs.Problems
	for i, name := range c.Sets {
		p.OneOf(fmt.Sprintf("sets[%d]", i), name, expression.Sets...)
		p.Check(!slices.Contains(c.Sets[:i], name), fmt.Sprintf("sets[%d]", i), "%q is there twice", name)
	}
	for i, e := range c.Expressions {
		_, err := expression.Parse(e.Expr)
		p.Check(err == nil, fmt.Sprintf("expressions[%d].expr", i), "%v", err)
	}
	p.OneOf("missing", c.Missing, "", "zero", "last")
	return p.Err()
}

// fields are the names that expressions may use: those of a bar, and the panel's extra columns.
func fieldNames(available []string, hasVolume bool) []string {
	names := []string{"open", "high", "low", "close", "volume"}
	if !hasVolume {
		names[4] = "" // no expression has it
	}
	return append(names, available...)
}

// layFactors compiles the factors and returns their columns; f.leftOut names those of sets that are
// left out because the data lack a field.
func (f *Features) layFactors(available []string, hasVolume bool) (columns []Column, err error) {
	c, fields := f.cfg.Factors, fieldNames(available, hasVolume)
	var list []*expression.Expr
	add := func(name, text string) error {
		e, err := expression.Parse(text)
		if err != nil {
			return err
		}
		list = append(list, e)
		columns = append(columns, Column{Name: name, Group: Indicators, Kind: "expression", Expression: e.String()})
		return nil
	}
	for _, set := range c.Sets {
		factors, err := expression.Set(set)
		if err != nil {
			return nil, err
		}
		for _, factor := range factors {
			e, err := expression.Parse(factor.Text)
			if err != nil {
				return nil, err
			}
			if lacks := slices.DeleteFunc(e.Fields(), func(name string) bool { return slices.Contains(fields, name) }); len(lacks) > 0 {
				f.leftOut = append(f.leftOut, fmt.Sprintf("%s (the data have no $%s)", factor.Name, lacks[0]))
				continue
			}
			if slices.ContainsFunc(columns, func(c Column) bool { return c.Name == factor.Name }) {
				continue // OPEN0, HIGH0 and LOW0 are in both sets
			}
			if err := add(factor.Name, factor.Text); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range c.Expressions {
		if err := add(e.named(), e.Expr); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	if f.factors, err = expression.Compile(fields, list...); err != nil {
		return nil, err
	}
	units := f.units(fields)
	for i := range columns {
		columns[i].Unit, columns[i].Warmup = units[i], f.factors.Warmup(i)
	}
	return columns, nil
}

// units finds which factors change with the level of prices, and else with that of volumes, by
// computing them on made-up bars and again on ones with other levels.
func (f *Features) units(fields []string) []indicator.Unit {
	compute := func(price, volume float64) [][]float64 {
		s, r := f.factors.New(), rand.New(rand.NewPCG(1, 1))
		rows := make([][]float64, 300)
		in := make([]float64, len(fields))
		for t := range rows {
			for i, name := range fields {
				in[i] = 10 + r.Float64()
				switch name {
				case "open", "high", "low", "close", "vwap":
					in[i] *= price
				case "volume":
					in[i] *= 1e8 * volume
				}
			}
			rows[t] = make([]float64, f.factors.Outputs())
			s.Next(in, rows[t])
		}
		return rows
	}
	base, prices, volumes := compute(1, 1), compute(2, 1), compute(1, 2)
	units := make([]indicator.Unit, f.factors.Outputs())
	for i := range units {
		changes := func(other [][]float64) bool {
			found := false
			for t := range base {
				a, b := base[t][i], other[t][i]
				if a-a == 0 && b-b == 0 {
					found = true
					if math.Abs(a-b) > 1e-6*max(math.Abs(a), math.Abs(b)) {
						return true
					}
				}
			}
			return !found // unknown: the longest window is longer than these bars
		}
		switch {
		case changes(prices):
			units[i] = indicator.Price
		case changes(volumes):
			units[i] = indicator.Volume
		default:
			units[i] = indicator.Number
		}
	}
	return units
}

// LeftOut names the factors of sets that are not features because the data lack a field.
func (f *Features) LeftOut() []string { return f.leftOut }

// factors is the state of the factors on one asset.
type factors struct {
	f     *Features
	first int // column
	state *expression.State
	in    []float64 // the fields of a bar
	last  []float64 // of each factor, NaN before the first
	bars  int       // seen, at most the longest warm-up
}

func (f *Features) newFactors() *factors {
	if f.factors == nil {
		return nil
	}
	s := &factors{f: f, state: f.factors.New(), in: make([]float64, 5+f.available), last: make([]float64, f.factors.Outputs())}
	for i := range s.last {
		s.last[i] = math.NaN()
	}
	s.first = slices.IndexFunc(f.columns, func(c Column) bool { return c.Kind == "expression" })
	return s
}

// next takes a bar and writes the factors' values.
func (s *factors) next(b *bars.Bar, extra []float64, status bars.Status, out []float64) {
	s.in[0], s.in[1], s.in[2], s.in[3], s.in[4] = b.Open, b.High, b.Low, b.Close, b.Volume
	copy(s.in[5:], extra)
	if status != bars.Traded {
		for i := range s.in {
			s.in[i] = math.NaN()
		}
	}
	s.state.Next(s.in, out)
	for i := range s.last {
		if out[i]-out[i] == 0 {
			s.last[i] = out[i]
			continue
		}
		if s.bars < s.f.columns[s.first+i].Warmup {
			continue
		}
		switch s.f.cfg.Factors.Missing {
		case "zero":
			out[i] = 0
		case "last":
			out[i] = s.last[i]
		}
	}
	s.bars = min(s.bars+1, s.f.Warmup())
}

func (s *factors) save(c *state.Codec) {
	s.state.State(c)
	c.Floats(s.last)
	c.Int(&s.bars, 0, s.f.Warmup())
}
