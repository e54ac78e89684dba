// Package replay keeps transitions for learners that learn from them more than once.
//
//	Uniform      a ring of the newest transitions, sampled uniformly, with n-step returns (SAC, TD3, DQN)
//	Prioritised  the same with proportional priorities in a sum tree (Schaul et al. 2016, arXiv 1511.05952)
//	Shared       the store of a population: many writers and readers, behaviour policies, spill to disk
//
// A transition is obs_tm1, a_tm1, r_t, discount_t, obs_t. discount_t is the environment's, 0 where the episode terminated and 1 where it was cut off; a learner multiplies its own. Observations are kept once: obs_t is a view of the following row, except at an episode's end, whose final observation has a row of its own.
//
// [Recorder] fills a buffer from the batches of an environment; it is an agents.Recorder.
package replay
