package livetrade

import (
	"context"
	"io"
	"time"
)

// Source gives messages. Poll waits for some and returns them in the order in which they came, at
// most some thousands; those of one partition by rising offsets. It returns io.EOF after the last
// of a source that ends, and the error of the context. The caller may keep what it returns.
type Source interface {
	// Start begins. next has, for partitions that messages were taken from before, the offset that
	// is next; the source may give earlier ones again, which are left out. behind are partitions
	// that have messages from there on already.
	Start(ctx context.Context, next map[int32]int64) (behind []int32, err error)
	Poll(ctx context.Context) ([]Message, error)
	// Pause says which partitions are to give nothing, until it is called again. It may be called
	// while Poll waits; what Poll has taken it may still return.
	Pause(partitions []int32)
	io.Closer
}

// Connected is a source of messages that a peer sends, which may go away.
type Connected interface {
	Source
	// Tell says, before Start, whom to tell what somebody should know: from any goroutine.
	Tell(say func(string))
	// Decided says that the bars up to a time have been taken, before Start and then while Poll
	// waits; the zero time is before the first.
	Decided(at time.Time)
	// Reconnects is how often it has connected again.
	Reconnects() int64
}

// Message is one of a source.
type Message struct {
	Partition int32
	Offset    int64
	Value     []byte
	// Behind says that this is none, and that a partition has messages that are to come, as those
	// that Start returns: a source that was cut off gives one partition after another. CaughtUp
	// says that all have been given that were there then.
	Behind, CaughtUp bool
	// Command says that Value is a command. Partitions of commands are negative, from −1 on.
	Command bool
}

// Sink takes batches. Publish takes the next one, in order, and may return before it is written;
// Flush returns when all are. Each is there whole or not at all, also after the end of the program.
// An error of either is the end of the sink.
type Sink interface {
	// Start finds out what is there: the number of the last batch, 0 before the first.
	Start(ctx context.Context) (last uint64, err error)
	Publish(b *Batch) error
	// Bad takes a message that cannot be read.
	Bad(b *Bad) error
	Flush(ctx context.Context) error
	io.Closer
}
