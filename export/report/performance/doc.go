// Package performance measures a track record: returns, risk, ratios, drawdowns, intervals and the
// evidence against luck.
//
// # Vocabulary
//
// A record has T+1 values, from the one at the start to the one after the last bar, and T simple
// returns between them, r[t] = v[t+1]/v[t] − 1. A return may be NaN, which means missing: it is
// left out of every statistic, and it counts as a period of time where the function says so.
// Returns, rates and drawdowns are fractions, not percentages, and losses are negative. A year has
// [Input].PeriodsPerYear returns, which [FrequencyOf] reads from the dates: 252 for trading days,
// 3888 for Chinese bars of 15 minutes. They scale volatility and ratios; a CAGR is over the time
// that the calendar says. What is called daily is of days: where bars are shorter, returns are
// first compounded to days.
//
// A number that a record does not have is NaN: the Sharpe ratio of a constant, the Calmar ratio
// without a drawdown, the skew of two returns, the beta to a constant. Nothing is infinite, and
// nothing is replaced by 0. A record that loses everything has a total return of −1, a CAGR of −1
// and a drawdown of −1; its later returns are 0, and what needs logarithms is NaN.
//
// # Conventions
//
// Libraries disagree about almost every name. Each row of the table in definitions.go has one line
// that says what its number is, and reports print it. Where the two common libraries differ and
// both are in use, both are there: value at risk as a percentile of the sample and as that of a
// normal distribution.
//
// # Evidence
//
// [ProbabilisticSharpe] is the probability that the true Sharpe ratio is above a threshold, and
// [DeflatedSharpe] sets the threshold to what the best of several trials without skill would have
// shown. [Resample] gives intervals by the stationary bootstrap, which keeps the dependence of
// returns over time and, because all records are resampled with the same blocks, between records.
//
// # How to add a metric
//
// Write the function into the file of its topic, with its source and every special case in the
// comment, and a row into definitions.go; [Measure], the report and its JSON then have it. Test it
// against published numbers or a naive form.
package performance
