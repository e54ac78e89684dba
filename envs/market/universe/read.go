package universe

import (
	"bufio"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Span is a run of days, To not included; a zero To has no end.
type Span struct{ From, To bars.Date }

// Contains reports whether t lies in the span, by the calendar of t's zone.
func (s Span) Contains(t time.Time) bool {
	return !s.From.After(t) && (s.To.IsZero() || s.To.After(t))
}

func (s Span) overlaps(o Span) bool {
	return (o.To.IsZero() || s.From.Before(o.To)) && (s.To.IsZero() || o.From.Before(s.To))
}

// String writes the span in words.
func (s Span) String() string {
	if s.To.IsZero() {
		return fmt.Sprintf("from %s on", s.From)
	}
	return fmt.Sprintf("from %s until before %s", s.From, s.To)
}

// Universe is who belongs when. It is not changed by its methods.
type Universe struct {
	// Name is the index, or the name of the file; SHA256 is the file's.
	Name, SHA256 string
	spans        map[string][]Span
}

// Symbols lists, sorted, all who ever belong.
func (u *Universe) Symbols() []string { return slices.Sorted(maps.Keys(u.spans)) }

// Spans returns when a symbol belongs, in the order of time.
func (u *Universe) Spans(symbol string) []Span { return u.spans[symbol] }

// Read reads the file of a configuration.
func Read(c Config) (*Universe, error) {
	path, err := objects.Local(c.Path)
	if err != nil {
		return nil, fmt.Errorf("read universe: %w", err)
	}
	c.Path = path
	data, err := os.ReadFile(c.Path)
	if err != nil {
		return nil, fmt.Errorf("read universe: %w", err)
	}
	sum := sha256.Sum256(data)
	u := &Universe{Name: c.Index, SHA256: hex.EncodeToString(sum[:]), spans: map[string][]Span{}}
	if u.Name == "" {
		u.Name = strings.TrimSuffix(filepath.Base(c.Path), filepath.Ext(c.Path))
	}
	text, err := bars.Text(data)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", c.Path, err)
	case filepath.Ext(c.Path) == ".txt":
		err = u.instruments(c, text)
	default:
		err = u.table(c, text)
	}
	if err == nil && len(u.spans) == 0 {
		err = fmt.Errorf("%s: nobody belongs to it", c.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("read universe: %w", err)
	}
	for _, list := range u.spans {
		slices.SortFunc(list, func(a, b Span) int {
			if a.From.Before(b.From) {
				return -1
			}
			return 1
		})
	}
	return u, nil
}

// add notes a span; dates are checked in the words of the file.
func (u *Universe) add(symbol string, s Span) error {
	if !s.To.IsZero() && !s.From.Before(s.To) {
		return fmt.Errorf("%s %v: it ends before it has begun", symbol, s)
	}
	for _, o := range u.spans[symbol] {
		if s.overlaps(o) {
			return fmt.Errorf("%s %v: this overlaps %v", symbol, s, o)
		}
	}
	u.spans[symbol] = append(u.spans[symbol], s)
	return nil
}

// instruments reads Qlib's form, whose last day is included.
func (u *Universe) instruments(c Config, text string) error {
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), " \t\r")
		if line == "" {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) < 3 || cells[0] == "" {
			return fmt.Errorf("%s:%d: %q; expected symbol, first and last day, separated by tabs", c.Path, n, line)
		}
		from, err := day(cells[1])
		if err != nil {
			return fmt.Errorf("%s:%d: %s: the first day %w", c.Path, n, cells[0], err)
		}
		last, err := day(cells[2])
		if err != nil {
			return fmt.Errorf("%s:%d: %s: the last day %w", c.Path, n, cells[0], err)
		}
		if err := u.add(cells[0], Span{From: bars.NewDate(from), To: bars.NewDate(last.AddDate(0, 0, 1))}); err != nil {
			return fmt.Errorf("%s:%d: %w", c.Path, n, err)
		}
	}
	return lines.Err()
}

// day reads the date that a text begins with.
func day(text string) (time.Time, error) {
	text = strings.TrimSpace(text)
	t, err := time.Parse(time.DateOnly, text[:min(len(text), len(time.DateOnly))])
	if err != nil {
		return t, fmt.Errorf("%q is not a date such as 2010-12-31", text)
	}
	return t, nil
}

// table reads the form with a header.
func (u *Universe) table(c Config, text string) error {
	r := csv.NewReader(strings.NewReader(text))
	header, err := r.Read()
	if err != nil {
		return fmt.Errorf("%s: the header: %w", c.Path, err)
	}
	symbol, start, end, index := slices.Index(header, "symbol"), slices.Index(header, "start_date"), slices.Index(header, "end_date"), slices.Index(header, "index")
	switch {
	case symbol < 0 || start < 0 || end < 0:
		return fmt.Errorf("%s: the columns are %q; expected symbol, start_date and end_date among them", c.Path, header)
	case index < 0 && c.Index != "":
		return fmt.Errorf("%s: there is no column index, in which universe.index: %s could be", c.Path, c.Index)
	}
	seen := map[string]bool{}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Path, err)
		}
		line, _ := r.FieldPos(0)
		if index >= 0 {
			seen[row[index]] = true
			if c.Index == "" && len(seen) > 1 {
				return fmt.Errorf("%s:%d: there are several universes, such as %s: universe.index must name one", c.Path, line, strings.Join(slices.Sorted(maps.Keys(seen)), " and "))
			}
			if c.Index != "" && row[index] != c.Index {
				continue
			}
		}
		if row[symbol] == "" {
			return fmt.Errorf("%s:%d: the column symbol is blank", c.Path, line)
		}
		var s Span
		if s.From, err = bars.ParseDate(row[start]); err != nil {
			return fmt.Errorf("%s:%d: %s: the column start_date: %w", c.Path, line, row[symbol], err)
		}
		if err = s.To.UnmarshalText([]byte(row[end])); err != nil {
			return fmt.Errorf("%s:%d: %s: the column end_date: %w", c.Path, line, row[symbol], err)
		}
		if err := u.add(row[symbol], s); err != nil {
			return fmt.Errorf("%s:%d: %w", c.Path, line, err)
		}
	}
	if c.Index != "" && !seen[c.Index] {
		return fmt.Errorf("%s: no row has the index %q; there are %s", c.Path, c.Index, strings.Join(slices.Sorted(maps.Keys(seen)), ", "))
	}
	return nil
}
