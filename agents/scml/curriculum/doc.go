// Package curriculum makes an agent of SCML's Standard league from nothing: tournaments of others,
// what can be learnt from their logs, training against a pool of rivals, and the proof of what came
// of it.
//
// # Stages
//
//	demonstrations  a native tournament of agents by rule, with all its logs
//	samples         the data sets that are made of the logs, package samples
//	pretrain        the layers that have an offline algorithm learn from them
//	rounds          the layers train, one after another, each below or above the others as they are
//	agent           the published agent, a directory as package scml opens it
//	evaluation      a tournament of it in worlds that nobody has seen, with intervals
//
// After each round the agent plays a tournament, the trial, against the best so far, which begins as
// the baseline, and the rivals of the document, in other worlds each time. If it is worse by more
// than [Rollback] allows, in score, breaches, overflow or wins, than the best, or than what the round
// began with, it is rolled back: the next round goes on from the best, and from nothing where that is
// the baseline. Else it becomes the best if it scores more than that did beside it. After
// Trial.Patience rounds without a better one training ends. The best is published: where that is the
// baseline, an agent without layers.
//
// The agent that the round began with is compared by how far each was from the best in its own trial.
//
// The pool begins with Pool.Rivals. What the agent was when it became the best joins it, up to
// Pool.Selves of them, the newest; and where validation, which is played against the pool, has
// risen while the trial has not, which is what over-fitting to the pool looks like, the next of
// Pool.Reserve does. Ratings are Elo's by all worlds of the evaluation: who of two scored more in a
// world has won a game.
//
// # A directory
//
//	scml.yaml           the document
//	demonstrations/     the folder of the tournament
//	samples/            macro for the manager, residual for the executor
//	pretrain/LAYER/     a run directory
//	rounds/0001/LAYER/  a run directory, an interval from the last one's checkpoint
//	rounds/0001/agent/  the agent after the round; after-LAYER/ what it was before
//	rounds/0001/trial.json
//	rounds.jsonl        a [Round] for each
//	evaluation.json
//	agent/              the published agent
//
// A curriculum that was stopped or killed goes on where it was, and ends with the bits of one that never
// stopped.
//
// onnxrl ablate, given its directory, says what each layer of an agent is worth.
//
// # How to add a layer
//
// A field of [Config] and a line in layers: the files and environments follow from its name.
package curriculum
