// Package transfer starts a network from parameters that were trained elsewhere: it copies them by
// name and shape into freshly drawn ones, and says what it copied and what it did not.
//
// # Sources
//
// [Load] reads, by what the reference is:
//
//	FILE.onnx         its weights, as package models tells them from constants, wherever their data lies
//	FILE.safetensors  its floating-point arrays
//	a checkpoint      the arrays …/params/<role>/<name>, whatever scope they are in
//	a run directory   its checkpoint with the highest score or, where none has a score, its newest
//	anything else     a reference to an artefact, see package artifact
//
// A name that exists as a file or directory is taken as that; "STORE//NAME" is an artefact
// wherever STORE is a store.
//
// # Matching
//
// A parameter of the network takes the array of the same name and shape; half and double precision
// are converted. [Rename] replaces a prefix of the source's names by another. Without one, and when
// no name is the same, a prefix is looked for that the source lacks and under which all its names
// are in the network (an encoder trained as a model of its own, "conv1.weight", is
// "encoder.conv1.weight" in an agent), or the other way round. It is used if it is the only one,
// and reported.
//
// [Source.Apply] changes nothing unless it succeeds, and succeeds only if every parameter of the
// network is matched. With Options.Partial one is enough.
//
// # How to add a kind of source
//
// Write a function like loadSafetensors that returns arrays, and choose it in Load by what a
// reference looks like.
package transfer
