package bars

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Adjustment says what the prices of a source are multiplied by.
type Adjustment struct {
	// By is none, adj_close (the factor is adj_close/close), factor, or actions (made of dividends
	// and bonus shares); Column is the column's name, or those of both.
	By     string `json:"by"`
	Column string `json:"column,omitempty"`
	// Symbols is the number of symbols that have factors, Changing that of those whose factor
	// changes by more than 0.1 %, Of that of all symbols. Without names symbols that have none.
	Symbols  int      `json:"symbols"`
	Changing int      `json:"changing"`
	Of       int      `json:"of"`
	Without  []string `json:"without,omitempty"`
	// Unused are columns that prices could be adjusted by, and are not.
	Unused []string `json:"unused,omitempty"`
	// Warning, unless empty, says why the factors do not fit the prices.
	Warning string `json:"warning,omitempty"`
	// Anchored says that factors are 1 at the first row of each symbol.
	Anchored bool `json:"anchored,omitempty"`
	// MadeUp says that the bars come from no market.
	MadeUp bool `json:"made_up,omitempty"`
	// Already says that the prices are adjusted as given, as Qlib's are.
	Already bool `json:"already,omitempty"`
}

// String says it in one sentence, which every command that uses the data repeats.
func (a Adjustment) String() string {
	unused := strings.Join(a.Unused, ", ")
	switch {
	case a.MadeUp:
		return "prices: synthetic, there is nothing to adjust"
	case a.Already:
		return "prices: adjusted already, as Qlib stores them"
	case a.By == "none" && unused == "":
		return "prices: as given, NOT adjusted for splits and dividends (there is no column adj_close or adj_factor)"
	case a.By == "none":
		return fmt.Sprintf("prices: as given, NOT adjusted for splits and dividends (columns that are not used: %s)", unused)
	}
	if a.Of == 0 {
		return "prices: adjusted by " + a.Column // the rows are not there yet
	}
	text := fmt.Sprintf("prices: adjusted by %s (%d of %d symbols)", a.Column, a.Symbols, a.Of)
	switch {
	case a.Changing == 0:
		text += ", which never changes: nothing is adjusted"
	case a.Changing < a.Symbols:
		text += fmt.Sprintf(", which never changes for %d of them", a.Symbols-a.Changing)
	}
	if a.Anchored {
		text += ", anchored at the first row of each"
	}
	if len(a.Without) > 0 {
		text += "; as given: " + some(slices.Clone(a.Without))
	}
	if unused != "" {
		text += "; not used: " + unused
	}
	if a.Warning != "" {
		text += "; " + a.Warning
	}
	return text
}

// OtherAdjustment warns that prices are not adjusted as those were that someone learnt from; both
// are an Adjustment's By.
func OtherAdjustment(learned, now string) string {
	in := map[string]string{"none": "as given", "adj_close": "adjusted by adj_close", "factor": "adjusted by a factor", ByActions: "adjusted by dividends and bonus shares"}
	return fmt.Sprintf("WARNING: the agent's data had prices %s, and these are %s: what it sees here is not what it learnt from", in[learned], in[now])
}

// HasFactor reports whether the row can be adjusted: its factor is a positive number.
func (r *Record) HasFactor() bool { return r.Factor > 0 && !math.IsInf(r.Factor, 0) }

// rowFactor is the factor of a row, or, where it has none, that of the row before in time, last; 0
// stands for no row before. A row without a close needs none: 0 is then what it has. own says whether
// the factor is the row's.
func rowFactor(rec *Record, last float64) (factor float64, own bool, err error) {
	switch {
	case rec.HasFactor():
		return rec.Factor, true, nil
	case last > 0 || math.IsNaN(rec.Close):
		return last, false, nil
	}
	return 0, false, fmt.Errorf("%s (%s, line %d): the first row has no adjustment", formatTime(rec.Time), rec.File, rec.Line)
}

// adjustment describes what the rows are adjusted by. With adjust: auto, the factor of symbols that
// have none becomes 1, and factors that do not fit the prices are an error.
func (d *Data) adjustment(auto bool) error {
	a := &d.Adjustment
	a.Of = len(d.Series)
	if a.By == "none" {
		return nil
	}
	for _, s := range d.Each() {
		low, high := math.Inf(1), 0.0
		for _, r := range s.Records {
			if r.HasFactor() {
				low, high = min(low, r.Factor), max(high, r.Factor)
			}
		}
		if high == 0 {
			if auto {
				a.Without = append(a.Without, s.Symbol)
			}
			continue
		}
		a.Symbols++
		if high > low*1.001 {
			a.Changing++
		}
	}
	if without := a.Without; len(without) > 0 {
		d.change(func(s *Series) {
			for i := range s.Records {
				if !slices.Contains(without, s.Symbol) {
					return
				}
				s.Records[i].Factor = 1
			}
		})
	}
	explained, unexplained := 0, 0
	for _, s := range d.Each() {
		e, u := steps(s.Records)
		explained, unexplained = explained+e, unexplained+len(u)
		for _, r := range u {
			d.factors = append(d.factors, fmt.Sprintf("%s at %s (%s, line %d), to %g", s.Symbol, formatTime(r.Time), r.File, r.Line, r.Factor))
		}
	}
	if unexplained > explained {
		a.Warning = fmt.Sprintf("at %d of %d large changes of the factor the price does not jump: the prices look adjusted already", unexplained, explained+unexplained)
		if auto {
			return fmt.Errorf("column %q: %s; set source.adjust: none to take prices as they are, or %s to adjust them all the same", a.Column, a.Warning, a.By)
		}
	}
	return nil
}

// steps counts the changes of the factor by 20 % and more that a jump of the price overnight
// explains, and lists the rows of those at which the price stays where it was. Others are neither.
func steps(records []Record) (explained int, unexplained []*Record) {
	rows := make([]*Record, 0, len(records))
	for i := range records {
		if r := &records[i]; r.HasFactor() && r.Open > 0 && r.Close > 0 {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b *Record) int { return a.Time.Compare(b.Time) })
	for i := 1; i < len(rows); i++ {
		step := math.Log(rows[i].Factor / rows[i-1].Factor)
		size := math.Abs(step)
		if size < math.Log(1.2) || math.IsInf(size, 0) {
			continue
		}
		move := math.Log(rows[i].Open / rows[i-1].Close)
		switch {
		case math.Abs(move+step) < size/3:
			explained++
		case math.Abs(move) < size/3:
			unexplained = append(unexplained, rows[i])
		}
	}
	return explained, unexplained
}
