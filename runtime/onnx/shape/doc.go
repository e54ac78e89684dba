// Package shape finds the element type and shape of every value of an ONNX model, or names the node
// at which they cannot be known.
//
// An [Env] holds one [Fact] per value: its type with known, symbolic or unknown extents, its
// content where that is constant and small, and, for the integer tensors that exporters compute
// shapes with, its content as symbolic extents. [Infer] fills an Env from a whole model;
// [Env.Apply] adds one node, which is how a builder tracks types while a graph grows.
//
// # Symbols
//
// A symbolic extent is a text. Texts made here are polynomials over the model's own symbols in one
// canonical form ("batch*4", "seq-1", "floor(len/2)"), so that two values computed in different
// ways from the same extents carry the same text. Arithmetic that has no such form gives the
// unknown extent, never a guess.
//
// # Content
//
// Contents are followed through the operators that exporters and gradients use for shape
// arithmetic, up to [MaxConst] elements per value and a total per Env. Larger constants are known
// by their type alone and never read.
//
// # Errors
//
// A node whose inputs cannot fit gives an [Error] naming the node, the shapes met and what was
// expected. Types that a model declares are merged with the inferred ones; a contradiction is an
// error of the node that made the value. Foreign models are safe to infer: work and memory are
// bounded, and nothing panics.
//
// # How to add an operator
//
// Write one function in the file of its family (rule_<family>.go), taking a *call and setting its
// outputs, and add one line to the family's table (table_*.go): the signature there checks arity,
// kinds and element types before the function runs. If shape computations pass through the
// operator, name a fold function too. A test counts the table against the operators of the ONNX
// specification.
package shape
