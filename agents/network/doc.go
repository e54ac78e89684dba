// Package network builds what the networks of all algorithms have in common: inputs for the fields of an observation, the torso between inputs and heads, and the policy's distribution over an action space.
//
// # Inputs
//
// A [Frame] finds out what the fields of an observation are: a window of assets [W,N,F] with position [N] and cash [1] beside it, a window [W,F] of one series, or vectors. Discrete fields enter as one-hot vectors, bits and multi-discrete ones likewise, all others as float32. Inputs carry the fields' names, so that one torso
// may be fed twice in a graph under different names, as off-policy learners need for the observation before and after a step.
//
// # Torso
//
//	windows of assets   encoder per asset -> cross-asset layer -> [batch, N, D] for heads per asset, [batch, D] for the portfolio
//	window of a series  encoder, its features beside all other fields -> hidden layers -> [batch, D]
//	vectors             (encoder, if one is named) -> hidden layers -> [batch, D]
//
// Actor and critic have a torso each, or share one, as the algorithm says: by building below different scopes, or the same. [Torso.Build] appends all of it; an algorithm that puts something between encoder and hidden layers, such as a memory, appends Encode, Join and Hidden itself, over sequences if need be ([Torso.InputSequences]).
//
// # A policy of one's own
//
//	agent: {kind: ppo, policy: {kind: file, path: my.onnx}}
//
// brings the whole policy as one ONNX graph, under the rules of package file: float32 [batch, F], all fields of the observation as one vector, or the one window, to [batch, D]. D is a logit for each choice of each head, or a mean for each component of a Box; for SAC it may be twice that, means and log standard deviations; for DQN it is the value of each action. SAC and
// TD3 squash means by tanh, so a file that ends with tanh names the value before it as its output. No layer is added: the graph's weights are the parameters actor.policy.* (for DQN policy.*), training begins with them, train and freeze know them by these names, and what is published is the graph with its mask, sampler and bounds around. Encoder and hidden layers are then
// the critic's alone.
//
// Where there is more to an observation than a policy of one's own reads (windows of assets beside position and cash, memory, gSDE), bring the features instead, encoder: {kind: file, path: my.onnx, output: …}, where output may name any value inside of a whole policy; hidden: [] puts the last layer right behind it, and onnxrl train --init my.onnx --init-map LAST.=actor.logits. --partial
// begins with the file's own last layer.
//
// # Distributions
//
// A [Distribution] is the part of a graph between the torso's features and log-probabilities. What acts outputs its parameters; a [Sampler] draws actions from them in Go, from the key of the round, so runs repeat and no graph holds randomness.
//
//	Discrete, MultiDiscrete, MultiBinary   one masked categorical choice per head; a bit is a head of two
//	Box                                    diagonal Gaussian with state-independent log standard deviation, or gSDE (Raffin et al. 2021, arXiv 2005.05719)
//
// An algorithm builds three kinds of graphs over the same parameters: the policy that is published ends with Mode and Output, the one that acts with Acting, and the one that learns with LogProb of recorded actions ([Frame.Stored]) and Entropy. A [Feed] copies observations and masks of a batch into the inputs of a program.
//
// Actions in a Box are recorded and judged as they were drawn (agents.Decision.Drawn); the environment receives them clipped to its bounds, in its shape and element type.
//
// # gSDE
//
// The noise is a product of the torso's last features and a matrix for each environment. Matrices are drawn where a rollout begins and every sde_sample_freq rounds of it, from the key of the round. A learner is saved between rollouts only, so nothing of this has to be saved. The deviations' gradient stops before the features, as in Stable-Baselines3,
// whose use_expln, full_std: False and squash_output for on-policy algorithms are not offered. With windows of assets every asset has a mean of its own by a shared layer, and the noise comes from the portfolio's features.
//
// # How to add an action space
//
// Write a Distribution for it, give it a row in NewDistribution, and its draws one in [Sampler.Decide], and let the suite in network_test.go run over an environment with the space.
package network
