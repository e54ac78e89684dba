// Package population trains the whole of a hierarchical system: experts that evolve, and a router
// that chooses between them.
//
// # Turns
//
// Experts are the members of an evolve.Search: each trains in its environment for a generation,
// with hyper-parameters and, where the experiment has skills, a skill of its own; a strategy lets
// worse ones go on from better ones, and where their policies lie too close the worst begins anew
// with another skill. After every so many generations the experts are published as they are, and
// the router trains for a turn in an environment of the kind meta, whose experts they are: it is
// frozen while they train, and they while it does. The router goes on from its last turn, whoever
// its experts are now.
//
// # A directory
//
//	population.yaml   the document of the population
//	experts/          the directory of the search, see package evolve
//	router/turn-N/    a run directory for each turn of the router, see package run
//
// A population that was stopped or killed goes on where it was, and ends with the bits of one that
// never stopped. Each expert's published policy lies in its run directory; after the last turn the
// router is published, and with its experts as one model (publish.Whole).
//
// # How to add a part
//
// What experts learn from each other belongs to a strategy of package evolve, what a decision is
// and earns to package meta. Something that trains beside both is a turn of its own: an interval
// from the last one's checkpoint, in a directory that says when it has ended.
package population
