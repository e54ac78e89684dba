// Package samples makes samples of logs of SCML's Standard league: what factories knew, and what
// they did, as data sets that the layers of package scml learn from.
//
// # Concepts
//
//	[Find]     the folders of worlds below one, whoever has written them and in whatever layout
//	[Collect]  makes samples of them, one world after the other
//	[Open]     opens what it has made, and refuses what is of another layout
//
// A folder of samples has samples.json, the [Manifest], and three data sets of package offline:
//
//	macro   an episode for each factory of a world, a step for each day:
//	        observation static, temporal, role, market, as of scml_goals; action the day's goal,
//	        which was inferred; reward Δbalance / initial balance, times seat.DefaultGoals().Scale
//	micro   an episode for each side of a negotiation, a step for each of its decisions:
//	        observation thread, history, goal, baseline, id; action what was decided; cost how many
//	        units of it the first layer would not allow, relative to the lines
//	residual  the decisions of micro as the executor learns them: observation thread, history, goal,
//	        situation, market, limits, as of scml_threads; action the residual that makes the first
//	        layer's answer the one that was given; reward 0
//
// The answers of micro samples are [q, p, accept, end, t], as in direct mode of package scml;
// baseline has the same numbers of the first layer's answer. id is the number of the world in the
// manifest, and that of the row of the negotiation in its negotiations.csv, both from 0.
//
// # Following a log
//
// A world is played again: its negotiations are answered as the log says, and the agents of package
// scml look on in every seat, so that what they read, and what their first layer would have
// answered, is computed by the code that plays. Of the order in which agents were asked on a day
// the log says nothing; negotiations go on together, round by round. After each day balances,
// stocks and prices are compared with stats.csv, so that a log of other rules is refused.
//
// # Goals
//
// A goal is inferred of what a factory has signed on a day: of each side, and each bucket of days
// of delivery, the units and the worst price, which is what a goal says ([scml.Goal]). Where
// nothing was signed the price is back-filled: that of the next day with a contract, after the last
// one that of the one before, and where there is none the baseline's.
//
// # How to add a field
//
// Add it to [MacroSpec] or [MicroSpec], write it in follow.go, and raise scml.Layout where old
// samples would be misread.
package samples
