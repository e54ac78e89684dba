// Package engine is the seam between the graphs and whatever executes them.
//
// A [Compiler] turns a model into a [Session]. A session runs on tensors given per call
// ([Session.Run], safe for concurrent use) or on buffers fixed once ([Session.Bind], the hot
// path). On fixed buffers nothing is allocated or copied, and the next run sees updates of the
// buffers' contents.
//
// [CheckRows] tells whether the rows of a batch are independent of each other: whether a model gives the
// same for a row, whatever rows are beside it. Only then may a batch be split over cores, and may
// requests of several clients share a run. Shapes do not tell: a sequence along the first axis and a
// mean over the batch look like any other model. So it is tried on random rows, drawn by [Draws], which
// run together and one by one.
//
// Two engines implement it: runtime/ort (ONNX Runtime) and runtime/portable (pure Go). The
// sub-package enginetest is the suite that both pass. To add an engine: implement Compiler, Session
// and Binding in a package of its own, call enginetest.Run from its test, and add one line where
// cmd/app lists engines.
package engine
