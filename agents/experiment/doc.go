// Package experiment is the document that describes a training run: an environment, an agent, and
// how one is trained and evaluated in the other.
//
//	seed: 42
//	env: {kind: trading, …}
//	wrappers: {time_limit: 200, normalize: {obs: true}}
//	agent: {kind: a2c, …}
//	train: {total_env_steps: 1000000, …}
//	eval: {…}
//	tune: {trials: 50, space: {agent.gamma: {kind: uniform, low: 0.9, high: 0.999}}}
//	publish: {when: end, observations: 10000, allow_ties: false}
//
// [Kinds] is the value that lists everything a configuration can name. Package kinds has what comes
// with onnxrl; a program with environments, algorithms or encoders of its own appends them.
package experiment
