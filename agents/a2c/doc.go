// Package a2c is synchronous advantage actor-critic (Mnih et al. 2016, arXiv 1602.01783), in the
// form that QTMRL (Liu et al. 2025, arXiv 2508.20467) gives it, and by configuration in that of
// Stable-Baselines3.
//
// # One update
//
// Every n_steps rounds the learner computes returns and advantages of all samples and takes
// one step down the gradient of
//
//	L = −Σ log π(a|s)·A + vf_coef·Σ (V(s) − G)² − ent_coef·Σ H(π(·|s))
//	Gₜ = rₜ + γ·Gₜ₊₁,  A = G − V(s),  log π(a|s) = Σᵢ log πᵢ(aᵢ|s),  H = Σᵢ Hᵢ
//
// over the samples of the rollout, where i are the heads, one for each asset, or the components of
// an action in a Box. Returns end with V of the observation after the rollout. Where an episode
// terminated they end with the reward; where it was cut off, with V of its own last observation and
// not of the next episode's first one. A and G are inputs of the graph: no gradient flows through
// them. V is what the actor computed when it decided, with the parameters that the update then
// changes, so nothing is evaluated twice.
//
// The entropy is subtracted: it is to become large. The paper's Algorithm 1 adds it to what is
// minimised; its text means the opposite. Metrics are means over the samples whatever the
// reduction, under Stable-Baselines3's tags; train/loss is their weighted sum.
//
// # Actions of another policy
//
// Where decisions may come from elsewhere, such as from an older version or from another member of
// a population, correction: vtrace (Espeholt et al. 2018, arXiv 1802.01561) makes up for it: the
// learner evaluates the rollout with its own parameters, divides the probabilities of what was done
// by those that it was done with (Decision.LogProb), and takes returns and advantages from
// rlmath.VTrace, with gae_lambda as λ. The decisions then need neither a version nor values.
// On-policy this equals the returns above, up to rounding; it costs another evaluation.
//
// # Networks
//
// For windows [W,N,F] of N assets, beside position [N] and cash [1], either of which may be absent:
//
//	window   -> encoder, one for all assets        -> [N,D]
//	position, cash, features -> cross-asset layer  -> [N,D'] and the portfolio's [D']
//	[N,D'] -> logits [N,k], masked;   [D'] -> V
//
// An asset whose mask leaves it no choice is not listed, or not traded at the bar. Nobody attends
// to it, and it does not count in the portfolio: a position in a suspended asset is seen by its own
// head only. The value of the last observation of an episode that was cut off uses that
// observation's own mask (vector.Batch.FinalMask).
//
// Windows [W,F] of one series go through the encoder, and its features together with all other
// fields through hidden layers. Observations without a window are flattened, go through the encoder
// if one is named, and through hidden layers. These inputs, the layers and the distributions are
// package network's: actions are Discrete, MultiDiscrete, MultiBinary, or lie in a Box, as a
// diagonal Gaussian with state-independent deviations or, with use_sde, by gSDE. An action in a Box
// is clipped to its bounds for the environment and learnt from as it was drawn.
//
// Heads begin small (orthogonal, gain 0.01 for the policy and 1 for the value), so that the first
// policy is nearly uniform. With ortho_init: false, as policy_kwargs of that name in RL Baselines3
// Zoo's settings, they and the hidden layers begin as PyTorch's do.
//
// # Parameters and their learning rates
//
//	encoders: shared     encoder.* cross.* hidden.* actor.* critic.*
//	encoders: separate   actor.encoder.* actor.cross.* actor.hidden.* actor.logits.*  critic.encoder.* … critic.value.*
//	in a Box             actor.mean.* actor.log_std instead of actor.logits.*
//
// Parameters below critic have critic_learning_rate, if that is given, and all others
// learning_rate: a shared encoder is the actor's. The gradient is clipped once, by its norm over
// all parameters together. train and freeze are patterns of these names.
//
// # Windows in common
//
// Two consecutive windows have all bars but one in common. Where an encoder computes from a bar
// something that does not depend on the window (encoder.Sharer: timecnn with padding: valid, or
// causal and pool: last), the features of n_steps + 1 consecutive windows, a chunk, are computed at
// once and kept until the parameters change. Each round then costs only the layers after the
// encoder. A window's features depend on its own rows only, which the tests check against each
// window alone. Other encoders, and share_windows: off, have chunks of one window. A published
// policy reads single windows.
//
// The learner divides the gradient at the features: its first program computes the loss and the
// gradients of heads and features, a second one carries the latter through the encoder, chunk after
// chunk. A rollout may have any number of chunks: environments at the same bar share one, and one
// that begins an episode elsewhere opens another.
//
// Work is split over cores where it is independent: the encoder over assets, the heads over
// samples. Sums have a fixed order, so results have the same bits for the same number of shards.
//
// # State
//
// A learner is saved after any round, with the rollout as far as it is recorded. Continuing from
// there equals never having stopped, bit for bit.
//
// # Defaults
//
// [Defaults] are those of Stable-Baselines3's A2C; its RMSpropTFLike is optimizer: {eps_inside:
// true, ones: true} in addition. What remains different:
//
//   - a linear schedule without steps begins at its first value and would reach its last one after
//     the last update; Stable-Baselines3 is one update ahead;
//   - a bit of a MultiBinary action is a choice between two logits, as in SB3-contrib's masked
//     policies; Stable-Baselines3 has one logit, so that the same learning rate moves the log-odds
//     half as far there.
//
// # QTMRL
//
// Its values are in configs/experiments/qtmrl.yaml. The paper leaves open the kernel of the
// convolutions (3), how assets are mixed (one block of attention with four heads), and the
// initialisation.
//
// # Dropout
//
// Masks are drawn once in a rollout for each environment and used again in the update, see package
// onpolicy. What an encoder with dropout makes of a window is then another thing in each
// environment and at each place of the window: windows are encoded one by one, with the rest of the
// network, and overlapping ones not together.
//
// # How to add a term to the loss
//
// Add it to addTrain in graph.go as a sum over samples with a weight per sample that is an input,
// set the weight in learner.targets, and add its derivative to the formulas of gradient_test.go.
package a2c
