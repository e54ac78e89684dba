// Package learning shows that agents learn, and how fast: it trains them on problems whose results
// others have published, or whose optimum is known, and says whether they reach what was demanded
// before.
//
// A [Task] is a problem with a target, [Run] trains one seed of it, [Summarize] applies the rule.
// [Rows] and [Throughput] measure whole trainings in env steps per second, and where their time
// goes.
//
// For markets the optimum is that of envs/market/synthetic, run over the same bars in the same
// environment, so that the luck of the moves is the same for both.
//
// # How to add a proof
//
// A run document in configs/experiments, or in documents where it is of no other use, and a row in
// Tasks. A market with a known optimum is one of envs/market/synthetic.
package learning
