// Package flight reaches actors on other machines over Arrow Flight (gRPC).
//
//	Server    starts an actor for each stream, up to a number of slots
//	Launcher  begins an actor of a run on one of several servers, as actors.Remote.Launch
//
// # The protocol
//
// An actor is a DoExchange. The descriptor of its first message is a command, JSON of a [Hello],
// which the server answers with its own as metadata, or with an error: FailedPrecondition for
// another version of the program, ResourceExhausted where all slots are taken. The bodies of all
// messages after that, in both directions, are parts of the streams that actors.Serve reads and
// writes. A part has at most [Part] bytes, so that parameters and unrolls may be larger than the
// messages that gRPC lets pass. When the learner ends its direction the actor ends, and when the
// same learner wants the same actor once more: a stream that is broken may not have said so yet. An
// actor that ends by itself ends the stream with Aborted and how that was.
//
// # Faults
//
// Each stream has a connection of its own. One that breaks, or whose server has ended, is an
// actors.LostError, after which a group launches the actor again: at the server that it was at if
// that is there, else at the next one. Servers that are not there, and those without a free slot,
// are asked again until [actors.Config.Timeout]. A token, a certificate or a version that is
// refused, and what does not speak gRPC, are errors at once.
package flight
