package exchange

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/runtime/objects"
)

var fileColumns = []string{"date", "open", "close", "break_start", "break_end"}

// readFile reads a calendar of trading days.
func readFile(path string) (*Calendar, error) {
	path, err := objects.Local(path)
	if err != nil {
		return nil, fmt.Errorf("calendar: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("calendar: %w", err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.TrimLeadingSpace = true
	header, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("calendar %s: the header: %w", path, err)
	}
	at := make([]int, len(fileColumns))
	for i, name := range fileColumns {
		at[i] = slices.Index(header, name)
	}
	if at[0] < 0 || (at[1] < 0) != (at[2] < 0) || (at[3] < 0) != (at[4] < 0) || at[3] >= 0 && at[1] < 0 {
		return nil, fmt.Errorf("calendar %s: the columns are %s; expected date, and open with close, and break_start with break_end where there is a break", path, strings.Join(header, ", "))
	}
	days := map[day][]Session{}
	c := &Calendar{Name: filepath.Base(path)}
	var usual []Session
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		line, _ := r.FieldPos(0)
		fail := func(err error) (*Calendar, error) {
			return nil, fmt.Errorf("calendar %s, line %d: %w", path, line, err)
		}
		if err != nil {
			return fail(err)
		}
		date, err := time.Parse(time.DateOnly, strings.TrimSpace(row[at[0]]))
		if err != nil {
			return fail(fmt.Errorf("%q is not a date such as 2010-12-31", row[at[0]]))
		}
		d := dayOf(date)
		if _, twice := days[d]; twice {
			return fail(fmt.Errorf("%s is there twice", date.Format(time.DateOnly)))
		}
		if days[d], err = hours(row, at); err != nil {
			return fail(err)
		}
		if len(days) == 1 {
			c.first, c.last, usual = d, d, days[d]
		}
		c.first, c.last = min(c.first, d), max(c.last, d)
	}
	if len(days) == 0 {
		return nil, fmt.Errorf("calendar %s: there are no days", path)
	}
	c.trades = func(d day) bool { _, ok := days[d]; return ok }
	c.sessions = func(d day) []Session {
		if s, ok := days[d]; ok {
			return s
		}
		return usual
	}
	return c, nil
}

// hours reads the sessions of a row; at are the positions of fileColumns.
func hours(row []string, at []int) ([]Session, error) {
	var clock [4]time.Duration
	known := 0
	for i := range clock {
		if at[1+i] < 0 || strings.TrimSpace(row[at[1+i]]) == "" {
			continue
		}
		var err error
		if clock[i], err = parseClock(strings.TrimSpace(row[at[1+i]])); err != nil {
			return nil, err
		}
		known |= 1 << i
	}
	open, close, from, to := clock[0], clock[1], clock[2], clock[3]
	switch {
	case known == 0:
		return nil, nil
	case known == 3 && open < close:
		return []Session{NewSession(open, close)}, nil
	case known == 15 && open < from && from < to && to < close:
		return []Session{NewSession(open, from), NewSession(to, close)}, nil
	}
	return nil, errors.New("expected open before close, and the break between the two")
}

func parseClock(text string) (time.Duration, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of day such as 09:30", text)
	}
	return hhmm(t.Hour(), t.Minute()), nil
}

// late is how long after the end of a session its last trades are reported.
const late = time.Minute

// NewSession is a session without an auction. One that does not end later than it begins goes on
// through midnight.
func NewSession(open, close time.Duration) Session {
	if close <= open {
		close += 24 * time.Hour
	}
	return Session{Open: open, Close: close, From: open, Until: close + late}
}

// ParseSession reads a session such as 09:30-11:30.
func ParseSession(text string) (Session, error) {
	from, to, ok := strings.Cut(text, "-")
	open, err := parseClock(strings.TrimSpace(from))
	close, err2 := parseClock(strings.TrimSpace(to))
	if !ok || err != nil || err2 != nil {
		return Session{}, fmt.Errorf("%q is not a session such as 09:30-11:30", text)
	}
	return NewSession(open, close), nil
}
