// Package flightrpc connects programs by Arrow Flight over gRPC: addresses, TLS, bearer tokens,
// keep-alive and what is refused for good. What is said over the connections is the callers', see
// agents/replay/flight and agents/actors/flight.
//
//	Peer       where a server is, and what it is told; Dial makes a Conn
//	Conn       a connection, which begins when it is used, and again when it has ended
//	NewServer  a gRPC server that answers Flight's calls
//
// # What is refused for good
//
// gRPC reports a certificate that has expired, or an answer that is no gRPC, like a server that is
// not there, and goes on trying. [Conn.Refused] tells them apart, so that callers need not wait for
// what waiting does not help.
package flightrpc
