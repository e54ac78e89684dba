// Package es learns by evolution strategies, which need no gradient of the policy: they perturb its
// parameters, look what whole episodes return, and move towards what returned more. Any policy that
// is an ONNX graph can be trained, whatever its operators.
//
// # Concepts
//
//	centre      the trainable parameters θ of the policy: what is validated, saved and published
//	member      a perturbation of the centre; its fitness is the mean return of n_eval_episodes episodes
//	generation  population members around one centre; one learner step
//
// Each environment acts by one member at a time: num_envs members are measured at once, and as many
// parameter vectors exist. The others are seeds: a member is drawn from the key of its generation
// and its number where an environment begins it, and drawn again where it is learnt from. An
// environment whose episode ends takes the next member; one that finds none acts by the centre
// until all are measured, and these env steps count and teach nothing. Then every environment
// begins a new episode (agents.Restarter). Few members beside num_envs waste least where episodes
// are equally long.
//
// Members act greedily: the largest logit of each head, or the network's output clipped to the
// bounds of a Box. All exploration is in the parameters.
//
// # openai_es
//
// Salimans, Ho, Chen, Sidor & Sutskever, "Evolution Strategies as a Scalable Alternative to
// Reinforcement Learning" (2017, arXiv 1703.03864), as in openai/evolution-strategies-starter:
//
//	member 2i is θ + σ·εᵢ, member 2i+1 is θ − σ·εᵢ,  εᵢ ~ N(0, I)
//	sₖ = rank of the return of member k among P, scaled to [−½, ½]
//	g  = −1/P · Σᵢ (s₂ᵢ − s₂ᵢ₊₁)·εᵢ,  θ ← Adam(θ, g + decay·θ)
//
// As there, g is not divided by σ, to which Adam is indifferent but for the weight of the decay.
// Sources of the defaults:
//
//	sigma 0.02, learning_rate 0.01, optimizer.decay 0.005, tanh   configurations/humanoid.json there
//	Adam's β₁ 0.9, β₂ 0.999, ε 1e-8                              optimizers.py there
//	weights: orthogonal, gains 1 and 0.01                        rows of these norms (normc) there
//	hidden [64, 64], n_eval_episodes 1                           SB3-contrib's ARS
//	population 64                                                ours: 10,000 episodes there, 16 in ARS
//
// These are for long runs with large generations; the shipped experiments have larger sigmas and
// rates.
//
// The differences:
//
//   - equal returns have the mean of their ranks; there their order is the sort's. A generation
//     whose members all reach the same return moves by the decay alone;
//   - the noise is drawn from keys instead of being a slice of a table of 250 million numbers;
//   - actions in a Box are not perturbed besides (ac_noise_std 0.01 there);
//   - a generation has a number of episodes and no number of env steps, and no limit on their
//     length but the environment's (wrappers.time_limit gives it one);
//   - observations are normalised by wrappers.normalize, as for other algorithms: by all of them
//     and not by one in a hundred, and the statistics grow while a generation is measured.
//
// # cma_es
//
// Hansen's CMA-ES (package cmaes, which says why gonum's does not take the steps) over all
// parameters together, minimising the negative fitness:
//
//	population 4 + ⌊3·ln n⌋ for n parameters, sigma 0.5   Hansen, arXiv 1604.00772; gonum has the latter
//	hidden [8]                                           ours
//
// It keeps an n×n covariance and updates it for each of the better members: policies of more than
// 2,048 parameters are refused. The centre is the mean, rounded to float32.
//
// # What is refused
//
// Environments whose episodes have no limit (Spec.MaxSteps 0), worlds of several agents, whose
// returns depend on each other's members, more environments than a generation has episodes,
// dropout, a policy with a memory, and privileged fields, for which there is no critic. Running
// statistics inside of a policy stay as they are.
//
// # Determinism and state
//
// Perturbations are drawn in blocks of 4,096 parameters with a key each, and a sum over members has
// the same order for every parameter, so the bits do not depend on the number of threads. A
// checkpoint has the centre, the strategy (Adam's moments, or mean, paths and factor of the
// covariance), and which episodes have ended with what returns, never members. A round allocates
// nothing, and neither does a step of openai_es.
//
// # How to add a strategy
//
// Implement strategy in a file of its own, beside its configuration in config.go, and give it a
// Kind in agent.go.
package es
