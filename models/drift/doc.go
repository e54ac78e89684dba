// Package drift compares what a policy is given with what it was published on.
//
// A [Reference] has, of each feature of each input, mean, standard deviation and bins with the
// shares of the published observations in them. It is kept in the model's metadata under [Key], as
// JSON of a few dozen bytes per feature; inputs of more than [MaxFeatures] features, such as
// images, have none.
//
// A [Monitor] counts rows by the same bins in a sliding window, and gives for each feature the
// population stability index between both (Siddiqi 2006, Credit Risk Scorecards, chapter 6)
//
//	PSI = Σ (a − e)·ln(a/e)
//
// over bins, with the share a of the window and e of the reference, neither below 1e-4. Without
// drift it is about (B − 1)·(1/n + 1/m) for B bins and n and m independent rows; by the usual rule
// 0.1 is a shift to look at and 0.25 one to act on. Rows of one episode are not independent: a
// window has to have several.
//
// # Bins
//
// Features with at most 10 different values have a bin for each value, and one on each side; others
// have those that the deciles bound. Discrete inputs count as numbers. NaN counts to the last bin.
//
// # How to use another statistic
//
// Add it beside psi in monitor.go; what it needs of the published observations belongs to
// [Feature].
package drift
