// Package executor answers a factory's negotiations so that the day's goals are reached: the
// baseline of package scml's agent, which residuals are added to.
//
// # Concepts
//
// A [Goal] says how many units are to be agreed on a day, and at which price at worst, for each
// side of the factory: either for each of four buckets of days of delivery ([Today], [Tomorrow],
// [Soon], [Later]), or of the day as a whole. [Default] is the goal that PenguinAgent works for,
// which is there without any network.
//
// An [Executor] shares out what is left of the goal over the partners that still negotiate, and
// answers their offers, by Penguin's micro-negotiation logic: the subset of today's offers that
// comes closest to what is needed is accepted, later deliveries as long as they fit; the first
// offer is at the best price of the range, a counter offer at the goal's.
//
// # Deviations from PenguinAgent
//
//   - Nothing is drawn: partners are taken in turn, from another one on each day, and quantities
//     are shared out evenly. So equal situations have equal answers, also in the exported agent.
//   - Its faults are left out: sales of today are accepted from day 2 on, too; that no subset falls
//     short does not accept everything; partners that have ended are given nothing.
//   - What is not reached by accepting is still offered to the others on the same day.
//   - Prices of offers that are accepted are at least the goal's; Penguin accepts any.
//
// # How to add a rule
//
// Change how Plan shares out, or choose accepts; both see the goal, what was agreed today, and the
// view. The module executor.py of package official does the same, call for call: change it, too.
package executor
