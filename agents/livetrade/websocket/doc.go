// Package websocket has the bars of package livetrade from a peer that sends them by a websocket
// (RFC 6455), and sends them so itself for a demonstration.
//
// # Concepts
//
// A message is one frame, or the frames of one message: JSON as text or Protobuf as binary, as in
// package stream. A websocket numbers nothing and cannot go back. So a [Source] numbers messages
// itself, on from where the journal of the service ends, in one partition, and what is lost is
// lost: what the peer sends while there is no connection, and what came and was not in the journal
// when the service ended. The loss is reported, counted ([Source.Reconnects]), and becomes rows
// that are missing, with which the rules of package stream do what they do with any. Where the
// peer can go on from a time, [Resume] asks it to, from that of the last decision: what it sends
// twice is dropped, as every duplicate is.
//
// When a connection ends the source connects again, after a pause that doubles and is spread at
// random, so that many services do not come back at the same instant. A peer that is silent is
// noticed: it is pinged. Messages that wait for the service are bounded; when there are more
// nothing is read, and the peer has to wait, or gives up.
//
// A permanent refusal of the first connection, such as for a wrong token or a certificate that
// nobody knows, is an error; later it is waited for like anything else.
//
// A [Writer] is a server of bars on this machine.
package websocket
