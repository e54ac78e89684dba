// Package learning shows that an agent learns: it trains one in a market whose optimum is known and says which part of the optimum it earns on bars that it has not seen.
//
// The optimum is that of envs/market/synthetic, run over the same bars in the same environment, so that the luck of the moves is the same for both.
//
// # How to add a proof
//
// A market with a known optimum in envs/market/synthetic, an experiment in configs/experiments, and its policy here.
package learning
