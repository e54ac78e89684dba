// Package agenttest is what tests of algorithms have in common. Only tests import it.
//
// # Worlds
//
// [Toy] environments answer at random, in every kind of observation and action that an algorithm
// can meet ([Box], [Wide], [Choice], [Series], [Assets]), so that everything is gone through in a
// few rounds. [Agent], [Actor] and [Training] make an agent and drive it as a program does.
//
// # Suites
//
// Every algorithm has a table of variants: configurations and environments that between them go
// through everything.
//
//	Resume            a run that is saved and goes on in a fresh agent has the bits of one that never stopped
//	NoAllocations     rounds and learner steps allocate nothing
//	PolicyIsTheActor  the exported network does what the greedy actor does
//	BadConfigs        documents are refused with all of their problems
//	Misuse            callers that do not keep to the order get errors
//	LoRA              adapters over an encoder that stays as it is, see there
//	OrthoInit         the layers of policy and value begin as PyTorch's do
//
// Those for algorithms of package offpolicy look into their learner: WarmUp, Metrics,
// NothingFlowsAcross, SaturatedActions, WeightsFromFiles, and UpdatesAgree with another
// implementation's. Suites count what they compared and fail when that is too little.
//
// # How to add an algorithm
//
// Write its table of variants and a test of one line for each suite. How its own mathematics is
// right is for tests of its own.
package agenttest
