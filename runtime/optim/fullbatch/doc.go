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
// gonum takes the steps of L-BFGS and CG. For L-BFGS the search along a line is this package's
// (strongwolfe.go), and coordinates are scaled so that the first step is as long as PyTorch's. Then
// both evaluate the same points until roundings part them (torch_test.go).
//
// # Journal and restarts
//
// gonum's methods keep their state to themselves. That of L-BFGS is made of the points and
// gradients where its last Config.Memory + 1 searches ended, so a [Journal] has these [Pairs],
// which the method is given again: 12 bytes a parameter for each, so 192 MB for a million
// parameters with the default memory of 15, and never more.
//
// CG and CMA-ES are resumed by asking again: the journal holds the answers of all evaluations since
// the method last restarted, and the same method that is given the same answers takes the same
// steps. To bound it, as it holds a gradient per evaluation, CG restarts from the best point every
// Config.Restart major iterations, in stopped and unstopped runs alike: 4 bytes a parameter for
// each of its two to five evaluations an iteration, so 0.8 to 2 GB for a million parameters with
// the default of 100. A journal that does not fit is an error.
//
// To add a method of gonum: a case in stretch (minimize.go), a line in Methods, and a row in the
// table of minimize_test.go.
package fullbatch
