// Package constraint keeps what an agent's episodes cost beside the reward below limits while it
// learns: constrained Markov decision processes (Altman 1999) by Lagrangian relaxation. It is one
// mechanism for all algorithms that have the key agent.constraints.
//
// # What is solved
//
//	max over π of E[return]   so that   measure(cost) ≤ limit, for each constraint
//
// by descent of the policy on −(return − Σ λ·cost)/(1 + Σ λ) and ascent of each multiplier λ ≥ 0 on
// λ·(measure − limit). The measure is of undiscounted sums over whole episodes of the policy that
// explores, or with over: step of single steps, such as the losses of days; critics of costs discount by the algorithm's gamma as those of the reward do, so the
// policy weighs early costs more than the limit does, as in OmniSafe.
//
// # Multipliers
//
// lagrange is gradient ascent by Adam (Ray et al. 2019), pid the controller of Stooke et al. (2020,
// arXiv 2007.03964), both with OmniSafe's names and defaults. λ moves once in a learner step, if at
// least episodes of them have ended since it last did; longer episodes therefore want a larger
// lambda_lr. With window it can move after each episode, on a measure of the newest ones. Within warmup_episodes it stays as it begins. It is saved with the learner, and limit,
// rates and gains can be edited while the learner lives.
//
// # CVaR
//
// With measure: cvar the limit is one of the mean of the dearest 1 − alpha of all episodes, in the
// form of Rockafellar & Uryasev (2000), min over ν of ν + E[(cost − ν)⁺]/(1 − alpha). In PPO ν is
// the quantile of the episodes measured, which is that minimum, and needs no learning rate (CPPO
// descends to it). Each step is charged with what it adds to (cost so far − ν)⁺/(1 − alpha), which
// sums to the tail of the whole episode, or with over: step with (cost − ν)⁺/(1 − alpha). SAC and
// TD3 learn the quantiles of what the rest of an episode costs instead (package offpolicy, after
// Yang et al. 2021). Pitfalls:
//
//   - of E episodes only (1 − alpha)·E are in the tail: let window, or episodes without one, be
//     30/(1 − alpha), that is 600 at 0.95. With fewer λ follows noise, and validation refuses less
//     than one;
//   - λ must be slower than the policy: where it is quicker, it overshoots and both swing;
//   - most steps are charged with nothing, and where the environment does not show what the episode
//     has cost so far, the critic cannot know whether the next ones will be;
//   - what counts is how often the limit is exceeded on data that were not trained on; λ, and the
//     measure in training, say nothing of that.
//
// # How to constrain an algorithm
//
// Make a [Set], let its Begin and End see every round that is recorded, call Update before a
// learner step, learn a critic of each cost ([Set.Charge]), subtract Lambda times its value in the
// policy's loss, and scale by Rescale. What learns from a replay embeds offpolicy.Learner, which
// does all of it (offpolicy.Constraints). Put the Set into the checkpoint and its Measure into the
// metrics.
package constraint
