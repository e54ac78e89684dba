// Package served acts with a policy that is an ONNX model: an exported agent, an artefact, or any
// file with the same inputs and outputs.
//
// # What the model must be
//
// It has the form that package agents describes for policy networks, parameters included: inputs
// named after the fields of the observation, and [agents.MaskInput] where actions are masked; an
// output [agents.ActionOutput] and, where it has one, [agents.ValueOutput]. It may leave fields of
// the observation unused. Every input has a symbolic batch in front, and no other extent is
// symbolic.
//
// # Scaled and unscaled
//
// An exported agent takes observations as they come and scales them itself, while an environment
// that was made for training may show scaled ones. [Options.Tables] then has, for a field that is a
// window, the table with the unscaled rows, and windows are taken from there.
//
// # Memory
//
// A model that remembers lists its states in its metadata, see models.State. An Actor keeps them
// for every row, from the first step of an episode on; whoever uses a Policy calls [Policy.Begin]
// and [Policy.Advance].
//
// # Two ways to use it
//
// A [Policy] is the model with fixed buffers: fill [Policy.Input], call [Policy.Run], read
// [Policy.Output]. An [Actor] joins one to environments; it is an agents.Actor for batches, and
// [Actor.Observe] takes single steps. Neither allocates.
//
// # How to add a kind of action
//
// Nothing is to be done here: actions are copied as the model gives them. Its space needs a case in
// envs.MaskLen if it can be masked.
package served
