// Package walkforward is a study of how a way of training does on data that come after it: fold by
// fold, a policy is trained on a stretch of the past, the best one is chosen on the stretch after
// it, and is judged once on the stretch after that. The test ranges together are one record out of
// sample, the pooled one.
//
// # Vocabulary
//
// A study file names a base experiment of the environment trading, a scheme, which divides the data
// into folds (see [split.Scheme]), and seeds:
//
//	base: qtmrl.yaml
//	scheme: {kind: expanding, train: 5y, valid: 1y, test: 1y, purge: 5, embargo: 5}
//	warm_start: none        # or last: parameters begin with those of the fold before
//	seeds: [1, 2, 3]
//	ensemble: {by: mean}    # or majority, validation; absent: none
//	set: {train.total_env_steps: 50000}
//	variants:               # further ways of training, compared with the base
//	  log reward: {env.reward: log}
//
// A cell is one fold of one variant, and a run is one seed of a cell. What the base says of
// env.data.split is replaced, and it may say nothing; statistics of normalisation are fitted on each
// fold's training range. The agent of a variant is its ensemble; without one it is the portfolio that gives each seed an
// equal part of the capital at the beginning of a fold.
//
// # Judging
//
// Every fold begins with cash, for the agent as for equal-weight buy-and-hold, the index and the
// simple rules. Nothing is held between the ranges of two folds, and the bars there are in no
// record. Intervals are of the stationary block bootstrap over time, with blocks that all records
// share: seeds are not samples of history, and their spread is reported separately. The deflated
// Sharpe ratio counts every seed, and every ensemble, of every variant as a trial.
//
// # Files
//
// A study's folder holds plan.yaml, a run directory <cell>/seed-<n> for each run, and outcomes.jsonl
// with a line for each cell that is judged. From these each run of the study writes
// walkforward.json, folds.csv, pooled.csv, summary.md and plots/; once all cells are judged, also
// report/, the tear sheet of the pooled record.
//
// # How to add a figure
//
// A line of the table in figures.go; it is then in all files.
package walkforward
