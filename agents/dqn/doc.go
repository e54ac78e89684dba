// Package dqn is deep Q-learning (Mnih et al. 2015, "Human-level control through deep reinforcement
// learning") over discrete actions, in the form of Stable-Baselines3, with what has become of it
// since: double Q-learning (van Hasselt et al. 2016, arXiv 1509.06461), the duelling network (Wang
// et al. 2016, arXiv 1511.06581), returns of n steps and prioritised replay (Schaul et al. 2016,
// arXiv 1511.05952), each an option that is off by default.
//
// # One learner step
//
// Every train_freq rounds, once learning_starts env steps are behind it, the learner takes
// gradient_steps gradient steps on samples of the replay:
//
//	y = r + γ·d·maxₐ q⁻(s', a)       q⁻ is the target network; actions that the mask excludes do not count
//	y = r + γ·d·q⁻(s', argmaxₐ q(s', a))   with double: true
//	L = 1/B·Σ w·h(q(s, a) − y)            h is Huber's loss with threshold 1; w is 1, or the importance weight
//
// With conservative_weight w, whose kind is discrete_cql (Kumar et al. 2020, arXiv 2006.04779), the
// loss has w·1/B·Σ w·(log Σ exp q(s, ·) − q(s, a)) more, for data sets; its defaults are d3rlpy
// 2.8's, and so are its updates, number by number (d3rlpy_test.go), but for the target network,
// which follows before an update here and after it there.
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
// # Defaults, and deviations from Stable-Baselines3
//
// Defaults are those of stable_baselines3.DQN 2.x, and metrics have its tags. Deviations:
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
// # How to add another kind of target
//
// Compute it in learner.sample from what learner.targetQ outputs, or give the graph of addTrain in
// graph.go another loss; compare it with a formula in learner_test.go.
package dqn
