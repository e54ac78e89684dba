package prepared

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/split"
	"github.com/onnxrl/onnxrl/envs/market/universe"
)

// UniverseInfo says who belongs to a universe.
type UniverseInfo struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	// Symbols is how many ever belong to it while there are bars, and Absent those of them that
	// have no rows.
	Symbols int      `json:"symbols"`
	Absent  []string `json:"absent,omitempty"`
	// Warmup is the number of bars of its own that a symbol needs before it can be bought.
	Warmup int `json:"warmup"`
	// Years are the members over time.
	Years []YearOfMembers `json:"years"`
}

// YearOfMembers says who belongs to a universe in a year.
type YearOfMembers struct {
	Year int `json:"year"`
	Crowd
}

// Crowd says how many symbols can be bought as members of the universe in the bars of a range: at
// the first and the last bar, and at least and at most at a time; and how many become members and
// cease to be after the first bar. A warm-up delays the first; symbols without rows do not count.
type Crowd struct {
	First   int `json:"first"`
	Last    int `json:"last"`
	Least   int `json:"least"`
	Most    int `json:"most"`
	Entered int `json:"entered"`
	Left    int `json:"left"`
}

// pickMembers leaves out the series of those who never belong to the universe, unless the assets
// are named.
func pickMembers(c Config, data *bars.Data) (*bars.Data, error) {
	if c.Universe.Path == "" || len(c.Assets) > 0 {
		return data, nil
	}
	u, err := universe.Read(c.Universe)
	if err != nil {
		return nil, err
	}
	picked := *data
	picked.Series = slices.DeleteFunc(slices.Clone(data.Series), func(s bars.Series) bool { return len(u.Spans(s.Symbol)) == 0 })
	if len(picked.Series) == 0 {
		return nil, fmt.Errorf("read %s: none of the %d symbols that belong to %s has rows, such as %s; the first that has is %s",
			c.Source.Path, len(u.Symbols()), c.Universe.Path, u.Symbols()[0], data.Series[0].Symbol)
	}
	return &picked, nil
}

// enrol says who belongs to the universe when.
func (s *Set) enrol(c Config, p *placed) error {
	if c.Universe.Path == "" {
		return nil
	}
	u, err := universe.Read(c.Universe)
	if err != nil {
		return err
	}
	m := &s.Manifest
	m.Universe = &UniverseInfo{Name: u.Name, SHA256: u.SHA256, Warmup: c.Universe.Warmup}
	if m.Universe.Warmup == 0 {
		m.Universe.Warmup = c.Window
	}
	s.Members = make([]universe.Membership, m.T*m.N)
	// Bars that the set drops count for nobody: at none of them has a symbol all its features.
	first, last := bars.NewDate(s.Times[0]), s.Times[m.T-1]
	symbols := p.panel.Symbols
	for _, symbol := range u.Symbols() {
		overlaps := func(v universe.Span) bool { return !v.From.After(last) && (v.To.IsZero() || first.Before(v.To)) }
		if !slices.ContainsFunc(u.Spans(symbol), overlaps) {
			continue
		}
		if m.Universe.Symbols++; !slices.Contains(symbols, symbol) {
			m.Universe.Absent = append(m.Universe.Absent, symbol)
		}
	}
	defined, column := make([]bool, m.T), make([]universe.Membership, m.T)
	for n, symbol := range symbols {
		for t := range defined {
			defined[t] = s.Defined[t*m.N+n]
		}
		u.Members(c.Universe, symbol, s.Times, defined, m.Universe.Warmup, column)
		for t, v := range column {
			s.Members[t*m.N+n] = v
		}
	}
	for lo := 0; lo < m.T; {
		hi, year := lo, s.Times[lo].Year()
		for hi < m.T && s.Times[hi].Year() == year {
			hi++
		}
		m.Universe.Years = append(m.Universe.Years, YearOfMembers{year, *s.crowd(split.Span{Lo: lo, Hi: hi})})
		lo = hi
	}
	return nil
}

// crowd counts the members in a range.
func (s *Set) crowd(r split.Span) *Crowd {
	if s.Members == nil || r.Len() == 0 {
		return nil
	}
	n := s.Manifest.N
	out := &Crowd{Least: n}
	for t := r.Lo; t < r.Hi; t++ {
		count := 0
		for i := t * n; i < (t+1)*n; i++ {
			now := s.Members[i] == universe.Member
			if now {
				count++
			}
			if before := t > r.Lo && s.Members[i-n] == universe.Member; t > r.Lo && now != before {
				if now {
					out.Entered++
				} else {
					out.Left++
				}
			}
		}
		if t == r.Lo {
			out.First = count
		}
		out.Last, out.Least, out.Most = count, min(out.Least, count), max(out.Most, count)
	}
	return out
}
