// Package fullbatch minimises a deterministic objective over a float32
// parameter vector: gonum's L-BFGS and nonlinear conjugate gradients, and
// CMA-ES.
//
// The objective must not change between calls: fixed data, no dropout. The line
// searches of L-BFGS and CG abort on mini-batch noise; use package optim there.
// CMA-ES needs no gradient and tolerates a rugged objective, but keeps a matrix
// of n×n float64.
//
// gonum works in float64 and asks for value and gradient separately; this
// package rounds each point to float32, runs the objective once per point, and
// answers both questions from that run.
//
// To add a method of gonum: a case in method (minimize.go), a line in Methods, and a row
// in the table of minimize_test.go.
package fullbatch
