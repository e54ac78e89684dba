// Package sac is soft actor-critic (Haarnoja et al. 2018, arXiv 1801.01290 and, with the automatic
// temperature, 1812.05905), for actions in a Box and, in the variant of Christodoulou (2019, arXiv
// 1910.07207), for Discrete ones.
//
// # One update
//
// Every train_freq rounds the learner takes gradient_steps updates, each on batch_size transitions
// that are drawn from the replay:
//
//	y  = r + γ·(min q'(obs_t, a') − α·log π(a'|obs_t)),  a' drawn from the present policy, q' the target critics
//	critics      ½·Σₖ mean (qₖ(obs_tm1, a_tm1) − y)²
//	actor        mean (α·log π(a|obs_tm1) − min q(obs_tm1, a)),  a = tanh(u), u = μ + σ·noise, through which the gradient flows
//	temperature  −log α·mean (log π(a|obs_tm1) + H̄)
//	targets      q' ← q' + τ·(q − q')
//
// in this order, with the α of the beginning throughout. The discount is 0 where an episode
// terminated; one that was cut off goes on with the value of its final observation. With Discrete
// actions y has Σ π·(min q' − α·log π), and the actor's loss is Σ π·(α·log π − min q).
//
// Actor, critics and targets are three programs over one set of parameters, and each gives
// gradients of its own: nothing has to be stopped. All noise is drawn here and is an input.
//
// # From data sets
//
// With conservative, whose kind is cql (CQL(H), Kumar et al. 2020, arXiv 2006.04779), the critics'
// loss has
//
//	½·α·weight·Σₖ mean (log Σ exp qₖ(obs_tm1, ·) − qₖ(obs_tm1, a_tm1))
//
// more, which keeps down the values of actions that the data do not have. log Σ exp is estimated
// from n_action_samples uniform actions and as many of the present policy at obs_tm1 and at obs_t,
// each with its importance weight 1/density; over Discrete actions it is exact. Unless
// soft_q_backup the targets leave out the entropy, and have the policy's best action, or the
// expectation. With alpha_learning_rate α follows −α·weight·(mean over k − alpha_threshold), as a
// multiplier between 0 and 1e6 that is adjusted in the logarithm after the critics; else it stays
// initial_alpha. The regulariser draws from a stream of its own, so that with a weight of 0 and
// soft_q_backup the bits are SAC's.
//
// The defaults are those of the authors' code for locomotion: weight 5, ten samples, no multiplier,
// learning rates 1e-4 and 3e-4; the threshold of 10 is d3rlpy's, which has a multiplier by default.
// Updates are compared with d3rlpy 2.8's number by number (TestUpdatesOfD3RLPy), with two
// deviations: its losses of critics are twice those here, regulariser included, and it adjusts the
// multiplier before the critics, where the authors' code does so after.
//
// With bc the rest of the actor's loss is multiplied by λ = alpha/mean |min q'(obs_t, a')|, of the
// targets, and mean (μ(obs_tm1) − a_tm1)² is added, μ the best action, or −log π(a_tm1|obs_tm1) of
// Discrete ones: TD3+BC's term (Fujimoto & Gu 2021, arXiv 2106.06860) in SAC. It keeps a policy
// that a run begins with while the critics learn what it is worth; package offline tells how to go
// on from an offline run.
//
// # Actions
//
// The policy's actions lie in [−1, 1], and so do those in the replay and in densities; the actor
// and the exported network map them to the Box's bounds, which must be finite. log π is the
// Gaussian's density less Σ log(1 − tanh²(u)) in the form 2·(log 2 − u − softplus(−2u)). Before
// learning_starts actions are uniform. The exported policy gives action, and action_mean and
// action_log_std before squashing.
//
// With use_sde, u = μ + z·E (gSDE, Raffin et al. 2021, arXiv 2005.05719) with the actor's last
// features z and a matrix E for each environment, drawn again after each learner step and, with
// sde_sample_freq, every so many rounds. log π is the density over the choice of E, and in each
// update one E serves all rows; gradients flow into the features.
//
// # V-trace
//
// With vtrace.length n, batches are sequences of n transitions, sampled with the log-probabilities
// μ of the behaviour, squashing and masks included, and
//
//	y = r + γ·(v + λ·(vs − v)),  v = min q'(obs_t, a') − α·log π(a'|obs_t)
//
// where vs is V-trace's target (Espeholt et al. 2018, arXiv 1802.01561) for obs_t along the rest of
// the sequence, with rewards r − α·log π(a_tm1|obs_tm1). n_steps above 1 is the uncorrected
// alternative; its targets, like Stable-Baselines3's, leave out the entropy of the steps in
// between. With gSDE the density is that over the choice of E, though a matrix stays for several
// rounds.
//
// # Shared replay
//
// Where several policies share a replay (replay.Shared), all of their transitions are drawn. With
// sharing: {clip_rho: ρ̄}, those of the others weigh
//
//	w = min(ρ̄, π(a_tm1|obs_tm1)/μ(a_tm1|obs_tm1)),  μ of the policy that acted, squashing and masks included
//
// in the means of critics and actor, and the learner's own 1. Without it all weigh 1. With
// vtrace.length V-trace corrects sequences instead, whoever has acted. Package offpolicy lists the
// metrics, and says what sharing and weights are worth.
//
// # Noise
//
// action_noise is added to squashed actions, the uniform ones before learning_starts included, and
// the sum is clipped to [−1, 1], as in Stable-Baselines3. With sharing or vtrace.length normal noise
// is added before squashing instead, and not to uniform actions: what is drawn then is
//
//	tanh(u),  u ~ N(μ, σ² + sigma²)
//
// whose density is as exact as that of the policy. The density of the clipped sum would be an
// integral, and at the bounds there is none: clipping puts probability onto single points, where the
// policy has none, and weights are 0 or undefined just where a trading policy holds one asset or
// none. Near 0 both noises are alike, and near the bounds this one is smaller. Noise of the kind ou
// has no density given the observation alone, and is refused there.
//
// # Constraints
//
// With constraints (package constraint) there is one more critic for each, of the cost:
//
//	yc = cost + γ·qc'(obs_t, a')
//	actor        mean [(α·log π − min q)/(1 + Σ λ) + Σ λ/(1 + Σ λ)·qc(obs_tm1, a)]
//
// and train/critic_loss has theirs in it. With measure: cvar over episodes it is a critic of
// quantiles (package offpolicy). Multipliers move at the beginning of a learner step, on episodes of
// the policy that explores; those before learning_starts do not count. Sequences for V-trace are
// refused.
//
// # Networks
//
//	actor.*         torso -> hidden -> mean, log_std (or log_std alone, gSDE's matrix); logits for Discrete actions
//	critic.*        torso, shared by the critics, and the action -> q1.*, q2.*, and cost1.* for each constraint: hidden -> value; for Discrete actions a value for each
//	target.critic.* what the critics were, frozen
//
// For windows of assets, each asset's component of the action comes from the asset's own features,
// and the critics see the portfolio's. With policy: {kind: file} the actor is a user-supplied
// model, actor.policy.*, that gives logits, means, or means and log standard deviations before
// squashing; hidden are the critics' then.
//
// # Speed
//
// A program that is worth it is split over the batch into one shard per core, on one pool. At the
// defaults on Pendulum an update takes 1.1 to 1.2 times as long as its matrix products
// (BenchmarkUpdateAgainstProducts). Nothing is allocated.
//
// # Defaults, and deviations
//
// The defaults are those of Stable-Baselines3 2.9: learning rate 3e-4, buffer 1,000,000,
// learning_starts 100, batch 256, τ 0.005, γ 0.99, one update per round, ent_coef auto from 1, H̄ =
// −dim, two layers of 256 with ReLU initialised as PyTorch's (uniform in ±1/√fan_in), log σ cut off
// at −20 and 2, gSDE's log σ −3 and its mean cut off at ±2. Updates are compared with
// Stable-Baselines3's, and with CleanRL's for Discrete actions, number by number (sb3_test.go).
// log_std {bound: tanh, low: -5, high: 2} and critic_learning_rate 1e-3 are CleanRL's.
//
//   - H̄ for Discrete actions is 0.89·log of the number of actions (CleanRL's sac_atari.py); with
//     masks, of the valid ones, averaged over the batch.
//   - target_update_interval counts updates over the whole run, Stable-Baselines3's within a learner
//     step.
//   - Its squashed density has 1e-6 inside of the logarithm; here it is exact.
//   - Noise for targets and actor is drawn independently with gSDE too, where Stable-Baselines3
//     uses one matrix for both.
//   - Actions of MultiDiscrete and MultiBinary spaces, and dropout, are refused.
//   - learning_rate_schedule, max_grad_norm, n_critics, critic_hidden, vtrace and other optimisers
//     are additions.
//
// # How to add a term to the actor's loss
//
// Append it to cost in addActor of graph.go, per row; what it needs as data is another input,
// filled in learner.learn. Add it to cmd/peers/sac_td3_vectors.py, write the fixture again, and
// let sb3_test.go compare.
package sac
