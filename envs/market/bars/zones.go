package bars

import (
	"fmt"
	"slices"
	"time"
)

// offsetAt is an instant and what its text says that clocks are ahead of UTC by, in seconds.
type offsetAt struct {
	unix   int64
	offset int
}

// mostOffsets is how many instants at which the offset changes are kept.
const mostOffsets = 1024

// offsets are the instants of a source beside which the offset from UTC changes from row to row.
type offsets struct {
	last    offsetAt
	any     bool
	changes []offsetAt
}

// see notes an instant.
func (o *offsets) see(t time.Time) {
	_, offset := t.Zone()
	now := offsetAt{t.Unix(), offset}
	if o.any && o.last.offset != offset && len(o.changes) < mostOffsets {
		o.changes = append(o.changes, o.last, now)
	}
	o.last, o.any = now, true
}

// zones are those of exchanges whose clocks are changed in summer.
var zones = []string{
	"America/New_York", "America/Chicago", "America/Denver", "America/Los_Angeles", "America/Halifax", "America/Sao_Paulo", "America/Santiago",
	"Europe/London", "Europe/Berlin", "Europe/Athens", "Europe/Moscow", "Asia/Jerusalem", "Australia/Sydney", "Pacific/Auckland",
}

// add notes what was seen of another file.
func (o *offsets) add(other offsets) {
	if o.any && other.any && o.last.offset != other.last.offset {
		o.changes = append(o.changes, o.last, other.last)
	}
	o.changes = append(o.changes, other.changes...)
	o.changes = o.changes[:min(len(o.changes), mostOffsets)]
	if other.any {
		o.last, o.any = other.last, true
	}
}

// zone names the time zone whose offsets the instants have, empty where the offset never changes or
// no zone of an exchange has them.
func (o *offsets) zone() string {
	if len(o.changes) == 0 {
		return ""
	}
	for _, name := range zones {
		loc, err := time.LoadLocation(name)
		if err != nil {
			continue // The program has a database of its own.
		}
		if !slices.ContainsFunc(o.changes, func(x offsetAt) bool {
			_, offset := time.Unix(x.unix, 0).In(loc).Zone()
			return offset != x.offset
		}) {
			return name
		}
	}
	return ""
}

// ZoneError says that a symbol has one time of the clock for two instants, which the text tells apart
// by their offsets from UTC: the hour that is repeated when summer ends.
type ZoneError struct {
	// Zone names the zone of an exchange that has the offsets, empty where none has.
	Zone string
	text string
}

func (e *ZoneError) Error() string {
	advice := "set source.timezone to the zone of the exchange"
	if e.Zone != "" {
		advice = fmt.Sprintf("set source.timezone: %s, which has these offsets", e.Zone)
	}
	return e.text + "; " + advice
}

// twice is a [ZoneError] where rows would be taken for one another.
func (d *Data) twice() error {
	if len(d.clock.offsets.changes) == 0 {
		return nil
	}
	for _, s := range d.Series {
		seen := map[int64]*Record{}
		for i := range s.Records {
			r := &s.Records[i]
			if other := seen[r.Time.UnixNano()]; other != nil && other.offset != r.offset {
				return &ZoneError{d.clock.offsets.zone(), fmt.Sprintf("symbol %s: %s is there twice (%s, line %d with the offset %s, and line %d with %s), for two instants",
					s.Symbol, formatTime(r.Time), r.File, other.Line, utcOffset(other.offset), r.Line, utcOffset(r.offset))}
			}
			seen[r.Time.UnixNano()] = r
		}
	}
	return nil
}

// utcOffset writes an offset, in seconds, as -04:00.
func utcOffset(seconds int) string {
	return time.Unix(0, 0).In(time.FixedZone("", seconds)).Format("-07:00")
}
