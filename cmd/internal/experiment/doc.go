// Package experiment is the document that describes a training run: an environment, an agent, and how one is trained and evaluated in the other. It holds the lists of everything that such a document can name.
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
// # How to add a kind
//
// Add its Kind to the list in kinds.go.
package experiment
