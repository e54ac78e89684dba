// Package onpolicy is what algorithms that learn from rollouts of their own policy do alike, so
// that each of them says only what is its own: its loss, its minibatches and its updates.
//
//   - [Networks] are the graphs of such an agent over the parameters of one policy.
//   - [Forward] runs the acting network on what n environments show; [Actor] draws actions from it.
//   - [Rollout] records a number of rounds and the values that returns end with.
//   - [Learner] has parameters, gradients, optimiser, advantages and checkpoints.
//
// # Dropout
//
// Graphs that act in rollouts and that learn from them, [Networks.Training], have dropout masks as
// inputs. They are drawn when a rollout begins, once for each environment, from a seed that follows
// from the learner's key, the version of the parameters and the environment's number. Its rounds,
// the values that returns end with and every pass of the update have them alike ([Masks]), so that
// the policy that learns is the one that acted: before the first gradient step ratios are 1. The
// seeds are a part of decisions, checkpoints and unrolls ([Rollout].Seeds). Greedy and sampling
// actors and published policies have no dropout.
//
// # Absent rows
//
// Rows that were absent in a round have a place in the rollout and no sample there: a learner asks
// [Rollout.Has], or takes the others by [Rollout.Select].
//
// # How to add an algorithm
//
// Embed [Learner] in its learner. Draw the graphs, then call [Learner.Build], make the programs
// (those in Programs are closed with the learner), the rollout by [NewRollout] and the optimiser by
// [Learner.NewOptimizer]. Step computes advantages from the rollout, runs the programs, calls
// [Learner.Descend], counts Updates and clears the rollout. Inputs of the acting network that are
// no observations, such as the states of a memory, are an [Inputs].
package onpolicy
