// Package hostile makes models and inputs that a kernel may not survive: it takes one that works
// and puts hostile numbers, one place at a time, where an exporter's bug or an attacker would.
//
// A [Base] is a model with the inputs of one run. [Variants] lists what can be done to it: every
// numeric attribute of every node, whether the node carries it or its operator's schema only
// allows it, gets every hostile number in every position and lists of wrong lengths; every input
// gets hostile contents, once as data of the run and once as a constant of the graph; and every
// input gets hostile shapes.
//
// [Equations] lists Einsums whose equations and shapes vary together.
//
// The variants of a base come in a fixed order and are made when they are asked for, so that a
// process which dies on one can be followed by another that goes on behind it.
package hostile
