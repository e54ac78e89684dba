// Package broker is the seam between a service that trades and whoever holds its account.
//
// # Concepts
//
// A [Broker] takes a [Ticket], what is wanted, and has an [Order], what has become of it. The
// ticket carries an id of ours, [ClientID], that is a function of the decision: who sends a ticket
// again, because the answer was lost or the program was, sends the same one, and [Broker.Submit]
// makes one order of all. [Fill] is one execution, with an id of the broker's under which it is
// counted once: a [Tally] keeps positions and cash by fills, whatever overlaps and however often
// they are read.
//
// Before the first order [Look] reads what the broker has and [Reconcile], a pure function,
// compares it with what is expected: positions, open orders, and fills that nobody has counted.
// The [Rule] says whether a difference is the end or the broker is right.
//
// Quantities and prices are float64 as in package trading. Brokers have at most 9 decimals;
// quantities are compared as such ([Same]).
//
// # How to add a broker
//
// Implement [Broker] in a package below this one as alpaca does, against a double of the
// documented protocol such as that of package brokertest, with the faults of alpaca's
// TestSchedules.
package broker
