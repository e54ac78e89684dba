// Package shape finds the element type and shape of every value of an ONNX model, or names the node at which they cannot be known.
//
// An [Env] holds one [Fact] per value: its type with known, symbolic or unknown extents, its content where that is constant, and, for the small integer tensors
// that exporters compute shapes with, its content as symbolic extents. [Infer] fills an Env from a whole model; [Env.Apply] adds one node, which is how a builder
// tracks types while a graph grows.
//
// To add an operator: write one function in the file of its family (rule_<family>.go), taking a *call and setting its outputs, and add one line to the table in
// rules.go. A test compares the table with the operators that the engines execute and autodiff differentiates.
package shape
