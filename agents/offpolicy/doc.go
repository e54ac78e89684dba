// Package offpolicy is what algorithms that learn from a replay do alike, so that each of them says
// only what is its own: its targets, its losses and how it explores.
//
// # For all of them
//
// [Settings] are the configuration that DQN, SAC and TD3 share, under the keys of
// Stable-Baselines3. A [Clock] says when a learner steps and how often it updates then: never
// before learning_starts env steps, then every train_freq rounds or after each episode,
// gradient_steps times. A [Descent] is an optimiser over some of the parameters with its schedule
// and its clipping.
//
// # For actor-critics
//
// An actor, critics of its actions, and target networks that follow some of them are one set of
// parameters, below the scopes actor, critic and target. Five graphs are drawn over them
// ([Networks]):
//
//	policy    complete; it is exported
//	act       what actors need of it
//	targets   obs_t to the least value that the target critics give to the policy's action
//	critic    the critics' loss
//	actor     the actor's loss
//
// Fields that are privileged (network.Config) are read by critics alone: policy and act have no
// inputs for them.
//
// A [Learner] makes programs of the last three over one batch. What is differentiated by whom is
// decided by which parameters a program gives gradients of, so nothing has to be stopped, and the
// other side's weights cost no product. Optimisers and target networks ([Follower]) are one pass
// each over contiguous memory. A program that is worth it is split over the batch into one shard
// per core; all run on one pool. The learner is saved between rounds, with the replay; what goes on
// from there equals never having stopped, bit for bit, for an equal number of threads. An [Actor]
// runs the acting network and maps actions from [−1, 1] to the environment's bounds.
//
// Where layers of the encoders never change, all graphs but the exported one have inputs for what
// these make of a window, which Draw and Run of an [Actor] fill by its row (network.Frozen). A
// store must then write Batch.Rows and Batch.NextRows.
//
// An update is the algorithm's: sample into Batch, run Targets, compute Y, run Critic and step
// CriticDescent, run Actor and step ActorDescent, move Follower.
//
// # A replay that several policies share
//
// A learner that is given the place of a member (replay.Shared) draws the transitions of all
// members. Its store has the layout of [LayoutOf]. What those of others count for is the
// algorithm's: see [Sharing]. [Sources] says whose were drawn in a learner step:
//
//	replay/policy_N/share  the part of the samples that policy N recorded
//	replay/policy_N/age    how many transitions were recorded since, by all, on average
//	replay/policy_N/rho    the mean of the clipped ratios π/μ, where they are computed
//	replay/policy_N/ess    their effective sample size (Σ ρ)²/Σ ρ², as a part of the samples of policy N
//	replay/ess             that of all samples
//
// The worth of that to three SAC experts on one task, each with as many env steps and updates as
// without (go test ./agents/offpolicy -run '^$' -bench Sharing -benchtime 1x): the mean return, and
// the interval of 95 % of the difference to experts that are apart, over 10 paired seeds.
//
//	            apart  shared                  with sharing: {}        apart, v-trace  shared, v-trace
//	pendulum     −825  −452 (157 to 589)       −590 (56 to 413)                 −1047  −936 (−129 to 350)
//	navigation   2.86  3.98 (0.15 to 2.10)     3.71 (−0.12 to 1.83)              3.28  4.35 (−0.19 to 2.32)
//
// So sharing pays where experts have few transitions of their own. A critic of actions needs no
// correction for the action that it is given, and neither weights nor V-trace have earned their
// place here: sharing and vtrace.length are off by default.
//
// # Constraints
//
// SAC and TD3 have critics of costs ([Networks.CostCritics], [Constraints]) for the limits of package
// constraint. Where a limit is on the mean, or on single steps, the critic learns the value of the
// cost, or of what it is charged with, as critics of rewards do. Where it is on the tail of episodes,
// the critic has Q quantiles x of what the rest of the episode costs (worst-case soft actor-critic,
// Yang et al. 2021; quantile regression, Dabney et al. 2018, arXiv 1710.10044), and the actor goes
// down
//
//	λ/(1 + Σ λ)·mean over x of (cost before + x − ν)⁺/(1 − alpha)
//
// whose expectation is the gradient of the CVaR of the whole episode. The replay has what each
// episode had cost before a step. Deviations from Yang et al.:
//
//   - there the critic is a Gaussian (in the sequel, 2022, implicit quantiles), and the CVaR that of
//     the rest of the episode from each state, whatever was paid before: a policy that is at the
//     limit everywhere is below it from the beginning. Here it is the episode's;
//   - λ follows the CVaR of the episodes that were played, not the critic's, so a critic that errs
//     moves λ and not the limit that is kept;
//   - ν is the quantile of cost before + cost + x' over the batch, x' of the target critic for the
//     present policy's action, followed at a rate of 0.05 an update. That of the episodes that were
//     played, as in PPO, lags by as many episodes as it is estimated from: policy and λ then swing
//     (on agenttest.Stake between a sixth and twice the limit);
//   - costs are not discounted, and an episode that is cut off has ended: the measure ends there,
//     too. So n_steps is 1;
//   - the loss of quantiles is the absolute one, not Huber's, whose width would depend on the unit
//     of the cost. It is a mean over quantiles, as in TQC;
//   - the target of Discrete actions is of one that is drawn from the policy.
//
// Values of the rest of an episode of many steps take many updates: the target networks let in a
// part of τ with each. A limit on daily losses (over: step) needs no more than the value of a step.
//
// # How to add an actor-critic
//
// Embed [Settings] and [CriticSettings] in its Config, and [Learner] in its learner. Draw the
// graphs as sac/graph.go does: [Networks.Declare] first, then the five networks by [Networks.Over].
// Call [Learner.Build], find the inputs and outputs that are the algorithm's own, and put what else
// is to be saved into Arrays and Optimizers. Then write Step and Act. Package agenttest has the
// tests that all of them pass.
package offpolicy
