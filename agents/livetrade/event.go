package livetrade

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Kind says what an event is.
type Kind byte

// The kinds of events. Their numbers are written.
const (
	// Bar is a message of package stream, at an offset of a partition.
	Bar Kind = 1 + iota
	// Clock says that a time of the clock has passed that was waited for.
	Clock
	// Command is what somebody asks for; Value is the command, [CommandKill] or [CommandResume]. Of
	// one that came by a source the partition is negative, −1 that of its partition 0; of others
	// the offset is −1.
	Command
	// Behind says that a partition has messages that were there before the service began to read
	// it, and CaughtUp that they have all come.
	Behind
	CaughtUp
	// Report is what a broker has told; Value is JSON.
	Report
)

// Event is one input of a machine.
type Event struct {
	Kind Kind
	// Came is when, by the clock.
	Came time.Time
	// Partition is that of a message, Behind and CaughtUp, Offset that
	// of a message or a command.
	Partition int32
	Offset    int64
	Value     []byte
}

// append writes an event.
func (e *Event) append(to []byte) []byte {
	to = append(to, byte(e.Kind))
	to = binary.AppendVarint(to, e.Came.UnixNano())
	switch e.Kind {
	case Bar, Command:
		to = binary.AppendVarint(to, int64(e.Partition))
		to = binary.AppendVarint(to, e.Offset)
	case Behind, CaughtUp:
		to = binary.AppendVarint(to, int64(e.Partition))
	}
	return append(to, e.Value...)
}

// read reads an event, whose value shares the memory of b.
func (e *Event) read(b []byte) error {
	if len(b) == 0 {
		return errors.New("the event is empty")
	}
	*e = Event{Kind: Kind(b[0])}
	b = b[1:]
	number := func() (v int64) {
		var n int
		if v, n = binary.Varint(b); n <= 0 {
			b = nil
			return 0
		}
		b = b[n:]
		return v
	}
	e.Came = time.Unix(0, number()).UTC()
	switch e.Kind {
	case Bar, Command:
		e.Partition, e.Offset = int32(number()), number()
	case Behind, CaughtUp:
		e.Partition = int32(number())
	case Clock, Report:
	default:
		return fmt.Errorf("events of kind %d are not known", e.Kind)
	}
	if b == nil {
		return errors.New("the event is too short")
	}
	e.Value = b
	return nil
}
