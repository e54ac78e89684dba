// Package hierarchy is LitaAgent-HRL: an agent for SCML's Standard league in four layers, of which
// three are networks and each can be left out.
//
// # Layers
//
//	L1  safety and baseline   packages shield and executor; always there
//	L2  manager               once a day: x_static, x_temporal, x_role -> goal [4 or 16]
//	L3  executor              once for each negotiation that is to be answered: thread, history, goal -> residual [4]
//	L4  coordinator           all of these together: threads, history, present -> weight [1] for each
//
// In the morning the manager sets the day's goal, which package executor works for; without one it
// is PenguinAgent's ([executor.Default]), which the manager's numbers are relative to. Whenever
// negotiations are to be answered the baseline answers all of them; the executor's residuals,
// multiplied by the coordinator's weights, change the answers; and the shield cuts them to what is
// safe.
//
// # Residuals
//
// A residual is [Δq, Δp, accept, end], each between −1 and 1. Quantities change by up to half the
// lines, prices by up to half the range. The baseline's acceptance counts 1 and its refusal −1, and
// twice the residual is added: the answer is the sign of the sum; likewise for the end. An offer
// that is not accepted after all is answered by the same delivery at the goal's price, a
// negotiation that does not end after all by an offer of one unit.
//
// Direct mode takes [q, p, accept, end, t] for the answer itself, whatever the baseline is: units
// are [executor.Most] of the lines times q, none below 0, the price is p in the range, delivery is
// 5·(t + 1) days ahead. The shield stays.
//
// # Two uses
//
// As a world.Synchronous an [Agent] asks its layers itself. A learner goes between: [Agent.Prepare]
// computes the baseline and what the layers read, and [Agent.Finish] takes their answers.
//
// # How to add a layer
//
// Give [Layers] a field and Prepare or Finish a place where it is asked, and an environment in
// package seat in which it is learnt.
package hierarchy
