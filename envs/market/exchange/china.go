package exchange

import (
	_ "embed"
	"fmt"
	"strings"
	"time"
)

// holidays lists the weekdays without trading in Shanghai and Shenzhen, one line for each year:
// dates, and ranges of dates within which no day has trading.
//
//go:embed xshg.txt
var holidays string

// china is the calendar of Shanghai or Shenzhen.
func china(name string) func() (*Calendar, error) {
	return func() (*Calendar, error) {
		closed := map[day]bool{}
		c := &Calendar{Name: name, trades: func(d day) bool { return !weekend(d) && !closed[d] }}
		for line := range strings.Lines(holidays) {
			fields := strings.Fields(line)
			for _, f := range fields[1:] {
				from, to, _ := strings.Cut(f, "..")
				if to == "" {
					to = from
				}
				a, err := time.Parse(time.DateOnly, fields[0]+"-"+from)
				b, err2 := time.Parse(time.DateOnly, fields[0]+"-"+to)
				if err != nil || err2 != nil {
					return nil, fmt.Errorf("holidays of %s: %q is no range of dates", fields[0], f)
				}
				if c.first == 0 {
					c.first = on(a.Year(), 1, 1)
				}
				c.last = on(b.Year(), 12, 31)
				for d := dayOf(a); d <= dayOf(b); d++ {
					closed[d] = true
				}
			}
		}
		// The opening auction reports at 9:25; STAR and ChiNext trade at the close until 15:30.
		sessions := []Session{
			{Open: hhmm(9, 30), Close: hhmm(11, 30), From: hhmm(9, 15), Until: hhmm(11, 35)},
			{Open: hhmm(13, 0), Close: hhmm(15, 0), From: hhmm(13, 0), Until: hhmm(15, 31)},
		}
		c.sessions = func(day) []Session { return sessions }
		return c, nil
	}
}
