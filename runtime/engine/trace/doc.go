// Package trace runs a model so that every value on the way can be looked at.
//
// [Values] makes all values of the main graph outputs of the model and visits them in the order in
// which they are computed: [FirstNonFinite] looks for the first NaN or infinity, [Compare] for the
// first value on which two engines disagree. A model whose values take more memory than
// [Options].Budget is run several times, a part of its values each time.
//
// # Limits
//
// Values inside sub-graphs (If, Loop, Scan) are not visited; the node that holds the sub-graph is
// named instead. Sequences and optionals are passed over. Making a value an output keeps an engine
// from fusing the nodes around it, so a run that is watched may round differently from one that is
// not. A model that draws random numbers draws new ones in every run.
//
// # How to add a search
//
// Call [Values] with a function that looks at one [Visit]; return [ErrStop] from it when the search
// is over. What a report needs of earlier values must be copied, as a [Range] for instance: tensors
// are dropped after the visit.
package trace
