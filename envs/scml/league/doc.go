// Package league runs tournaments of SCML's Standard league and ranks competitors as it does.
//
// # Concepts
//
//	[Spec]         which competitors meet, how often, and in worlds of what size
//	[Field]        who sits where in one world: competitors in places drawn for them, default agents elsewhere
//	[Row]          what one competitor scored in one world
//	[TruncatedMean]  what competitors are ranked by
//	[Standing]  what a competitor came to, in all worlds, by length of chains and by level
//	[Difference]  how far one is ahead of another, with an interval
//	[Watched]  an agent whose actions are counted
//
// A configuration is drawn once and played as often as it has competitors, who take turns in their
// places: they meet the same prices, costs and default agents, with the same random streams, so
// that differences between competitors are smaller than those between worlds. Intervals are made
// over configurations ([Differences]), since worlds of one configuration are not independent. The
// lengths of chains are taken in turn, where the league draws them: all are as frequent as there.
//
// Sizes and places are drawn as in anac2024_std of scml 0.7.6, by which the league of 2025 ran.
package league
