// Package study records work that trains several times: searches (packages tune and evolve), studies
// (ablate and walkforward), leagues, populations and curricula. Those packages decide what to train.
//
// # Vocabulary
//
// A [Ledger] is a directory with a document, which describes the work, and a lock. It is new or
// resumed. A [Log] in it has a record for each result. Records are appended and never changed, so
// that a killed program resumes after the last one. run.Work and run.Each carry out a limited number
// of jobs at a time, in this process or in others (run.Executor).
//
// A [Study] has a folder in which cells ([Cell]), experiments that differ a little, are trained with
// several seeds each. It is a list of jobs ([Job]), which may wait for each other; the cells are
// recorded ([Write]), so that a resumed study is the one that was begun ([Compare]).
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
// search decides what to try next from the records of a [Log]; a study makes a list of jobs. Each
// call makes the tables from all records.
package study
