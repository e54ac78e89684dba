// Package cover is a small cooperative world whose optimum can be computed exactly, to prove
// learners of several agents with, and to copy.
//
// Agents and as many landmarks lie on different cells of a square grid, both at random. In each
// step every agent stays or moves to one of the four cells beside its own; moves off the grid are
// masked, and nobody stands in another's way. All agents earn the same: the share of the landmarks
// on which at least one agent stands. So each landmark wants an agent of its own, and who goes
// where is for the agents to agree on, by nothing but what they see: it is the task of
// simple_spread (Lowe et al. 2017, arXiv 1706.02275), with cells instead of physics and without
// collisions. With a failure probability agents break down, for good, and the others go on.
//
// # What is seen
//
//	agent      discrete(agents)   which one it is, so that two that see the same may do different things
//	landmarks  [2·agents]         where the landmarks are from here: right and down, in widths of the grid
//	others     [3·(agents−1)]     the same of the other agents, and 1 for each that is there; absent for a single agent
//	state      [5·agents+1]       central, for critics: right, down and 1 of each agent that is there, of each landmark right and down, and the time that is left
//
// # The optimum
//
// The best joint policy is found by dynamic programming over the cells of all agents and the time
// that is left. It is one that agents can follow by themselves, since each of them sees everything
// but the time. Over all starts, episodes of the defaults have a mean return of [Optimum], 10.39.
// Agents that settle once and for all on who goes to which landmark, and go the straight way, earn
// 9.76 and what they cover on their way.
package cover
