// Package study is the ledger of whatever trains several times: searches (packages tune and evolve),
// studies (ablate and walkforward), leagues, populations and curricula. What they train, and what
// they learn from it, is theirs.
//
// # Vocabulary
//
// A [Ledger] is a directory with a document, which says what is done in it, and a lock: it is begun,
// or gone on with. A [Log] in it has a record for each thing that has come of it. Records are
// appended, and none is changed, so that a program that was killed goes on behind the last one. [Work]
// carries out what there is to do, as many at a time as are wanted; where that happens, in this
// process or in others, is package run's matter ([run.Executor]).
//
// A [Study] has a folder in which cells ([Cell]), experiments that differ a little, are trained with
// several seeds each. It is a list of jobs ([Job]), which may wait for each other; the cells are
// recorded ([Write]), so that a study that is gone on with is the one that was begun ([Compare]).
// Its document names a base experiment and assigns to its keys ([Assignments]).
//
// # Files
//
// name.json says what runs and artefacts are called by. A study's folder has plan.yaml,
// outcomes.jsonl, with a line for each outcome of a job, a run directory for each run, and tables
// ([WriteFiles]).
//
// # How to add a search or a study
//
// Write a package with a document and a plan, which says what is trained before anything is. A
// search decides what to try next from the records of a [Log]; a study makes a list of jobs. Tables
// are made anew from the records.
package study
