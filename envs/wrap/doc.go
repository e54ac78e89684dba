// Package wrap changes environments from the outside. A wrapper is an envs.Env around another one;
// it owns it, and it can be saved when the other can.
//
//	TimeLimit      truncates episodes, with the final observation and its discount kept
//	FrameStack     shows the last observations at once, the oldest first
//	Skill          adds a vector to the observation that every episode draws anew
//	Action         lets the agent act in [-1, 1], or choose any numbers that are clipped
//
// [Config] is the section wrappers of a run's document, and [Apply] puts what it asks for around
// every environment of a factory, in the order of the table from the inside. Normalize, the last
// key of the section, is for whole vectors: its numbers ([Running], [Normalizer]) are here, and
// package vector applies them.
//
// Environments that come as whole vectors, such as those of processes, are still stepped as one:
// vector.Open puts the wrappers around the rows of the vector ([Wrapper]), and a time limit is the
// vector's own.
//
// The sources are Gymnasium's wrappers TimeLimit, FrameStackObservation, RescaleAction and
// ClipAction, and Stable-Baselines3's VecFrameStack. Deviations: a stack leaves windows over a
// table and discrete fields as they are; Gymnasium asserts where RescaleAction is given an action
// beyond [-1, 1], and here that is an envs.ActionError.
//
// # How to add a wrapper
//
// Embed envs.Env, override what changes, give it an Unwrap method, and forward SaveState and
// LoadState through envs.SaveState and envs.LoadState with the wrapper's own state around. One that
// changes actions has a method inward that [Inward] finds, which returns the action for the inside
// and changes nothing else. One that ends or begins episodes by itself has to be done by vectors,
// as a time limit is. Run envtest.Run over a wrapped environment. If documents shall ask for it,
// give it a key in Config and a line in the function wrap.
package wrap
