// Package prefix computes once what networks make of windows by parameters that never change.
//
// A window is a run of consecutive rows of a constant table, so there are as many windows as rows,
// and learners see the same ones again and again. Where the first layers of an encoder are frozen,
// because adapters train further up or nothing of it trains, what these layers make of a window is
// a constant of its last row.
//
// [Of] splits networks over one set of parameters: it finds the nodes that depend on nothing but a
// window, constants and parameters that stay as they are, and returns the networks without them,
// with inputs for the values that cross. The nodes that went are [Part]s, one for each encoder. A
// value crosses only where each row of a batch has its own piece of it. What is cheap to compute
// from other values that cross, or from the window itself, is computed again instead of being kept.
//
// A [Cache] has one compiled part and what it has made of the windows of a table, by row. [Caches]
// holds them for a process, found by content: the part with its weights, and the table. All
// networks, agents and environments over equal ones use one cache, and each row is computed once.
//
// # Bits
//
// Rows are computed in blocks that begin at fixed rows ([Block] each), so a row's values do not
// depend on who asked for which rows before, nor on how many ask at once. Against the network as
// one graph they differ by how an engine fuses and rounds.
package prefix
