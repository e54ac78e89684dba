// Package market holds the economy of SCML's Standard league as pure functions: what a world is
// made of, how one is drawn, what one factory's day brings, and how prices move.
//
// # Concepts
//
// Products 0..P form a chain; a factory of level i turns one unit of product i into one of product
// i+1, on up to Lines lines a day, at a cost per unit of its own. Level 0 receives raw material
// from outside, the last level owes finished goods to it: exogenous contracts, which are drawn
// before the first day. Everything between is negotiated (package negotiation).
//
//	[Config]      a world before its first day: factories, catalog prices, exogenous contracts
//	[Generator]   draws one, from the distributions of the league's own generator
//	[Day]         a factory's day: what it makes, earns and keeps
//	[Price]       the trading price of a product, a discounted mean of what was paid
//	[Rules]       the numbers of the league, and a switch for each of its known defects
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
package market
