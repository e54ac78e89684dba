// Package evolve trains populations: members with hyper-parameters of their own, which from
// generation to generation take over the weights and the hyper-parameters of better ones.
//
// # Vocabulary
//
// A [Member] is one of the population after a generation: its score, its hyper-parameters, and the
// member of the generation before whose weights it began with. Between two generations a [Strategy]
// decides what each of them takes ([Take]): whose weights, whose hyper-parameters, and what these
// become. It trains nothing and knows no learner.
//
// # Strategies
//
//	mf_pbt         sub-populations that evolve at different frequencies (arXiv 2506.03225), see [MFPBT]
//	pbt            truncation with Ray Tune's defaults, see [PBT]
//	pb2            truncation, and hyper-parameters by a Gaussian process, see [PB2]
//	random_search  nobody takes anything, see [RandomSearch]
//
// All randomness comes from a stream that is handed over, and what a strategy decides depends on
// nothing but the history: a search that goes on decides as one that never stopped.
//
// # Diversity
//
// [MAPD] is how far the policies of a population lie apart in what they do.
//
// # How to add a strategy
//
// Write a type with yaml tags, Validate, Check and Next, and add it with its defaults to the table
// of strategies. Draw from the stream that is handed over, a number that does not depend on scores
// where that is possible, and from nothing else. Test who takes what of whom on random populations.
package evolve
