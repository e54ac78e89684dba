// Package td3 is twin delayed deep deterministic policy gradient (Fujimoto et al. 2018, arXiv
// 1802.09477), for actions in a Box, and by configuration DDPG (Lillicrap et al. 2016, arXiv
// 1509.02971), which is the kind ddpg: one critic, no delay and no smoothing. The kind td3_bc is
// TD3+BC (Fujimoto & Gu 2021, arXiv 2106.06860), for data sets.
//
// # One update
//
// Every train_freq rounds the learner takes gradient_steps updates, each on batch_size transitions
// that are drawn from the replay:
//
//	a' = clip(π'(obs_t) + clip(noise, ±target_noise_clip), ±1),  π' and q' the target networks
//	y  = r + γ·min q'(obs_t, a')
//	critics  Σₖ mean (qₖ(obs_tm1, a_tm1) − y)²
//
// and with every policy_delay-th of them
//
//	actor    −mean q₁(obs_tm1, π(obs_tm1))
//	targets  π' ← π' + τ·(π − π'),  q' ← q' + τ·(q − q')
//
// The discount is 0 where an episode terminated; one that was cut off goes on with the value of its
// final observation.
//
// Actor, critics and targets are three programs over one set of parameters: what is differentiated
// by whom is decided by which parameters a program gives gradients of, so nothing has to be
// stopped, and the critics' weights cost the actor no product. The noise of targets is drawn here
// and is an input.
//
// # From data sets
//
// With bc, whose kind is td3_bc, the actor's loss is
//
//	−λ·mean q₁(obs_tm1, π(obs_tm1)) + mean (π(obs_tm1) − a_tm1)²,  λ = alpha/mean |q₁(obs_tm1, π(obs_tm1))|
//
// with nothing flowing through λ. It is what keeps the policy among actions whose values the data
// tell. The defaults are those of d3rlpy 2.8, which are the paper's: alpha 2.5, learning rates of
// 3e-4, layers of 256 and 256, no random actions; updates are compared with d3rlpy's number by
// number. Observations are not normalised, which the paper does and d3rlpy leaves to its scalers.
//
// # Actions
//
// The policy's actions lie in [−1, 1], and so do those in the replay; the actor and the exported
// network map them to the Box's bounds, which must be finite. Before learning_starts actions are
// uniform. action_noise is added to every action of training, the uniform ones included, and the
// sum is clipped to [−1, 1]: none, normal, or ou (Ornstein-Uhlenbeck: x ← x − θ·x·dt +
// σ·√dt·noise), whose state is saved and begins at 0 with each episode.
//
// # Off-policy correction
//
// V-trace and other importance weights need the densities of the policy and of the behaviour at the
// recorded action. A deterministic policy has none: its distribution is a single point, at which no
// recorded action lies, so every ratio is 0 or undefined. One could take the exploration noise for
// the policy, and correct for that; but TD3 does not learn about the noisy policy, its targets are
// those of the deterministic one, and at the bounds, where actions are clipped, the noise has no
// density either. So there is no correction here: one-step targets need none, because the action of
// obs_t is the present policy's, and n_steps above 1 gives the uncorrected targets of longer
// sequences that D4PG and others use with short ones. For corrected sequences use SAC. The
// transitions of other policies, where several share a replay, count as the learner's own; a replay
// that keeps log-probabilities refuses those of TD3.
//
// # Constraints
//
// With constraints (package constraint) there is one more critic for each, of the cost:
//
//	yc = cost + γ·qc'(obs_t, a')
//	actor  mean [−q₁/(1 + Σ λ) + Σ λ/(1 + Σ λ)·qc(obs_tm1, π(obs_tm1))]
//
// with (qc − yc)² in the critics' loss, and with measure: cvar over episodes a critic of quantiles
// (package offpolicy). With bc the whole is multiplied by λ of bc. Episodes before learning_starts do
// not count; those after it have the exploration noise in them, which costs, too.
//
// # Networks
//
//	actor.*   torso -> hidden -> action, tanh
//	critic.*  torso, shared by the critics, and the action -> q1.*, q2.*, and cost1.* for each constraint: hidden -> value
//	target.*  what both were, frozen
//
// The torso is package network's: windows through an encoder, other fields flattened; any of them
// may be a file's. hidden are the layers after it. For windows of assets, each asset's component of
// the action comes from the asset's own features, and the critics see the portfolio's. With policy:
// {kind: file} the actor is a user-supplied model, actor.policy.*, that gives actions before
// squashing; hidden are the critics' then. train and freeze are patterns of these names.
//
// # Speed
//
// A program that is worth it is split over the batch into one shard per core; all run on one pool,
// so that no goroutines are woken in between. Optimisers and target networks are one pass each over
// contiguous memory, shared by the pool. At the defaults on Pendulum two updates take 1.1 to 1.25
// times as long as the matrix products that they consist of (BenchmarkUpdateAgainstProducts).
// Nothing is allocated.
//
// # State
//
// A learner is saved at any time between rounds, with its replay. Continuing from there equals
// never having stopped, bit for bit, for an equal number of threads.
//
// # Defaults, and deviations
//
// The defaults are those of Stable-Baselines3 2.9: learning rate 1e-3, buffer 1,000,000,
// learning_starts 100, batch 256 (100 before its version 2.0, and in the papers 100 and 64), τ
// 0.005, γ 0.99, one update per round, policy_delay 2, target noise 0.2 clipped at 0.5, no action
// noise, layers of 400 and 300 with ReLU initialised as PyTorch's (uniform in ±1/√fan_in). Updates
// are compared with Stable-Baselines3's, of TD3 and DDPG, number by number (sb3_test.go). sigma,
// theta and dt of action_noise are those of its classes, with the sigma that its tests and RL-Zoo
// use.
//
//   - DDPG here has a target noise of 0; there it is 0.1, clipped at 0.
//   - The policy delay counts updates over the whole run, as there.
//   - train/actor_loss is the mean over the newest learner step with an update of the actor.
//     Dropout is refused.
//   - learning_rate_schedule, max_grad_norm, n_critics, critic_hidden and other optimisers are
//     additions.
//
// # How to add a noise
//
// Add its name and parameters to Noise in config.go, its arithmetic to noise.add, and what it
// remembers to noise, where it is saved; then a row to TestNoise with its deviation and
// correlation.
package td3
