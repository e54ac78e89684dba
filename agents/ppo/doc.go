// Package ppo is proximal policy optimisation (Schulman et al. 2017, arXiv 1707.06347), with masks
// (MaskablePPO: Huang & Ontañón 2022, arXiv 2006.14171), with memory (RecurrentPPO) and with
// V-trace, for discrete, multi-discrete, multi-binary and box actions.
//
// # One update
//
// Every n_steps rounds the learner computes advantages A by GAE and returns G = A + V of all
// samples, and then goes n_epochs times through them, in minibatches of batch_size in another
// random order each time. A minibatch is one step of the optimiser down the gradient of
//
//	L = −mean min(ρ·A, clip(ρ, 1−ε, 1+ε)·A) + vf_coef·mean (V(s) − G)² − ent_coef·mean H(π(·|s)),   ρ = π(a|s)/π_old(a|s)
//
// where A is shifted and scaled to mean 0 and deviation 1 within the minibatch (not for a single
// sample). V may be clipped to within clip_range_vf of the value that the actor saw, and the whole
// gradient is clipped by its norm. The update ends early with the first minibatch whose approx_kl
// exceeds 1.5·target_kl, before that minibatch's step. One run of a bound program gives loss,
// diagnostics and the gradient of a minibatch; where the samples do not fill it up, copies of one
// of them do, with weights of 0.
//
// Of rows that were absent (vector.Batch.Present) there are no samples: minibatches, advantages and
// all means are of the others. With memory the states of a row are those of an episode's beginning
// until it is back, and the rounds of a sequence in which it was absent weigh nothing.
//
// # What the implementations agree on
//
// The 37 details (Huang et al. 2022, "The 37 implementation details of proximal policy
// optimization"), as far as they do not concern Atari games:
//
//   - several environments that step together, and rollouts that go on over the ends of episodes;
//     where an episode terminated nothing follows; where it was cut off, the value of its own
//     last observation does. The value of the next observation follows the rollout;
//   - GAE, and targets A + V; advantages normalised per minibatch; the clipped surrogate; values
//     clipped if asked for; entropy; the gradient's norm;
//   - orthogonal weights with gain √2 in hidden layers (also with tanh), 0.01 before the policy and
//     1 before the value, biases 0. (ortho_init: false begins them as PyTorch's layers do, as
//     policy_kwargs of that name in RL Baselines3 Zoo's settings). Adam has ε = 1e-5; learning rate
//     and clip range that follow schedules over the run;
//   - networks of their own for policy and value; heads that are independent of each other, so that
//     log-probabilities and entropies are summed;
//   - Gaussian actions with a deviation that does not depend on the state, recorded and evaluated
//     as drawn, and clipped for the environment only;
//   - masks: logits of invalid actions are replaced by −1e8 and the rest renormalised; the mask is
//     recorded, and applied again in every epoch; evaluation applies it, too;
//   - memory: states begin at 0 with each episode, minibatches are whole sequences, and these begin
//     with the states that the actor had.
//
// Observations and rewards are normalised by wrappers of environments (envs/wrap), not here.
//
// # Memory
//
// recurrent: {kind: lstm} puts an LSTM between the encoder and the hidden layers, one each for
// policy and value (critic: separate), or one that only the policy trains (critic: shared). A
// rollout is cut into sequences of length rounds of one environment, each with the states before
// it. Where an episode begins within a sequence, the states are multiplied by 0, so sequences need
// neither to be cut there nor padded. Only the last of a rollout may be shorter than the others,
// and is filled up with weights of 0. States are those of the time when the actor decided, also in
// later epochs. The exploring actor's are saved with the learner. The published network has inputs
// state/… and outputs next_state/… for them.
//
// A user-supplied policy (package network) may have a memory, too, whose one step is put in a row
// for each round of a sequence. recurrent.kind then says what memory the value has: lstm, one of
// its own, or none.
//
// # V-trace
//
// correction: vtrace evaluates the rollout again before each epoch and takes advantages and targets
// from V-trace (Espeholt et al. 2018, arXiv 1802.01561) with ratios and values of the present
// policy. In the first epoch ratios are 1 and both equal those of GAE; later ones do not learn from
// values that are out of date. Advantages are not multiplied by min(ρ̄, ρ), because the surrogate
// multiplies by ρ. The values after the rollout, and of the last observations of episodes that were
// cut off, remain those of the rollout.
//
// # Constraints
//
// With constraints (package constraint) critics of costs learn beside the value, from a torso of
// their own unless encoders: shared; they have vf_coef, gamma and gae_lambda in common with it, and
// are not clipped. Multipliers move at the beginning of an update, on the episodes that ended since
// they last did, and A is replaced by (A − Σ λ·A of the cost)/(1 + Σ λ). Its parts are not
// normalised apart, so that λ is the multiplier of the problem as it is stated; normalize_advantage
// normalises the whole. (OmniSafe divides the reward's part alone by its deviation.)
//
// # Values
//
// vf_loss: huber takes Huber's loss of V − G, which does not grow as the square of large errors.
// vf_clip: larger takes the larger of the losses of the value and of the limited one.
// normalize_value lets the value learn (G − μ)/σ, by moving averages of returns and their squares
// that each minibatch moves on before it is learnt from (ValueNorm of marlbenchmark/on-policy, β =
// 0.99999, variance at least 0.01). Values of the rollout are turned back into returns by the μ and
// σ that they were estimated under, and train/value_loss is of normalised errors. popart changes
// the last layer with each move, so that V·σ + μ stays. What is published then is the policy alone.
//
// # What the value may read alone
//
// privileged names fields of the observation that the value reads and the policy does not; central
// adds those that the environment marks so (envs.Field.Central), which are read by nobody
// otherwise. Package mappo has the defaults for several agents.
//
// # Parameters
//
//	encoders: separate   actor.encoder.* actor.lstm0.* actor.hidden.* actor.logits.* (or actor.mean.*, actor.log_std)   critic.encoder.* … critic.value.*
//	encoders: shared     encoder.* lstm0.* hidden.* actor.logits.* … critic.value.*
//	policies_by: role   actor.role0.hidden.* actor.role0.logits.* … actor.role1.* … critic.role0.*, and actor.log_std, which all share
//
// and with constraints cost_critic.* … cost_critic.value.*. train and freeze are patterns of these
// names.
//
// # Metrics
//
// Tags and meanings are Stable-Baselines3's. train/approx_kl is the k3 estimate, over the last
// epoch. train/clip_fraction, train/entropy_loss, train/policy_gradient_loss and train/value_loss
// are means over all minibatches. train/loss is that of the last one; train/n_updates counts
// epochs; train/std is the mean of exp(log_std); train/return_mean and train/return_std are those
// of normalize_value. With constraints train/loss has the loss of the critics of costs in it,
// train/cost_value_loss, and there are the metrics of package constraint.
//
// # State
//
// A learner is saved after any round or minibatch, with the rollout as far as it is recorded and
// learnt from. Continuing from there equals never having stopped, bit for bit.
//
// # Defaults
//
// [Defaults] are those of Stable-Baselines3's PPO and of sb3-contrib's MaskablePPO and
// RecurrentPPO, but for the latter's n_steps and batch_size of 128. A length of 16 is this
// package's: an LSTM remembers longer than that, but learns to from shorter sequences.
//
// # Deviations
//
//   - The value's target is (V − G)², as in Stable-Baselines3, and not half of that as in the
//     paper's code. With clip_range_vf only the clipped value counts, as there, and not the larger
//     of both losses (vf_clip: larger). clip_range_vf follows clip_range_schedule in proportion.
//   - Schedules are evaluated once for an update, after its rollout, as in Stable-Baselines3.
//   - With a window in the observation, policy and value have an encoder each unless encoders:
//     shared is set; Stable-Baselines3 shares its features extractor and separates what follows.
//   - sb3-contrib cuts a minibatch of a recurrent policy at a random place and lets gradients go
//     back to there, or to the beginning of the episode. Here minibatches are made of
//     batch_size/length whole sequences of a fixed length. The LSTM has one bias where PyTorch's
//     has two, whose sum is what counts. Memory is not offered for windows of assets.
//   - Where no more than one action of a head is valid, the entropy of the head is exactly 0.
//   - The gradient is clipped by min(1, limit/norm), PyTorch's by limit/(norm + 1e-6).
//   - Dropout masks are drawn once in a rollout for each environment and are the same in all of the
//     update's epochs, see package onpolicy. Before the first gradient step all ratios are 1.
//
// # How to add a term to the loss
//
// All of it is in loss.go: add the term to design.loss as a sum over samples with a weight per
// sample that is an input, set the weight in learner.fill, and measure it in learner.diagnose. Then
// add its derivative to the formulas of gradient_test.go.
package ppo
