// Package observe writes what the networks of package scml's agent read: the situation of a factory
// in the morning, and that of its negotiations.
//
// # Concepts
//
// A [Day] is what a factory knows in the morning, in units and money. It is read of a running world
// ([Day.Read]), or put together from logs, and then written as three vectors of about unit size:
//
//	x_static   [Static]                       the factory and the day
//	x_temporal [(horizon + 1) × Temporal]     each day ahead, from today on
//	x_role     [Role]                         whether it buys, and whether it sells, by negotiation
//
// A [Thread] is one negotiation when an answer is due; it is written as
//
//	thread  [Features]                        what is offered, and what the first layer would answer
//	history [Moves × MoveFeatures]            the offers so far, the latest last, zeros before the first
//
// Quantities are relative to the factory's lines, days ahead to [Ahead], prices to the range that
// may be offered: -1 is its lowest price, 1 its highest ([Price]).
//
// # Arithmetic
//
// Everything is computed in float64, in the order of the code, and cast to float32 at the end. The
// exported agent, in Python, gets the same bits.
//
// # Layout
//
// [Version] is part of samples and of agents; it changes with the meaning of any number, and both
// are refused by other versions.
//
// # How to add a feature
//
// Append it to its vector, say what it is in the comment there, raise [Version], and do the same in
// the module observe.py of package official.
package observe
