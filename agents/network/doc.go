// Package network builds what the networks of all algorithms have in common: inputs for the fields of an observation, the torso between inputs and heads, and the policy's distribution over an action space.
//
// # Inputs
//
// A [Frame] finds out what the fields of an observation are: a window of assets [W,N,F] with position [N] and cash [1] beside it, a window [W,F] of one series, or vectors. Discrete fields enter as one-hot vectors, bits and multi-discrete ones likewise, all others as float32. Inputs carry the fields' names, so that one torso
// may be fed twice in a graph under different names, as off-policy learners need for the observation before and after a step.
//
// # Torso
//
//	windows of assets   encoder per asset -> cross-asset layer -> [batch, N, D] for heads per asset, [batch, D] for the portfolio
//	window of a series  encoder, its features beside all other fields -> hidden layers -> [batch, D]
//	vectors             (encoder, if one is named) -> hidden layers -> [batch, D]
//
// Actor and critic have a torso each, or share one, as the algorithm says: by building below different scopes, or the same.
//
// # Distributions
//
// A [Distribution] is the part of a graph between the torso's features and log-probabilities. What acts outputs its parameters; a [Sampler] draws actions from them in Go, from the key of the round, so runs repeat and no graph holds randomness.
//
//	Discrete, MultiDiscrete, MultiBinary   one masked categorical choice per head; a bit is a head of two
//	Box                                    diagonal Gaussian with state-independent log standard deviation, or gSDE (Raffin et al. 2021, arXiv 2005.05719)
//
// # How to add an action space
//
// Write a Distribution and a Sampler for it, give both a row in NewDistribution, and let the suite in network_test.go run over an environment with the space.
package network
