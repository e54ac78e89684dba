// Package dqn is deep Q-learning (Mnih et al. 2015, "Human-level control through deep reinforcement
// learning") over discrete actions, in the form of Stable-Baselines3, with what has become of it
// since: double Q-learning (van Hasselt et al. 2016, arXiv 1509.06461), the duelling network (Wang
// et al. 2016, arXiv 1511.06581), returns of n steps and prioritised replay (Schaul et al. 2016,
// arXiv 1511.05952), each an option that is off by default. It is of the family of package
// valuebased, which see for acting, replay, networks and state.
//
// # One update
//
//	y = r + γ·d·maxₐ q⁻(s', a)       q⁻ is the target network
//	L = 1/B·Σ w·h(q(s, a) − y)       h is Huber's loss with threshold 1
//
// With conservative_weight w, whose kind is discrete_cql (Kumar et al. 2020, arXiv 2006.04779), the
// loss has w·1/B·Σ w·(log Σ exp q(s, ·) − q(s, a)) more, for data sets; its defaults are d3rlpy
// 2.8's, and so are its updates, number by number (d3rlpy_test.go), but for the target network,
// which follows before an update here and after it there.
//
// # Defaults, and deviations from Stable-Baselines3
//
// Defaults are those of stable_baselines3.DQN 2.x, and metrics have its tags. Deviations are the
// family's.
package dqn
