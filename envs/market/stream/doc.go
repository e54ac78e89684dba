// Package stream has the bars of a market as messages, and gathers messages of many symbols, in
// whatever order and however often they come, into the rows of one time after another.
//
// # Concepts
//
// A [Message] is the row of one symbol at one time as its source has it: before adjustment, with
// its factor and the columns of its quote. It travels as JSON or as Protobuf (bar.proto), by the
// symbol as its key, and says which version of the schema it is of. [Decode] reads both, checks
// what can be checked of a message by itself, and never panics; numbers that are not there are NaN.
//
// A message may be a tick, of which the Gatherer makes the bars that data.source.bars names, of a
// time or of a day and within the sessions, as package bars makes them of a file: the time of a bar
// is complete when its partitions have gone on behind it. Ticks have no number, so one that comes
// twice counts twice.
//
// A [Gatherer] takes messages and gives times. A time is complete when each symbol has its row, or
// has gone on: a later row came from its partition, whose messages are in order. What is late,
// there twice, revised, early, of nobody or of no time of trading has a [Rules] entry and a counter
// of [Counters]. When a symbol neither comes nor goes on, whoever watches the clock calls
// [Gatherer.Expire]; nothing here reads a clock. Rows are cleaned when their time is complete, in
// the order of time, as those of a file are ([bars.Incremental]): the rows are those of package
// prepared, to the bit.
//
// The bars of a Gatherer depend on the order of messages within each partition and not on how
// partitions interleave, as long as nothing expires; [Gatherer.SaveState] and LoadState go on where
// another one stopped.
//
// # How to add a column
//
// A column of quotes is one line in package bars: messages have it by its name, and bar.proto by
// the next number; see protoQuotes.
package stream
