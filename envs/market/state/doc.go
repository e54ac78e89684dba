// Package state saves and restores the numbers that a streaming computation carries from one bar to
// the next, bit for bit.
//
// # Concepts
//
// A type describes its changing fields once, in a method that hands each of them to a [Codec],
// nested types first to last. A [Writer] appends their values to a block of bytes, little-endian
// and without names; a [Reader] gives them back to fields of the same layout. What does not change,
// such as periods, is not saved: it comes from the configuration that made the value the state is
// read into, and whoever keeps a block must keep with it what identifies that configuration.
//
// Blocks may come from anywhere: integers have limits, so that an index that was read is always one
// that can be used, and after the first fault a reader changes nothing more and [Codec.Err] says
// what was wrong.
//
// # How to add a field
//
// Hand it to the codec in the method of its type, in the order of the fields, and raise the version
// of whatever keeps such blocks.
package state
