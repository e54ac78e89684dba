// Package ablate is a study of what matters in a training run: what a base experiment comes to when
// one of its factors is set otherwise, each way over several seeds.
//
// # Vocabulary
//
// A study file names a base experiment, seeds, and factors. A factor is something that can be
// chosen, such as the encoder; its levels are the choices, each a list of assignments to the base's
// document, as --set takes them:
//
//	base: qtmrl.yaml
//	seeds: [42, 43, 44]
//	set: {train.total_env_steps: 200000}       # assignments to all cells
//	metrics: [sharpe, total_return]            # columns of the tables; the first is the one that is plotted
//	factors:
//	  window:
//	    "20": {env.window: 20}
//	    "30": {env.window: 30}
//	  trades:
//	    20 % / 50 %: {env.buy_pct: 0.2, env.sell_pct: 0.5}
//	    10 % / 30 %: {env.buy_pct: 0.1, env.sell_pct: 0.3}
//
// A cell is one combination of levels, and a run is one seed of a cell. By default every cell but
// the base's differs from it in one factor; the full grid has every combination. A level whose
// document means the same as the base's is the base's level of its factor: it gives that its name
// and is not trained again.
//
// # Judging
//
// Every run is evaluated on the validation split, never on the test split, with the policy at the
// end of its training: the one that was best on validation would be evaluated with the luck that
// made it the best. A cell's difference to the base is paired by seed; its interval is Student's t
// of the paired differences at 95 %, for each comparison by itself. Cells must therefore be trained
// on one machine with equal train.threads: a study whose base leaves them open trains every run on
// one core, so that the number of runs at a time, which a study does not fix, changes nothing.
//
// # Files
//
// A study's folder holds plan.yaml, outcomes.jsonl, to which a line is appended for each run that is
// evaluated, a run directory <cell>/seed-<n> for each run, and the tables: ablation.csv (a row per
// run), summary.csv and summary.md (a row per cell), factors.csv (a row per level), ablation.json, and
// plots/. Each run of the study makes the tables from all outcomes. They hold no times, except for
// ablation.json.
//
// # How to add a column
//
// Everything that [Outcome.Metrics] has can be named under metrics of a study; the name's owner is
// the [Runner]: [Experiments], unless a program brings its own.
package ablate
