// Package world plays SCML's Standard league: factories in levels, whose agents negotiate every day
// about what the levels in between need (package negotiation), and whose days are then settled.
//
// # The economy
//
// Products 0..P form a chain; a factory of level i turns one unit of product i into one of product
// i+1, on up to Lines lines a day, at a cost per unit of its own. Level 0 receives raw material
// from outside, the last level owes finished goods to it: exogenous contracts, which are drawn
// before the first day. Everything between is negotiated. These are pure functions:
//
//	[Config]      a world before its first day: factories, catalog prices, exogenous contracts
//	[Generator]   draws one, from the distributions of the league's own generator
//	[FactoryDay]  a factory's day: what it makes, earns and keeps
//	[Price]       the trading price of a product, a discounted mean of what was paid
//	[Rules]       the numbers of the league, and a switch for each of its known defects
//
// # Concepts
//
//	[World]     a run from the first day to the last
//	[Question]  what the world waits for: an agent's decision, or that somebody takes notice
//	[View]      all that an agent may know; agents keep it and read it when they are asked
//	[Agent]     what decides for a factory; it is [Independent] or [Synchronous]
//	[Table]     a world with agents seated, which answers for them
//	[Contract]  what was agreed
//
// # A day
//
// Exogenous contracts of the day become known, negotiations are opened, and each agent learns that
// the day begins. Negotiations are played, and each agreement is a contract at once. Each agent
// learns that the day ends, with balance and stock still those of the morning. Then prices move,
// and every factory is settled, in order. A factory whose balance is below 0 is bankrupt: it never
// negotiates again, and what it has agreed for later days is not delivered.
//
// # Stepping
//
// [World.Next] never calls an agent: it returns what is needed next, and goes on when it is called
// again. A learner can thus be asked between any two rounds of a negotiation, without goroutines,
// and the whole state can be saved there ([World.SaveState]).
//
// # Randomness
//
// A world draws nothing: equal answers give equal worlds. Agents have random streams of their own.
//
// # Sources
//
// The rules are those of scml 0.7.6 with negmas 0.11.3, on which the Standard league of 2025 ran
// (Mohammad et al., Supply Chain Management League), as observed by running these packages; their
// text is not part of this program. cmd/peers/scml_compare.py compares both day by day.
//
// # Defects
//
// The league's simulator does some things that its rules do not say, such as stock that is never
// used up. Agents are ranked in the world as it is, so all of these are the default; each field of
// [Rules] that names a repair turns one of them off.
//
// # How to add an agent
//
// Implement [Independent] or [Synchronous], embedding [Quiet] for the notices you do not need, in a
// file of package opponents, and enter it in that package's table.
package world
