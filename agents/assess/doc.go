// Package assess evaluates agents: quickly on the validation split while they train, and in full,
// next to baselines and with sensitivity analyses, for a report.
//
// It is where records of agents and baselines (packages evaluate and backtest), the arithmetic of
// track records (export/report/performance) and the report meet, which do not know each other.
//
// # How to add a validation metric
//
// A line in [Validator]'s tables below; the name is then good for train.validation.metric. Higher
// must be better for a metric that a policy is chosen by.
package assess
