// Package assess evaluates agents in a market: quickly on the validation split while they train
// ([Judge]), and in full, next to baselines and with sensitivity analyses, for a report
// ([Evaluate]).
//
// It is where records of agents and baselines (package backtest), the arithmetic of track records
// (export/report/performance) and the report meet, which do not know each other. [Policy] makes an
// agent's actor a policy of package backtest, which keeps everything that happens in the trading
// environment.
//
// # How to add a validation metric
//
// A name in the list of [Judge.Metrics], which package performance computes; it is then good for
// train.validation.metric. Higher must be better for a metric that a policy is chosen by.
package assess
