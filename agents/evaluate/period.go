package evaluate

import (
	"strings"
	"time"
)

// Period is a stretch of bars by their times, both included. The zero Period is none.
type Period struct{ First, Last time.Time }

// String writes a period as an interval of ISO 8601, and nothing for none.
func (p Period) String() string {
	if p == (Period{}) {
		return ""
	}
	return p.First.Format(time.RFC3339) + "/" + p.Last.Format(time.RFC3339)
}

// ParsePeriod reads what String has written.
func ParsePeriod(text string) (p Period, err error) {
	if text == "" {
		return p, nil
	}
	from, to, _ := strings.Cut(text, "/")
	if p.First, err = time.Parse(time.RFC3339, from); err == nil {
		p.Last, err = time.Parse(time.RFC3339, to)
	}
	return p, err
}

// Overlap returns the part of a period that another has, too; ok is false where there is none.
func (p Period) Overlap(q Period) (both Period, ok bool) {
	both = p
	if q.First.After(both.First) {
		both.First = q.First
	}
	if q.Last.Before(both.Last) {
		both.Last = q.Last
	}
	return both, p != (Period{}) && q != (Period{}) && !both.Last.Before(both.First)
}

// Hull is the shortest period that holds two, of which one may be none.
func (p Period) Hull(q Period) Period {
	switch {
	case p == (Period{}):
		return q
	case q == (Period{}):
		return p
	}
	if q.First.Before(p.First) {
		p.First = q.First
	}
	if q.Last.After(p.Last) {
		p.Last = q.Last
	}
	return p
}
