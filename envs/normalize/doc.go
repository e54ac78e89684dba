// Package normalize scales the observations and rewards of a vector of environments by running
// statistics, as Stable-Baselines3's VecNormalize does.
//
// # What happens
//
// [Env] is a vector.Env around another one. After each step, in this order:
//
//	statistics    of every dimension of every field, over all environments, take in the observations that the next actions are decided on (those of new episodes included)
//	observations  z = (x − mean)/√(var + epsilon), limited to ±clip_obs; final observations of episodes too, by the same statistics
//	rewards       the discounted return R ← γ·R + r of each environment is taken into statistics of its own, and the reward becomes r/√(var(R) + epsilon), limited to ±clip_reward
//	new episodes  R ← 0 where an episode has ended, in whichever way
//
// Known mistakes that a learner does not forgive, each of which a test here holds off: one mean and
// deviation for all dimensions; dividing by the deviation of rewards instead of that of returns; a
// mean subtracted from rewards; a truncated episode whose return goes on; recording raw
// observations where the policy saw normalised ones.
//
// Batch.Earned and the returns of Batch.Ended remain those of the environments: reports tell what
// was really earned. Actions, masks, windows over tables and all fields that are not normalised are
// shared with the vector inside and never copied.
//
// Rows that are absent (vector.Batch.Present) show zeros here, too, and no statistics take them in:
// those of observations are over the rows that are present, those of returns over the rows that
// took a step.
//
// # Freezing
//
// A policy is evaluated, exported and served with the statistics of a moment, as [wrap.Normalizer]
// values, one for each field. [Frozen] shows a batch of raw observations through them, for actors.
// Nothing of what is evaluated feeds statistics.
//
// # Deviations from VecNormalize
//
//   - Means of a batch are computed in float64 where NumPy computes in the observations' float32;
//     statistics differ from its in the last digits of float32.
//   - Rewards stay float64.
//   - Off-policy learners with a replay of their own keep normalised observations there, as of the
//     time that they were made. Stable-Baselines3 keeps raw ones and normalises at sampling time,
//     which is done here, too, where several learners share a replay (replay.Normalized).
//
// # How to add a way to scale
//
// Give wrap.Normalize a field with a default that changes nothing, do it in Env.step, add what it
// remembers to [State], and what a served policy needs to wrap.Normalizer; then package publish has
// to put it into graphs.
package normalize
