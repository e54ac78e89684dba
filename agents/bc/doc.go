// Package bc is behaviour cloning (Pomerleau 1989), supervised learning of the actions in a data
// set: for actions in a Box, and for Discrete, MultiDiscrete and MultiBinary ones.
//
// # One update
//
// In every round the learner takes one update on batch_size transitions that are drawn from the
// data set; there is no learning without one:
//
//	Box       mean (π(obs) − a)², over rows and components, of actions in [−1, 1]
//	others    −mean log π(a|obs) + beta·mean (log π(·|obs))²,  the second over all valid actions
//
// # Bounds
//
// Where an observation has a field that says which actions are taken as they are, such as what a
// safety layer would not cut, bounds names it: the least of each component in [−1, 1], then the
// greatest. It may be one that the policy does not read. Each update's loss then has
//
//	bounds_penalty·mean (π(obs) − clip(π(obs), least, greatest))²
//
// beside the distance to the data, whose actions may lie beyond as well.
//
// # Ensembles
//
// With ensemble k there are k policies, each with parameters of its own. Each learns from a
// bootstrap of the transitions: a transition counts as often as one number says that is drawn for
// it and the policy, Poisson with mean 1 (Oza & Russell 2001, online bagging), and is the same
// whenever it is drawn. The exported network is all of them together, and gives uncertainty
// [batch], by how much they disagree: the standard deviation over policies, averaged over
// components, or over actions of their probabilities. With uncertainty_penalty κ the best action is
//
//	Box       m/(1 + κ·s), m the mean over policies and s the standard deviation, by component in [−1, 1]
//	others    of each head the one with the largest m − κ·s, of probabilities
//
// so that where they disagree less is done: of a Box the middle, in a market no order, and of
// others what all agree on. Exploring actors draw from the mean of the probabilities.
//
// # Networks
//
//	actor.*             torso -> hidden -> action, tanh; or logits
//	actor.m1.*, m2.*    the same, of an ensemble
//
// The names of one policy of a Box are those of TD3's actor, so that --init begins one with it.
// train and freeze are patterns of these names.
//
// # Defaults, and deviations
//
// The defaults are those of d3rlpy 2.8: learning rate 1e-3, batch 100, beta 0.5, layers of 256 and
// 256 with ReLU. Updates are compared with d3rlpy's number by number (d3rlpy_test.go).
//
//   - d3rlpy's stochastic policy of a Box, which learns by the squared distance of drawn actions, is
//     left out.
//   - Ensembles, masks and bounds are additions. Dropout is refused.
package bc
