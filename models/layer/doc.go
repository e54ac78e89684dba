// Package layer builds networks out of ONNX nodes: the vocabulary that encoders and heads are
// written in.
//
// # Vocabulary
//
// A [Graph] is a network under construction, seen from one scope. [Graph.In] gives the scope below.
// A layer is a method that takes values and returns values, appends nodes, and makes parameters
// with [Graph.Param]. The type of every value is known while the graph grows, so a layer reads
// widths off its input and shapes that do not fit are errors at once, placed at the scope.
// [Graph.Network] ends the construction: a models.Network, with its parameters as inputs, and their
// initial values.
//
// # Names
//
// A parameter is called after its scope with dots ("encoder.conv0.weight"), a node and the value it
// makes with slashes ("encoder/conv0/Gemm"). Weights are stored [out, in], as PyTorch stores them.
// Constants are called "const/…", by which models.FromModel tells them from parameters when a file
// is read again.
//
// # Initial values
//
// A parameter is filled from the random stream of its own name, so it depends on the seed and its
// name and on nothing else: not on the order of construction, not on what the rest of the network
// is. See [Init].
//
// # Shapes
//
// The first axis of every input is the batch, which stays symbolic ([Batch]) until a training
// program binds it; all others are numbers. Sequences are [batch, time, …, channels], because a
// window of a table lies in memory that way; axes between time and channels, such as assets, are
// independent and share the weights.
//
// # How to add a layer
//
// Write a method on *Graph in the file of its family. Take the name of its scope first when it has
// parameters, compute widths from [Graph.Extent], use operators that have gradients, choose the
// form by measurement and write the figures down. Add it to the table of layer_test.go, which
// checks its type, its gradient and its values against a naive form.
package layer
