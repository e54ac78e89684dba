// Package network builds what the networks of all algorithms have in common: inputs for the fields
// of an observation, the torso between inputs and heads, and the policy's distribution over an
// action space.
//
// # Inputs
//
// A [Frame] finds out what the fields of an observation are: a window of assets [W,N,F] with
// position [N] and cash [1] beside it, a window [W,F] of one series, or vectors. Discrete fields
// enter as one-hot vectors, bits and multi-discrete ones likewise, all others as float32. Inputs
// carry the fields' names, so that one torso may be fed twice in a graph under different names, as
// off-policy learners need for the observation before and after a step.
//
// # Torso
//
//	windows of assets   encoder per asset -> cross-asset layer -> [batch, N, D] for heads per asset, [batch, D] for the portfolio
//	window of a series  encoder, its features beside all other fields -> hidden layers -> [batch, D]
//	vectors             (encoder, if one is named) -> hidden layers -> [batch, D]
//
// Actor and critic have a torso each, or share one, as the algorithm says: by building below
// different scopes, or the same. [Torso.Build] appends all of it; an algorithm that puts something
// between encoder and hidden layers, such as a memory, appends Encode, Join and Hidden itself, over
// sequences if need be ([Torso.InputSequences]).
//
// Fields that the environment marks as central (envs.Field.Central) are read by no frame, and so by
// no policy. A torso whose configuration names them as privileged reads them, for critics, and
// [Torso.Acting] is the policy's, which declares no inputs for them.
//
// # Adapters
//
//	agent: {encoder: {kind: file, path: pretrained.onnx, output: features}, lora: {rank: 8, alpha: 16, target: ["*block1*"]}}
//
// trains low-rank adapters (package lora) beside the encoder's layers and the layers after it, over
// an encoder that stays as it begins: as its file has it, as --init does, or as it is drawn. It is
// the parameters encoder.*, once for actor, critics and target networks, which have adapters each,
// such as critic.lora.encoder.fc1.weight.A. Targets are names of the encoder's weights; without any
// all are adapted. Checkpoints have the encoder's SHA-256, and adapters of another are refused.
// What is published has the adapters merged and is as large as without. Agents whose setup has the
// same models.Bases, such as the seeds of one run, have equal encoders once in memory.
//
// # Layers that never change
//
// Where an encoder's first layers never change, because adapters are trained further up or nothing
// of it is trained (freeze: ["*encoder*"]), and windows lie in a table, SAC, TD3 and DDPG compute
// what these layers make of a window once, for all that act and learn in the process: see package
// prefix and [Frozen]. That is done where it saves a tenth of the products of acting, and 16
// operations for each number that is copied instead; "onnxrl train" says so, and how much. Memory
// is that of all windows of the table, at most encoder_cache_mib (1024) for each table. What is
// published is the whole network. An env step and an update of SAC in batches of 32 windows of 20
// bars of 5 assets, with a TimesNet of two blocks of 16, take 3.3 ms instead of 964 with a base
// that is frozen, and 632 instead of 985 with adapters in the last block (go test
// ./agents/offpolicy -run '^$' -bench Prefix, on two busy cores).
//
// # A user-supplied policy
//
//	agent: {kind: ppo, policy: {kind: file, path: my.onnx}}
//
// brings the whole policy as one ONNX graph, to outputs float32 [batch, D], or with more axes that
// are D together: a logit for each choice of each head, or a mean for each component of a Box. For
// SAC it may be twice that, means and log standard deviations; for DQN it is the value of each
// action. SAC and TD3 squash means by tanh, so a file that ends with tanh names the value before it
// as its output. No layer is added: the graph's weights are the parameters actor.policy.* (for DQN
// policy.*), training begins with them, train and freeze know them by these names, and what is
// published is the graph with its mask, sampler and bounds around. Encoder and hidden layers are
// then the critic's alone. Batches are symbolic, everything else is known or is what the
// environment says. The inputs and outputs are these; what is not needed is left out:
//
//	input   FIELD           [batch, …]           a field of the observation by its name, in its own element type: for markets window [batch, W, N, F], position [batch, N] and cash [batch, 1]
//	input   any other name  float32 [batch, F]   if it is the only one: all fields as one vector, as under Inputs, or the one window [batch, W, F] (package file)
//	input   action_mask     bool [batch, K]      which of the K choices of all heads are valid; it is applied to the logits in any case
//	input   state/NAME      float32 [batch, …]   what the policy remembers, 0 where an episode begins
//	output  next_state/NAME                      what it remembers after the step
//	output  features        float32 [batch, L]   what gSDE's noise comes from, usually the last layer's input (PPO, A2C)
//	output  any other name  float32 [batch, D]   logits, means or values; of several, output: names one
//
// A memory is trained by PPO, which puts the graph in a row recurrent.length times; the others
// refuse it. recurrent.kind: lstm gives the value a memory of its own beside it, none leaves it
// without. A2C, where the window lies in a table, encodes it once for the critic (share_windows),
// but a user-supplied policy reads each window by itself, at the cost of as many runs.
//
// # A policy from PyTorch
//
//	class Trader(nn.Module):  # three choices for each asset, from its window, what is held of it, and the cash
//	    def __init__(self, window, features, hidden=32):
//	        super().__init__()
//	        self.bars = nn.Linear(window * features, hidden)
//	        self.book = nn.Linear(2, hidden)
//	        self.last = nn.Linear(hidden, 3)
//
//	    def forward(self, window, position, cash):
//	        n, w, assets, f = window.shape
//	        bars = self.bars(window.permute(0, 2, 1, 3).reshape(n, assets, w * f))
//	        book = self.book(torch.stack([position, cash.expand(-1, assets)], 2))
//	        return self.last(torch.tanh(bars + book))
//
//	names = ["window", "position", "cash", "logits"]
//	torch.onnx.export(
//	    Trader(20, 11), (torch.zeros(2, 20, 5, 11), torch.zeros(2, 5), torch.zeros(2, 1)), "trader.onnx", dynamo=False,
//	    input_names=names[:3], output_names=names[3:], dynamic_axes={k: {0: "batch"} for k in names})
//
//	class Remembers(nn.Module):  # for observations that are vectors; LSTMCell has two states, and nn.LSTM is no single step
//	    def __init__(self, obs, actions, hidden=64):
//	        super().__init__()
//	        self.cell = nn.GRUCell(obs, hidden)
//	        self.last = nn.Linear(hidden, actions)
//
//	    def forward(self, obs, h):
//	        h = self.cell(obs, h)
//	        return self.last(h), h
//
//	names = ["obs", "state/h", "logits", "next_state/h"]
//	torch.onnx.export(
//	    Remembers(4, 2), (torch.zeros(2, 4), torch.zeros(2, 64)), "remembers.onnx", dynamo=False,
//	    input_names=names[:2], output_names=names[2:], dynamic_axes={k: {0: "batch"} for k in names})
//
// Trace with a batch of 2 or more: exporters take a batch of 1 for a constant. With dynamo=True,
// which writes the weights into a second file, give dynamic_shapes=({0: torch.export.Dim("batch")},
// …).
//
// A part of a policy is brought as features: encoder: {kind: file, path: my.onnx, output: …}, where
// output may name any value inside of a whole policy; hidden: [] puts the last layer right behind
// it, and onnxrl train --init my.onnx --init-map LAST.=actor.logits. --partial begins with the
// file's own last layer.
//
// # Distributions
//
// A [Distribution] is the part of a graph between the torso's features and log-probabilities. What
// acts outputs its parameters; a [Sampler] draws actions from them in Go, from the key of the
// round, so runs repeat and no graph holds randomness.
//
//	Discrete, MultiDiscrete, MultiBinary   one masked categorical choice per head; a bit is a head of two
//	Box                                    diagonal Gaussian with state-independent log standard deviation, or gSDE (Raffin et al. 2021, arXiv 2005.05719)
//
// An algorithm builds three kinds of graphs over the same parameters: the policy that is published
// ends with Mode and Output, the one that acts with Acting, and the one that learns with LogProb of
// recorded actions ([Frame.Stored]) and Entropy. A [Feed] copies observations and masks of a batch
// into the inputs of a program.
//
// Actions in a Box are recorded and evaluated as they were drawn (vector.Decision.Drawn); the
// environment receives them clipped to its bounds, in its shape and element type.
//
// # gSDE
//
// The noise is a product of the torso's last features and a matrix for each environment. Matrices
// are drawn where a rollout begins and every sde_sample_freq rounds of it, from the learner's key
// and the moment ([Moment]), so nothing of this has to be saved. The deviations' gradient stops
// before the features, as in Stable-Baselines3, whose use_expln, full_std: False and squash_output
// for on-policy algorithms are not offered. A user-supplied policy gives the features as an output;
// SAC does not read them and refuses gSDE there. With windows of assets every asset has a mean of
// its own by a shared layer, and the noise comes from the portfolio's features, as does the mean of
// a component that follows those of the assets and belongs to none.
//
// # How to add an action space
//
// Write a Distribution for it, give it a row in NewDistribution, and its draws one in
// [Sampler.Decide], and let the suite in network_test.go run over an environment with the space.
package network
