// Package world plays SCML's Standard league: factories in levels, whose agents negotiate every day
// about what the levels in between need (package negotiation), and whose days are then settled
// (package market).
//
// # Concepts
//
//	[World]     a run from the first day to the last
//	[Question]  what the world waits for: an agent's decision, or that somebody takes notice
//	[View]      all that an agent may know; agents keep it and read it when they are asked
//	[Agent]     what decides for a factory; it is [Independent] or [Synchronous]
//	[Table]     a world with agents seated, which answers for them and asks about empty seats
//	[Contract]  what was agreed
//
// # A day
//
// Exogenous contracts of the day become known, negotiations are opened, and each agent is told that
// the day begins. Negotiations are played, and each agreement is a contract at once. Each agent is
// told that the day ends, with balance and stock still those of the morning. Then prices move, and
// every factory is settled, in order. A factory whose balance is below 0 is bankrupt: it never
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
// # How to add an agent
//
// Implement [Independent] or [Synchronous], embedding [Quiet] for the notices you do not need, in a
// file of package opponents, and enter it in that package's table.
package world
