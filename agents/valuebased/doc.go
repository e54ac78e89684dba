// Package valuebased is the family of algorithms that learn values of discrete actions from a replay
// and act by the best one: networks, actor, replay, target network, learner and its state. The
// algorithms, packages dqn and qrdqn, have what they differ in: configuration, loss and the number
// of numbers for each action ([Design]).
//
// # One learner step
//
// Every train_freq rounds, once learning_starts env steps are behind it, the learner takes
// gradient_steps gradient steps on samples of the replay. Their targets are made of the numbers that
// the algorithm has for each action ([Design].Numbers), one or several, k:
//
//	yₖ = r + γ·d·z⁻ₖ(s', argmaxₐ q⁻(s', a))   z⁻ are the target network's numbers, and q⁻, their mean,
//	                                          its values; actions that the mask excludes do not count
//	yₖ = r + γ·d·z⁻ₖ(s', argmaxₐ q(s', a))    with double: true
//	L = 1/B·Σ w·loss(z(s, a), y)              w is 1, or the importance weight
//
// With n_steps above 1, r is the discounted sum of the rewards, d the product of the discounts and
// s' the observation after them. A discount is 0 where an episode terminated and 1 where it was cut
// off, and then s' is the final observation. The gradient is clipped by its norm over all
// parameters.
//
// Every target_update_interval env steps the target network becomes, or with tau below 1 moves
// towards, the online one. It does not change during a learner step, so the targets of several of
// its batches are computed in one run, which is faster and changes nothing, except with double and
// with prioritised replay, whose samples or targets depend on the gradient steps before.
//
// # Exploration
//
// An action is random with a probability that falls straight from exploration_initial_eps to
// exploration_final_eps over exploration_fraction of the run, and is always random in the first
// learning_starts env steps. Random actions are uniform over the valid ones. Without the length of
// the run (agents.Setup.TotalEnvSteps), the probability stays the initial one.
//
// # Networks
//
// Observations are what package network takes: vectors, discrete fields, windows of a series, with
// an encoder if one is named, such as a user-supplied model (encoder: {kind: file}). Hidden layers
// follow, with PyTorch's initialisation of weights and biases, and a linear layer to one value per
// action or, duelling, V + A − mean A. The policy network outputs the best valid action and, as
// q_values, all values.
//
// # State
//
// A learner is saved between rounds, the replay included. Continuing from there equals never having
// stopped, bit for bit.
//
// # Deviations from Stable-Baselines3
//
//   - With several environments each has a coin of its own for exploring; there one coin decides
//     for all.
//   - The output layer's bias begins at 0.
//   - Masks are respected in acting, in exploring and in the targets; there are none there. The
//     value of a truncated episode's final observation is the maximum over what could be done there
//     (vector.Batch.FinalMask).
//   - The final observation of an episode takes the place of a transition in the replay.
//   - A transition that has fewer than n_steps successors in the replay is sampled with the rewards
//     there are.
//
// prioritised draws one sample from each of B equal ranges of the sum of priorities, and beta rises
// with the run's progress.
//
// # How to add an algorithm of the family
//
// Write a configuration that has [Settings] inline, and a [Design] of it, as package qrdqn does; see
// package agents for what names it. Other targets are computed in [Learner.Evaluate].
package valuebased
