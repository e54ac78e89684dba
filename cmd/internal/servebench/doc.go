// Package servebench measures the server: latency, throughput and allocations over every transport,
// what batching gains, what swaps and a busy neighbour cost, and whether memory grows. It is the
// library of `onnxrl-bench serve`.
//
// # The closed loop
//
// A [Load] comes from a fixed number of callers, each with a connection of its own, that send the
// next request when they have the answer to the last one. The load generator sends bytes that were
// made beforehand and parses no more of an answer than where it ends (gRPC goes through grpc-go's
// client), so that on a small machine time and allocations are the server's. It is the same
// generator for our server and, with [Options].Against, for any other that speaks the Open
// Inference Protocol.
//
// # Rows
//
// A row compares two loads of the same run that take turns in short rounds; the ratio is the median
// of the rounds' ratios, so that whatever else the machine does meets both alike. A row that misses
// its target is measured up to twice more, and the median of all rounds counts. Every answer of a
// load must be good: a request that fails is an error of the benchmark, not a figure.
//
// # The soak
//
// [Soak] sends good traffic next to traffic that lies about its lengths and shapes, sends garbage,
// trickles bytes, cancels, disconnects and asks for what there is not, over HTTP and gRPC, while
// versions are swapped. Each kind must be answered with the status of its fault. Good requests must
// go on succeeding with the answer of one version, and heap, goroutines and open files must be as
// before when the traffic ends.
//
// # How to add a row
//
// Write a method of lab that returns rows, and add it to the table in benchmarks. Two sides that
// are compared run in turns with contest.
//
// # How to add a kind of bad traffic
//
// Add it to hostilesHTTP or to hostilesGRPC with the statuses that are right for it; the tests
// count the kinds.
package servebench
