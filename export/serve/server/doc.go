// Package server has servers listen, over HTTP, gRPC and a port for probes, with what protects them.
//
// # Concepts
//
// [Listen] takes the addresses and reads the [Files], a certificate and tokens, which
// [Server.Reload] reads again; what answers at the addresses is the caller's:
//
//	AnswerHTTP    a handler, with the limits of httpapi.NewServer, over TLS with a certificate
//	AnswerGRPC    a gRPC server, which gets its certificate by TLS
//	AnswerHealth  /livez and /readyz, for a cluster's probes, without TLS and tokens
//
// Whether a request is answered is asked of [Server.Guard] by the handlers, each by its wire format.
//
// # How a server ends
//
// [Server.LameDuck] says to probes and clients that they are to go elsewhere, while all is answered.
// [Server.Shutdown] refuses what is new and waits for what has begun. [Server.Close] cuts off the
// rest and frees the addresses.
//
// # How to add a protocol
//
// Add its address to [Options], and a method beside [Server.AnswerGRPC], and end it in
// [Server.Shutdown].
package server
