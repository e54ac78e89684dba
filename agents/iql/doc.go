// Package iql is implicit Q-learning (Kostrikov et al. 2021, arXiv 2110.06169), which learns from
// data sets without asking for the values of actions that these do not have: for actions in a Box,
// and for Discrete ones.
//
// # One update
//
// Every train_freq rounds the learner takes gradient_steps updates, each on batch_size transitions
// that are drawn from the data set, or from the replay:
//
//	y  = r + γ·v(obs_t)
//	u  = min q'(obs_tm1, a_tm1) − v(obs_tm1),  q' the target critics
//	critics  Σₖ mean (qₖ(obs_tm1, a_tm1) − y)² + mean |expectile − 1(u < 0)|·u²
//	actor    −mean min(max_weight, exp(weight_temp·u))·log π(a_tm1|obs_tm1),  u with the new v
//	targets  q' ← q' + τ·(q − q')
//
// in this order. The second part of the critics' loss moves v alone, to the expectile of the values
// of the data's actions: near 1 it is their maximum. The actor is advantage-weighted regression
// (Peng et al. 2019, arXiv 1910.00177), towards the data's actions that are better than that.
//
// Actor, critics and targets are three programs over one set of parameters, and each gives
// gradients of its own: nothing has to be stopped.
//
// # Actions
//
// The policy of a Box is a Gaussian around tanh of its mean, in [−1, 1], whose deviation does not
// depend on the observation; it is not squashed, so that actions at the bounds have densities.
// Drawn actions are cut off at ±1. log σ is −5 + 7·sigmoid of a parameter. The best action is the
// mean.
//
// # Networks
//
//	actor.*         torso -> hidden -> mean, and log_std; or logits
//	critic.*        torso, shared by the critics -> q1.*, q2.* with the action, value.* without: hidden -> value
//	target.critic.* what the critics were, frozen; v has none
//
// # State
//
// A learner is saved at any time between rounds. Continuing from there equals never having stopped,
// bit for bit, for an equal number of threads.
//
// # Defaults, and deviations
//
// The defaults are those of d3rlpy 2.8, which are the paper's for locomotion: learning rates of
// 3e-4, batch 256, γ 0.99, τ 0.005, two critics, expectile 0.7, weight_temp 3, max_weight 100,
// layers of 256 and 256 with ReLU. Updates are compared with d3rlpy's number by number
// (d3rlpy_test.go).
//
//   - The paper's actor has a cosine schedule of its learning rate; here and in d3rlpy it has none,
//     unless learning_rate_schedule says so.
//   - Discrete actions, which d3rlpy's IQL does not have, are a categorical policy and critics with
//     a value for each.
//   - Dropout is refused.
package iql
