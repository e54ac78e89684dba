// Package envs says what an environment is: what it may be asked, what it answers, and how it
// describes both.
//
// # Vocabulary
//
// An [Env] is a world with one decision maker. Reset begins an episode and Step advances it; both
// write a [TimeStep], which the caller owns and reuses. A TimeStep carries a step type, a reward
// and a discount, as in dm_env (Muldal et al. 2019, "dm_env: A Python interface for reinforcement
// learning environments"). The discount settles what other interfaces need two flags for:
//
//   - terminated: the last step, discount 0. Nothing follows, so no value is bootstrapped;
//   - truncated: the last step, discount above 0. The episode was cut off (a time limit, the end of
//     the data), and the value of its final observation counts.
//
// Beside the reward a step may have costs, which are to be kept below limits and not traded against
// the reward; the spec names them.
//
// A [Spec] describes observations, actions, masks and diagnostics before the first step: names,
// shapes, element types and bounds, each a [Space]. Spaces are [Discrete], [MultiDiscrete],
// [MultiBinary] and [Box]. Observations are a [Dict], an ordered list of named spaces; a nested
// dictionary is flattened into names with slashes ("portfolio/cash").
//
// # Memory
//
// An environment writes observations into the tensors it finds in the TimeStep, which may be rows
// of a larger batch (package vector), and allocates nothing per step. An observation that is a run
// of consecutive rows of a constant table, such as a window of market features, is not copied at
// all. Its field has a [Window], and the TimeStep gets a view and the number of the window's last
// row. Replay needs to keep only that number, and a learner may compute something once per row
// instead of once per window.
//
// # Randomness, time and data
//
// All randomness of an episode descends from the key given to Reset. An environment never reads a
// clock, and never a file by itself: its data are handed to its constructor. The same key and the
// same actions give the same bits.
//
// # How to add an environment
//
//  1. Write a package below envs with a type that implements Env and a Config with defaults and
//     Validate; name the source of the dynamics and every deviation.
//  2. Export its [Kind], and add it to the list of the program that shall know it (package
//     agents/experiment/kinds for onnxrl).
//  3. Call envtest.Run from a test. Example_environment of package agents is one of 73 lines that
//     passes.
//  4. Implement [Saver] when its episodes are long, so that runs resume in the middle of one.
//
// # Several agents
//
// A world in which several agents act at once is a [Multi], and becomes rows of a vector: row w·k+i
// is agent i of world w. So learners of environments learn from agents, one by one, and nothing of
// this concerns a world of one agent. Each row has a reward, a discount, a mask and costs of its
// own. All agents have one Spec and share one policy, unless the observation says who is who and
// the policy makes use of it.
//
// Their number may change. Agents names all that there can ever be, and a row whose agent is not
// there is absent (vector.Batch.Present): it is padded with zeros, no learner learns from it, and
// no statistics count it. Agents may come in any number of episodes within one of the world, as the
// threads of negotiations do that begin and end while a factory goes on.
//
// Roles are a matter of what is observed. A discrete field, by convention called role (and agent,
// for the number among all), tells a policy which part it plays. Masks close the actions that a
// role does not have. Observations are as long as the longest, with zeros where a role has
// nothing to see. Package pettingzoo does so for worlds of others.
//
// A field that is known where policies are trained and not where they act, such as the state of the
// world or what the other agents see, is central ([Field].Central). Each row has its own copy,
// which may say different things to different agents. No policy ever has an input for it, so what
// is published needs none; critics read it where their configuration says so (central: true of
// agents/ppo, which agents/mappo has).
//
//  1. Implement Multi: fixed names in Agents, one Spec, and in Reset and Step the steps of those
//     agents that have one, with present[i] set. An agent leaves with a step of type Last, and
//     begins with one of type First, also when it comes back. Leave alone what is not present.
//  2. Implement [MultiSaver] for runs that resume in the middle of an episode.
//  3. Implement [MultiFactory], whose New is AgentOf(NewMulti(…)), and return it from the Open of
//     a Kind. vector.Open, and with it training and evaluation, then step whole worlds; what needs
//     a single environment, such as the proof of a policy that is published, has [AgentOf].
//     train.num_envs counts rows, and is a multiple of the number of agents.
//  4. Call envtest.Run for AgentOf your world, and compare a short run of a vector with the world
//     driven by hand; package cover is an example of a world, with everything that is said here.
//
// Worlds in which agents are opponents have scripted players ([Scripted]), and package versus makes
// an environment of one of their agents whose others are played by a pool of such players and of
// models. Where agents take turns, who waits has one valid action.
//
// Env steps are rounds times rows, whether rows are present or not.
package envs
