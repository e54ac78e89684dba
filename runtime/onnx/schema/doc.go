// Package schema is the ONNX standard's table of operators: for every version of every operator its
// parameters and the types they may have, its attributes, whether it is deterministic and
// differentiable, and, where the standard writes the operator in terms of others, that body.
//
// The table is generated, not written: cmd/peers/schemas.py reads it from the onnx Python package,
// and the release is in [Release]. To move to a newer one, install it and run
//
//	python cmd/peers/schemas.py runtime/onnx/schema
//
// Decoding is lazy: a program that asks for ten operators parses ten.
package schema
