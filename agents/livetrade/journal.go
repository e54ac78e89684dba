package livetrade

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/journal"
)

// A journal is files events-N.log (package runtime/journal), N being the number of the first event.
// The body of a frame is an event.
const (
	journalPrefix = "events-"
	// segmentBytes is the size from which a file is followed by another, unless Retention says so.
	segmentBytes = 64 << 20
)

// Journal is a recording of events that is appended to. It is not safe for concurrent use.
type Journal struct {
	dir  string
	file *journal.Writer
	next int64 // number of the next event
	buf  []byte
	// first is the number of the first event of the file, and limit the size from which it is
	// followed by another.
	first, limit int64
}

// OpenJournal opens the journal of a directory, or begins one. A frame that was cut off at the end,
// by the end of the program or of the machine, is removed, which say, unless nil, reports. A fault
// before it is an error that names the file and the place.
func OpenJournal(dir string, say func(string)) (*Journal, error) {
	list, err := journal.Files(dir, journalPrefix)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{dir: dir, limit: segmentBytes}
	if len(list) == 0 {
		return j, j.begin()
	}
	last := list[len(list)-1]
	r, err := last.Read(true, nil, func(n int64, _ []byte) (int64, error) { return n + 1, nil })
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", hint(err))
	}
	if r.Torn > 0 && say != nil {
		say(fmt.Sprintf("journal: %s: the last %d bytes, from byte %d on, are of an event that is not whole, as the end of the program or of the machine leaves it; they are removed", last.Path, r.Torn, r.End))
	}
	j.next, j.first = r.Next, last.First
	if r.End == 0 {
		return j, j.begin()
	}
	if j.file, err = last.Continue(r); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return j, nil
}

// begin begins a file.
func (j *Journal) begin() (err error) {
	j.file, err = journal.Create(j.dir, journalPrefix, j.next)
	j.first = j.next
	return err
}

// Next is the number of the next event, which is the number of events that there are.
func (j *Journal) Next() int64 { return j.next }

// Append writes events. When it returns, they survive the end of the program; [Journal.Sync] makes
// them survive that of the machine.
func (j *Journal) Append(events ...Event) error {
	if len(events) == 0 {
		return nil
	}
	if j.file.Size() >= j.limit {
		if err := j.follow(); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	j.buf = j.buf[:0]
	for i := range events {
		start := len(j.buf)
		j.buf = append(j.buf, make([]byte, journal.FrameHead)...)
		j.buf = events[i].append(j.buf)
		j.file.Seal(j.buf[start:], j.next+int64(i))
	}
	if err := j.file.Write(j.buf); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.next += int64(len(events))
	return nil
}

// follow begins another file behind the one that there is, whose events are on the disk then.
func (j *Journal) follow() error {
	if err := j.file.Sync(); err != nil {
		return err
	}
	before := j.file
	if err := j.begin(); err != nil {
		j.file = before
		return err
	}
	return before.Close()
}

// Sync waits until the events are on the disk.
func (j *Journal) Sync() error { return j.file.Sync() }

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// hint says what can be done about damage.
func hint(err error) error {
	var d *journal.Damage
	if errors.As(err, &d) {
		return fmt.Errorf("%w; onnxrl live --repair goes on without what is lost", err)
	}
	return err
}

// Events calls to with the events of a directory's journal from the number from on, in order. The
// event's memory is used again, and an error of to is returned as it is. A frame that is cut off at
// the very end is left out.
func Events(dir string, from int64, to func(number int64, e *Event) error) error {
	list, err := journal.Files(dir, journalPrefix)
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	var e Event
	needed := from
	for i, f := range list {
		if i+1 < len(list) && list[i+1].First <= from {
			continue
		}
		if f.First > needed {
			return fmt.Errorf("read journal: %s begins with event %d, and event %d is needed", f.Path, f.First, needed)
		}
		var theirs error
		r, err := f.Read(i == len(list)-1, nil, func(n int64, body []byte) (int64, error) {
			if n < from {
				return n + 1, nil
			}
			if err := e.read(body); err != nil {
				return 0, fmt.Errorf("%s: event %d: %w", f.Path, n, err)
			}
			theirs = to(n, &e)
			return n + 1, theirs
		})
		if theirs != nil {
			return theirs
		}
		if err != nil {
			return fmt.Errorf("read journal: %w", hint(err))
		}
		needed = max(from, r.Next)
	}
	return nil
}
