// Package negotiation is the protocol of SCML's Standard league: many bilateral negotiations at
// once, each by stacked alternating offers (Aydoğan et al. 2017), between agents that decide about
// each negotiation by itself or, synchronously, about all of theirs together.
//
// # Concepts
//
//	[Offer]        a quantity, a day of delivery and a unit price, out of a [Box]
//	[Mechanism]    one negotiation of a caller, which acts first in every round, and a partner
//	[Engine]       all negotiations of a day, stepped in turn, and what its synchronous agents await
//	[Reply]        what an agent answers about one negotiation
//	slot           an agent's name for one of its negotiations of the day: 0, 1, … as they were made
//
// # Asking and answering
//
// The engine calls nobody. [Engine.Next] goes on to the next point at which it needs something and
// says what: a decision, which is written into [Engine.Replies] before Next is called again, or the
// news that a negotiation has ended. So a learner can be asked between any two rounds, and
// everything there is can be saved in between.
//
// # Synchronous agents
//
// A synchronous agent is asked for all its first proposals at once, and about all offers it has
// once every running negotiation has one. Until then its negotiations wait, which costs passes: a
// pass goes once over all negotiations, and a day has a limited number of them. An agent that has
// let a partner wait as often as it has negotiations answers what is there. What it then says of
// partners that have not spoken yet is kept, and is the answer to whatever they say next. These
// rules, and what happens to negotiations that the limit cuts off, are those of negmas 0.11.3 as
// observed; the tests follow recorded days call by call.
package negotiation
