// Package iql is advantage-weighted regression, which learns from data sets without leaving the
// actions that these have, for actions in a Box and for Discrete ones: implicit Q-learning
// (Kostrikov et al. 2021, arXiv 2110.06169), and by configuration the advantage-weighted
// actor-critic (Nair et al. 2020, arXiv 2006.09359), which is the kind awac, and advantage-weighted
// regression on returns (Peng et al. 2019, arXiv 1910.00177), which is the kind awr.
//
// # One update
//
// Every train_freq rounds the learner takes gradient_steps updates, each on batch_size transitions
// that are drawn from the data set, or from the replay:
//
//	critics  Σₖ mean (qₖ(obs_tm1, a_tm1) − y)² + the loss of v
//	actor    −mean w(u)·log π(a_tm1|obs_tm1)
//	targets  q' ← q' + τ·(q − q'),  q' the target critics
//
// in this order. They differ in advantage, what says how much better than usual the recorded action
// is; u is computed with the critics that the update has left, and q' is that from before:
//
//	expectile  y = r + γ·v(obs_t),  u = min q'(obs_tm1, a_tm1) − v(obs_tm1)
//	           loss of v: mean |expectile − 1(u < 0)|·u²
//	           w = exp(weight_temp·u)
//	policy     y = r + γ·min q'(obs_t, a'),  a' ~ π(·|obs_t)
//	           u = min q(obs_tm1, a_tm1) − mean of min q(obs_tm1, a) over n_action_samples a ~ π
//	           w = n·softmax(weight_temp·u) over the n rows of the batch
//	return     y = the n_steps rewards and then γⁿ·v,  u = y − v(obs_tm1),  no q
//	           loss of v: mean (v − y)²
//	           w = exp(weight_temp·(u − mean u)/(standard deviation of u + 1e-5))
//
// and w is cut off at max_weight, unless that is 0. expectile is IQL: v moves to the expectile of
// the values of the data's actions, near 1 their maximum, and no other action is evaluated. policy
// is AWAC, and return AWR. Of Discrete actions the mean over the policy's is exact.
//
// Values that are computed after the batch is drawn, u and the targets, have programs of their
// own, and each of the others gives gradients of its own side: nothing has to be stopped.
//
// # Actions
//
// The policy of a Box is a Gaussian around tanh of its mean, in [−1, 1], whose deviation does not
// depend on the observation. It is not squashed, so that actions at the bounds have densities.
// Drawn actions are cut off at ±1. log σ is low + (high − low)·sigmoid of a parameter, between −5
// and 2, or −6 and 0 for AWAC. The best action is the mean.
//
// # Networks
//
//	actor.*         torso -> hidden -> mean, and log_std; or logits
//	critic.*        torso, shared by the critics -> q1.*, q2.* with the action, value.* without: hidden -> value
//	target.critic.* what the critics were, frozen; v has none
//
// AWAC has no value.*, and AWR no q*.
//
// # State
//
// A learner is saved at any time between rounds. Continuing from there equals never having stopped,
// bit for bit, for an equal number of threads.
//
// # Defaults, and deviations
//
// The defaults are those of d3rlpy 2.8, which for IQL are the paper's for locomotion: learning
// rates of 3e-4, batch 256, γ 0.99, τ 0.005, two critics, expectile 0.7, weight_temp 3, max_weight
// 100, layers of 256 and 256 with ReLU; for AWAC batch 1024, weight_temp 1 (1/λ) and one action.
// Those of AWR are its authors': weight_temp 1 and max_weight 20. Updates of IQL and AWAC are
// compared with d3rlpy's, and those of AWR with the paper's formulas, number by number
// (d3rlpy_test.go).
//
//   - The paper's actor of IQL has a cosine schedule of its learning rate; here and in d3rlpy it has
//     none, unless learning_rate_schedule says so.
//   - AWAC's targets have no entropy and its policy is not squashed, as in the paper; d3rlpy's
//     targets are SAC's, of a policy squashed by tanh and with a temperature of 1.
//   - AWR's returns end after n_steps rewards, 100 unless something else is asked for, with v, in
//     the place of λ-returns, and v is the present one. Its authors take many steps of v and then of
//     the actor, by gradient descent with momentum, and standardise over all data. Here both take a
//     step with each batch, by Adam with the rates of IQL, and the batch is standardised.
//   - Discrete actions, which d3rlpy does not have in these, are a categorical policy and critics
//     with a value for each.
//   - Dropout is refused.
package iql
