// Package study is what studies share: packages ablate and walkforward train many runs of
// documents that differ a little, and compare them.
//
// A study file names a base experiment and assigns to its keys ([Assignments]); what comes of it
// are cells ([Cell]), each of which is trained with several seeds by a [Trainer], as many at a time
// as [Parallel] is told. Its folder records the cells ([Write]), so that a study that is gone on
// with is the one that was begun ([Compare]), and holds a run directory for each run and tables
// ([WriteFiles]).
//
// # How to add a study
//
// Write a package with a plan, which says what is trained before anything is, an outcome file for
// each run or group of runs, and tables made anew from the outcomes.
package study
