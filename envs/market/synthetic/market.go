package synthetic

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Market is a recipe for bars.
type Market interface {
	// Generate makes the bars. Equal recipes give equal bits.
	Generate() *bars.Data
	// Validate reports all problems of the recipe.
	Validate() error
}

// Kind is a row of the list of markets: the name that a configuration gives as kind.
type Kind struct {
	Name string
	// Summary says in one line what the market is.
	Summary string
	// Defaults returns the recipe whose fields are the keys.
	Defaults func() any
	parse    func(configs.Section) (Market, error)
}

// Kinds lists the markets.
func Kinds() []Kind {
	return []Kind{
		kind("leading_indicator", "prices that an indicator of the bar before tells something of", DefaultLeadingIndicator),
		kind("leading_volume", "prices that the volume of the bar before tells something of", DefaultLeadingVolume),
		kind("limit_trap", "prices that rise day by day, then fall by their limit without a buyer", DefaultLimitTrap),
		kind("liquidation", "a price whose changes are known, where trading at once is dear", DefaultLiquidation),
		kind("momentum", "prices that follow a trend which nobody sees", DefaultMomentum),
		kind("noise", "random walks, of which nothing can be known", DefaultNoise),
		kind("pairs", "two prices that never part for long", DefaultPairs),
		kind("regimes", "prices that go on or turn back, for some time each", DefaultRegimes),
	}
}

func kind[M Market](name, summary string, defaults func() M) Kind {
	return Kind{Name: name, Summary: summary, Defaults: func() any { return defaults() }, parse: func(s configs.Section) (Market, error) {
		m := defaults()
		err := s.Decode(&m)
		return m, err
	}}
}

// New finds the kind that a configuration names and decodes its recipe.
func New(c configs.Kinded) (Market, error) {
	var names []string
	for _, k := range Kinds() {
		if k.Name == c.Kind {
			return k.parse(c.Section)
		}
		names = append(names, k.Name)
	}
	return nil, c.Unknown(names)
}

// maxRows bounds what a recipe can ask for, bars times assets.
const maxRows = 10_000_000

// checkSize reports sizes that are not sensible.
func checkSize(p *configs.Problems, count, assets int) {
	p.AtLeast("bars", count, 2)
	p.AtLeast("assets", assets, 1)
	p.Check(count <= maxRows && assets <= maxRows && count*assets <= maxRows, "bars", "%d bars of %d assets are more than %d rows", count, assets, maxRows)
}

// days are the given number of weekdays from a day on.
func days(start bars.Date, n int) []time.Time {
	at, err := time.Parse(time.DateOnly, start.String())
	if err != nil {
		panic(err) // A Date is written in this form.
	}
	list := make([]time.Time, 0, n)
	for ; len(list) < n; at = at.AddDate(0, 0, 1) {
		if d := at.Weekday(); d != time.Saturday && d != time.Sunday {
			list = append(list, at)
		}
	}
	return list
}

// symbol names asset i: S01, S02, …
func symbol(i int) string { return fmt.Sprintf("S%02d", i+1) }

// bar makes the bar of a day that opens and closes at the given prices: high and low go beyond them
// by up to half of width, and the volume is between 100,000 and a million. It uses three draws.
func bar(s *rng.Stream, at time.Time, open, closing, width float64) bars.Bar {
	up, down := 1+float64(width/2*s.Float64()), 1-float64(width/2*s.Float64())
	return bars.Bar{
		Time: at, Open: open, Close: closing, High: max(open, closing) * up, Low: min(open, closing) * down,
		Volume: math.Floor(100_000 + float64(900_000*s.Float64())),
	}
}

// data wraps series as if they had been read from a file of that name.
func data(name string, series []bars.Series, extra []string) *bars.Data {
	h, rows := sha256.New(), 0
	var word [8]byte
	for _, s := range series {
		h.Write([]byte(s.Symbol))
		for i := range s.Records {
			r := &s.Records[i]
			r.Factor, r.File, r.Line = 1, name, i+1
			binary.LittleEndian.PutUint64(word[:], uint64(r.Time.Unix()))
			h.Write(word[:])
			for _, v := range append([]float64{r.Open, r.High, r.Low, r.Close, r.Volume}, r.Extra...) {
				binary.LittleEndian.PutUint64(word[:], math.Float64bits(v))
				h.Write(word[:])
			}
			rows++
		}
	}
	file := bars.File{Name: name, SHA256: hex.EncodeToString(h.Sum(nil)), Rows: rows}
	return &bars.Data{Series: series, Files: []bars.File{file}, Adjustment: bars.Adjustment{By: "none", Of: len(series), MadeUp: true}, HasVolume: true, Extra: extra}
}

// date is a literal day.
func date(s string) bars.Date {
	d, err := bars.ParseDate(s)
	if err != nil {
		panic(err) // The literal is wrong.
	}
	return d
}
