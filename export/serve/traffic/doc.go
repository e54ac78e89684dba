// Package traffic records what a server answers: it counts every answer by protocol and code,
// refusals included, and writes the request log. Counting allocates nothing.
//
// An answer is counted where it leaves the server, so what never reaches a model is counted too:
// refusals for want of a token, a place or a model, bodies that are too large, and what is no
// request at all. One message of a gRPC stream is one answer.
package traffic
