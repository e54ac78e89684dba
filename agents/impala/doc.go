// Package impala learns from unrolls that may have been acted by older parameters than those that
// learn: IMPALA (Espeholt et al. 2018, arXiv 1802.01561) and APPO, the same with PPO's clipped
// surrogate, as in RLlib and Sample Factory (Petrenko et al. 2020, arXiv 2006.11751). A trainer
// acts and learns in turns; a program with actors of its own gives the learner their unrolls
// (agents.Unroller), as a trainer with train.actors does (package actors).
//
// # One update
//
// A batch has n_steps rounds of each of train.num_envs rows, from one actor or several. Each of
// n_epochs times the learner evaluates all of it with its present parameters π, corrects for the
// policy μ that acted by V-trace (rlmath.VTrace: targets vs and advantages), and takes one step
// down the gradient of the mean over the samples of
//
//	impala   −log π(a|s)·min(ρ̄_pg, ρ)·(r + γ·vs' − V(s))       + vf_coef·(V(s) − vs)² − ent_coef·H(π(·|s))
//	appo     −min(ρ·A, clip(ρ, 1−ε, 1+ε)·A),  A = r + γ·vs' − V(s)   + the same
//	ρ = π(a|s)/μ(a|s),  ε = clip_range
//
// Advantages and targets are inputs of the graph: no gradient flows through them. clip_range
// alone decides which of both it is; the kinds differ in their defaults.
//
// The values that returns end with, of the observation after an unroll and of the last one of an
// episode that was cut off, are those of the policy that acted; everything in between is evaluated
// again.
//
// # What is different from the sources
//
//	RLlib            policy and value losses are sums over the batch, here all are means, so that
//	                 max_grad_norm is 0.5 and not 40; the value's loss has no ½; APPO there has a
//	                 target network and a KL term, here neither
//	Sample Factory   the ratio is clipped to [1/(1+ε), 1+ε], and so are values; V-trace is an option
//	                 there, returns are normalised
//
// Sources of the defaults:
//
//	impala   n_steps 50, learning_rate 5e-4, Adam, ent_coef 0.01, vf_coef 0.5, thresholds 1   RLlib's ImpalaConfig
//	appo     n_steps 32, learning_rate 1e-4, Adam's ε 1e-6, clip_range 0.1, ent_coef 0.003,
//	         vf_coef 0.5, max_grad_norm 4, one epoch                                        Sample Factory's cfg.py
//	hidden [64, 64], tanh, ortho_init                                                       Stable-Baselines3
//
// # Networks
//
// Inputs, layers and distributions are package network's, and parameters are called as PPO's:
// actor.* and critic.*, or with encoders: shared encoder.*, hidden.* and so on beside the heads.
// Policies with a memory are refused. With dropout an unroll has the seeds of its masks, by which
// the learner drops what its actor dropped; see package onpolicy.
//
// # Versions and staleness
//
// The version of the parameters counts updates. The learner takes decisions of any version; how old
// they may be is up to who joins unrolls, which have theirs (agents.Unroll):
// train.actors.max_policy_lag of a document. In a trainer's turns all of them are of the present
// one, and a run has the same bits each time.
//
// # State
//
// A learner is saved after any round, with the rollout as far as it is recorded, or between two
// epochs. Continuing from there equals never having stopped, bit for bit.
//
// # How to add a term to the loss
//
// Add it to addLearn in graph.go as a sum over samples with a weight per sample that is an input,
// set the weight in learner.weigh, and add it to learner.measure.
package impala
