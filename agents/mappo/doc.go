// Package mappo is multi-agent PPO (Yu et al. 2022, "The Surprising Effectiveness of PPO in
// Cooperative Multi-Agent Games", arXiv 2103.01955) and independent PPO (de Witt et al. 2020, arXiv
// 2011.09533), for worlds of several agents (envs.Multi).
//
//	agent: {kind: mappo}
//	agent: {kind: ippo}
//
// Both are package ppo with other defaults: the rows of a batch are the agents of all worlds, and
// their samples are learnt from as those of environments are. What is said there of masks, memory,
// constraints, schedules, metrics and checkpoints holds here.
//
// # What is central
//
// The value of MAPPO reads the fields that the environment marks as central (envs.Field.Central),
// beside those of the agent itself: what the paper calls an agent-specific global state. No policy
// has an input for them, whatever a configuration says; what is published is the policy alone,
// which needs nothing but what its agent sees. IPPO is the same with central: false.
//
// # Agents that are not there
//
// A row whose agent has died, or has not come yet, is absent: it is in no loss, and all means, the
// averages of returns among them, are over the agents that act (active masks).
//
// # Sharing
//
// All agents have one policy and one value, unless policies_by names a discrete field, such as
// agent or role: then every value of it has layers of its own, in one graph, and the field selects
// whose are taken. Where agents are to do different things with the same parameters, they need to
// see who they are.
//
// # Defaults
//
// Settings are those of the authors' code (marlbenchmark/on-policy, config.py): learning rate 5e-4,
// Adam with ε = 1e-5, 15 epochs of one minibatch, clip range 0.2 for ratios and values, of whose
// losses the larger one counts, Huber's loss with δ = 10, values normalised by moving averages with
// β = 0.99999, entropy coefficient 0.01, gradient norm 10, γ = 0.99, λ = 0.95, rollouts of 200
// rounds, two hidden layers of 64 with ReLU, LayerNorm of their input and behind each, orthogonal
// weights with gain 0.01 before the policy. recurrent: {kind: lstm} has sequences of 10 and 64
// units. PopArt is off, as there; normalize_value: popart has it.
//
// # Deviations
//
//   - One optimiser has policy and value, and the gradient's norm is limited for both together; the
//     authors have two, and limit apart. Without a limit updates are theirs, number by number
//     (TestUpdatesOfTheAuthorsOfMAPPO of package ppo), but for the next point.
//   - Advantages are normalised within each minibatch, which is the whole rollout here, by the
//     deviation of a sample (n − 1) + 1e-8; theirs over the rollout by that of a population + 1e-5.
//   - A memory is an LSTM between the observation and the hidden layers; theirs a GRU behind them.
//     It is off by default: there it is on for "rmappo" and off for "mappo".
//   - An episode that is cut off is bootstrapped from its last observation, as in package ppo;
//     there only with use_proper_time_limits.
//
// # How to add to it
//
// A term of the loss is added in package ppo. Another multi-agent algorithm over its own rollouts
// is a package beside this one, over package onpolicy.
package mappo
