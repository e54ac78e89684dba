// Package population trains the whole of a hierarchical system: experts that evolve, and a router
// that chooses between them.
//
// # Turns
//
// Experts are the members of an evolve.Search: each trains in its environment for a generation, with
// hyper-parameters and, where the experiment has skills, a skill of its own. A strategy lets worse
// ones go on from better ones, and where their policies lie too close the worst restarts with
// another skill. After every so many generations each expert is written as a model after a short
// parity check, and the router trains for a turn in an environment of the kind meta, whose experts
// they are: it is frozen while they train, and they while it does. It may have several turns over
// the same experts (router.turns). The router goes on from its last turn, whoever its experts are
// now. Those of the last generation are published.
//
// Routers are members of a search as well, of one or of several, whose generations are the turns:
// all of a turn choose between the same experts, their hyper-parameters evolve, and the best on the
// validation split is published.
//
// In the seat of an expert that has diverged before it had a policy is the best of the others,
// until it has one: a router has as many experts in all of its turns. A router that diverges is
// what it was after the turn before, with the experts of that turn.
//
// # A directory
//
//	population.yaml   the document of the population
//	experts/          the directory of the search, see package evolve
//	router/           that of the routers' search
//
// A population that was stopped or killed goes on where it was, and ends with the bits of one that
// never stopped. Each expert's published policy lies in its run directory; after the last turn the
// best router is published in its own, and with its experts as one model (publish.Whole).
//
// # How to add a part
//
// Strategies of package evolve decide what experts learn from each other. Package meta defines
// decisions and their rewards. Something that trains beside both is a turn of its own: an
// interval from the last one's checkpoint, in a directory that says when it has ended.
package population
