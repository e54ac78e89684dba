// Package opcases holds, for every operator that can be differentiated, the cases that its gradient
// is checked on, and runs them on an engine.
//
// It is not a test package: `onnxrl grad ops --verify` runs the same cases on the user's machine.
//
// A [Case] is a small model, usually one node, the point at which it is checked, and what is
// expected. Most cases are compared with differences of the forward model ([gradcheck.Check]).
// Cases at kinks and ties, where differences mean nothing, state the gradient that the conventions
// of package autodiff ask for. Cases of piecewise constant operators state that model and gradient
// do not move.
//
// # How to add cases
//
// Add lines to the family's cases_<family>.go:
//
//	op("Mul", "row", Any(2, 3), Any(3)),
//	op("ReduceMax", "axis", Distinct(2, 3, 4), ints(1)).attr(onnx.AttrInt("keepdims", 0)),
//	op("Abs", "at zero", Values([]int{3}, -1, 0, 1)).want([]float64{-1, 0, 1}),
//
// Arguments are generators that keep away from kinks by more than [gradcheck.MaxStep]. An operator
// counts as covered when at least [MinCases] of its cases pass.
package opcases
