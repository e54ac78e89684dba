package prepared

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs/market/ashare"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/rules"
)

// books are the rule books there are.
var (
	books     = []rules.Book{ashare.Book{}}
	bookNames = func() []string {
		names := []string{""}
		for _, b := range books {
			names = append(names, b.Name())
		}
		return names
	}()
)

// Book returns the rule book of a name, nil for none.
func Book(name string) (rules.Book, error) {
	if name == "" {
		return nil, nil
	}
	for _, b := range books {
		if b.Name() == name {
			return b, nil
		}
	}
	return nil, fmt.Errorf("rules: there is no rule book %q, only %q", name, bookNames[1:])
}

// Limiter returns a limiter of the rule book of a name, for rows that arrive in the order of time.
func Limiter(name string, symbols []string) (*rules.Limiter, error) {
	book, err := Book(name)
	if err != nil {
		return nil, err
	}
	return rules.NewLimiter(book, symbols, bars.Date{})
}

// limit gives cleaned rows the limits of the rule book.
func limit(c Config, clean []bars.Series) ([]rules.Found, error) {
	book, err := Book(c.Rules)
	if book == nil || err != nil {
		return nil, err
	}
	x := limits{book: book}
	for _, s := range clean {
		x.see(s)
	}
	for i := range clean {
		if err := x.apply(i, &clean[i]); err != nil {
			return nil, err
		}
	}
	return x.found, x.check(c.Rules)
}

// limits gives cleaned rows the limits of a rule book, after it has seen all of them.
type limits struct {
	book      rules.Book
	limiter   *rules.Limiter
	symbols   []string
	first     bars.Date
	found     []rules.Found
	rows, off int
}

func (x *limits) see(s bars.Series) {
	x.symbols = append(x.symbols, s.Symbol)
	if len(s.Records) > 0 {
		if day := bars.NewDate(s.Records[0].Time); x.first.IsZero() || day.Before(x.first) {
			x.first = day
		}
	}
}

// apply takes the series in the order in which they were seen.
func (x *limits) apply(i int, s *bars.Series) (err error) {
	if x.limiter == nil {
		if x.limiter, err = rules.NewLimiter(x.book, x.symbols, x.first); err != nil {
			return err
		}
	}
	for k := range s.Records {
		x.limiter.Limit(i, &s.Records[k], s.Quoted)
	}
	for _, q := range []bars.QuoteColumn{bars.LimitUp, bars.LimitDown} {
		if !slices.Contains(s.Quoted, q) {
			s.Quoted = append(slices.Clip(s.Quoted), q)
		}
	}
	slices.Sort(s.Quoted)
	x.found = append(x.found, x.limiter.Found(i))
	x.rows, x.off = x.rows+len(s.Records), x.off+x.found[i].OffTick
	return nil
}

func (x *limits) check(name string) error {
	if 2*x.off > x.rows {
		return fmt.Errorf("rules: %d of %d rows have prices that are no multiples of 0.01: %s is for prices as they were quoted; give them unadjusted, with a factor of adjustment", x.off, x.rows, name)
	}
	if x.rows == 0 {
		return errors.New("rules: there are no rows")
	}
	return nil
}

// limitNotes say where limits are from.
func limitNotes(name string, found []rules.Found) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	var t rules.Found
	for _, f := range found {
		t.Computed += f.Computed
		t.Given += f.Given
		t.Unknown += f.Unknown
		t.OffTick += f.OffTick
		if t.Disagree += f.Disagree; t.Example == "" {
			t.Example = f.Example
		}
		if t.Announced += f.Announced; t.AnnouncedExample == "" {
			t.AnnouncedExample = f.AnnouncedExample
		}
	}
	add("limits of %d rows are those of the rule book %s, and of %d the data's own, which hold", t.Computed, name, t.Given)
	if t.Disagree > 0 {
		add("limits of the data that are NOT what the rules say: %d rows, such as %s", t.Disagree, t.Example)
	}
	if t.Announced > 0 {
		add("rows without limits in the data on days on which the rules have some: %d, taken for announced days without, such as %s", t.Announced, t.AnnouncedExample)
	}
	if t.Unknown > 0 {
		add("rows without limits for want of a previous close: %d", t.Unknown)
	}
	if t.OffTick > 0 {
		add("rows with prices that are no multiples of 0.01: %d; limits are of prices as they were quoted", t.OffTick)
	}
	return notes
}
