// Package program runs training graphs: one bound run reads the batch and the parameters where they
// lie and writes losses, diagnostics and the gradient segment.
//
// A [Program] is made from a forward graph whose parameters are inputs, an objective, and a fixed
// batch size. It owns the batch buffers ([Program.Input]), the output buffers ([Program.Output])
// and the gradients ([Program.Gradients]), which have the layout of the trainable parameters.
// [Program.Run] allocates nothing.
//
// # Shards
//
// A program may be split over the batch into shards, one session and one gradient segment each,
// that run in parallel. Outputs without a batch axis and gradients are then sums over the shards,
// added in shard order, so results are bit-identical for a given number of shards. That is only
// right when the loss is a sum over samples: graphs weigh their samples by an input (1/batch for a
// mean) rather than taking a mean. Whether it holds is not taken on trust: before a program of more
// than one shard is returned, it is compared with the unsharded program on a random batch, and
// graphs whose rows depend on each other (batch statistics, reductions over the batch, shapes that
// depend on the data) are refused with [ErrNotSeparable]. [Split] is the rule by which all programs
// are split, and a batch that the shards do not divide is filled up.
package program
