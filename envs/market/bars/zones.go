package bars

import (
	"errors"
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

// fixed are zones with whole minutes of offset whose clocks are never changed; whole hours have Etc/GMT.
var fixed = []string{
	"Asia/Kolkata", "Asia/Kathmandu", "Asia/Yangon", "Asia/Tehran", "Asia/Kabul", "Australia/Darwin", "Australia/Eucla", "Pacific/Marquesas",
}

// fixedZone names a zone in which clocks are always ahead of UTC by an offset in seconds, empty where
// there is none.
func fixedZone(offset int) string {
	if hours := offset / 3600; offset%3600 == 0 && hours >= -12 && hours <= 14 {
		return fmt.Sprintf("Etc/GMT%+d", -hours) // Its signs are those of POSIX.
	}
	for _, name := range fixed {
		if loc, err := time.LoadLocation(name); err == nil {
			if _, o := time.Unix(1700000000, 0).In(loc).Zone(); o == offset {
				return name
			}
		}
	}
	return ""
}

// useOffsets brings the times of a source that names no time zone into one that the offsets from UTC
// in their texts tell: the zone of an exchange that has them, the one of an offset that never changes,
// or else UTC. Times without an offset are then of that zone. Where all times with an offset are
// midnights of their own clock they are dates, and all times stay as they are written, as they do
// where no offset is other than 0. Bars of ticks have times of the clock that their ticks had.
func (d *Data) useOffsets(ofTicks bool) error {
	dates, away := true, false
	for _, s := range d.Each() {
		for i := range s.Records {
			if r := &s.Records[i]; r.stamped || ofTicks {
				away = away || r.offset != 0
				dates = dates && clockOf(r.Time) == 0 && r.Time.Nanosecond() == 0
			}
		}
	}
	o := &d.clock.offsets
	if ofTicks {
		away = o.any && (o.last.offset != 0 || len(o.changes) > 0)
	}
	if dates || !away {
		return nil
	}
	if d.Zone = o.zone(); len(o.changes) == 0 {
		d.Zone = fixedZone(o.last.offset)
	}
	if d.Zone == "" && ofTicks {
		return errors.New("the offsets from UTC of the ticks are those of no exchange: set source.timezone")
	}
	if d.Zone == "" {
		d.Zone = "UTC"
		d.Notes = append(d.Notes, "the offsets from UTC of the times are those of no exchange: all times are shown in UTC; source.timezone brings them into another zone")
	}
	loc, err := time.LoadLocation(d.Zone)
	if err != nil {
		return err
	}
	c := clock{loc: loc}
	d.change(func(s *Series) {
		for i := range s.Records {
			if r := &s.Records[i]; r.stamped {
				r.Time = r.Time.Add(-time.Duration(r.offset) * time.Second).In(loc)
			} else {
				r.Time = c.wall(r.Time)
			}
		}
	})
	return nil
}

// utcOffset writes an offset, in seconds, as -04:00.
func utcOffset(seconds int) string {
	return time.Unix(0, 0).In(time.FixedZone("", seconds)).Format("-07:00")
}
