// Package vector steps many environments as one.
//
// # Vocabulary
//
// An [Env] holds B environments and one [Batch]: a structure of arrays whose rows belong to the
// environments, in order. [Open] makes the one that suits a factory; [New] makes one of ordinary
// environments in this process: each writes its observations straight into its rows, so a step
// copies nothing. The batch lies outside the Go heap, so a session may be bound to its tensors once
// and for all.
//
// Episodes go on by themselves: an environment whose episode ends is reset within the same step.
// Then Type, Reward, Discount and Info of its row tell of the step that ended the episode, Final
// holds its final observation (which a truncated episode's value is bootstrapped from), FinalMask
// what could be done there, and Obs already holds the first observation of the next episode. No
// step is wasted and no action ignored.
//
// # Windows
//
// A field that is a window over a table (envs.Window) is not copied. The batch has the number of
// the last row for each environment, and [Batch.Gather] copies windows where a learner wants them
// side by side. With Options.Windows they are copied at every step.
//
// # Several agents
//
// A [Multi] steps worlds of several agents, each of which has a row. Rows may be absent
// (Batch.Present), for longer or shorter, while the world goes on; wrappers, normalisation and
// views leave them as they are.
//
// # What is always checked
//
// An observation, a reward or a discount that is not finite, a discrete observation outside its
// choices, a mask without a valid action, and a tensor that the environment put in the place of the
// one it was given, are errors that name environment, episode, step and field. Options.Check
// compares all else with the spec too.
//
// # Wrappers
//
// Wrappers of single environments (package wrap) go around vectors too: where a factory's
// environments come as whole vectors, [Open] steps the vector once and then lets the wrappers of
// each row see its part, so that they cost no round trip to another process. What they show is the
// same, bit for bit, as around environments that are stepped one by one.
//
// A [View] is a batch that shows another one with some observations replaced, and with rewards of
// its own; Batch.Earned then still has those of the environments. [Normalized] is made of it.
//
// # Normalisation
//
// A [Normalized] scales the observations and rewards of another vector by running statistics, as
// Stable-Baselines3's VecNormalize does. After each step, in this order:
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
// Rows that are absent (Batch.Present) show zeros here, too, and no statistics take them in:
// those of observations are over the rows that are present, those of returns over the rows that
// took a step.
//
// # Frozen statistics
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
// Give wrap.Normalize a field with a default that changes nothing, do it in Normalized.step, add what it
// remembers to [Statistics], and what a served policy needs to wrap.Normalizer; then package publish has
// to put it into graphs.
//
// # Determinism
//
// Environment i draws its e-th episode from key.Split("episode", i, e). Every result is the same
// for any number of workers.
//
// # How to add an implementation
//
// Implement Env for what does not fit one environment after the other: other processes, for
// instance. Keep to the rules above for episodes that
// follow each other and for keys: learners rely on them. A [Frame] has the batch to fill. Make the
// factory a [Maker], so that Open finds it.
package vector
