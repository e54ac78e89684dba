// Package scml has LitaAgent-HRL: an agent for the Standard league of the Supply Chain Management
// League in four layers, of which three are networks and each can be left out. The world that it
// acts in is package envs/scml/world.
//
// # Layers
//
//	L1  safety and baseline   package shield and an [Executor]; always there
//	L2  manager               once a day: x_static, x_temporal, x_role -> goal [4 or 16]
//	L3  executor              once for each negotiation that is to be answered: thread, history, goal -> residual [4]
//	L4  coordinator           all of these together: threads, history, present -> weight [1] for each
//
// In the morning the manager sets the day's goal, which the Executor works for; without a manager it
// is PenguinAgent's ([DefaultGoal]), which the manager's numbers are relative to. Whenever
// negotiations are to be answered the baseline answers all of them; the executor's residuals,
// multiplied by the coordinator's weights, change the answers; and the shield cuts them to what is
// safe.
//
// # What the networks read
//
// A [Day] is what a factory knows in the morning, in units and money. It is read of a running world
// ([Day.Read]), or put together from logs, and then written as three vectors of about unit size:
//
//	x_static   [StaticFeatures]                    the factory and the day
//	x_temporal [(horizon + 1) × TemporalFeatures]  each day ahead, from today on
//	x_role     [RoleFeatures]                      whether it buys, and whether it sells, by negotiation
//
// A [ThreadView] is one negotiation when an answer is due; it is written as
//
//	thread  [ThreadFeatures]                  what is offered, and what the first layer would answer
//	history [Moves × MoveFeatures]            the offers so far, the latest last, zeros before the first
//
// Quantities are relative to the factory's lines, days ahead to [DaysAhead], prices to the range that
// may be offered: -1 is its lowest price, 1 its highest ([PriceInRange]). Everything is computed in
// float64, in the order of the code, and cast to float32 at the end. The exported agent, in Python,
// gets the same bits. [Layout] is part of samples and of agents; it changes with the meaning of any
// number, and both are refused by other versions.
//
// # Goals and the baseline
//
// A [Goal] says how many units are to be agreed on a day, and at which price at worst, for each
// side of the factory: either for each of four buckets of days of delivery ([Today], [Tomorrow],
// [Soon], [Later]), or of the day as a whole.
//
// An [Executor] shares out what is left of the goal over the partners that still negotiate, and
// answers their offers, by Penguin's micro-negotiation logic: the subset of today's offers that
// comes closest to what is needed is accepted, later deliveries as long as they fit. The first
// offer is at the best price of the range, a counter offer at the goal's. It differs from
// PenguinAgent:
//
//   - Nothing is drawn: partners are taken in turn, from another one on each day, and quantities
//     are shared out evenly. So equal situations have equal answers, also in the exported agent.
//   - Its faults are left out: sales of today are accepted from day 2 on, too; that no subset falls
//     short does not accept everything; partners that have ended are given nothing.
//   - What is not reached by accepting is still offered to the others on the same day.
//   - Prices of offers that are accepted are at least the goal's; Penguin accepts any.
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
// are [MostUnits] of the lines times q, none below 0, the price is p in the range, delivery is
// 5·(t + 1) days ahead. The shield stays.
//
// # Two uses
//
// As a world.Synchronous an [Agent] asks its layers itself. A learner goes between: [Agent.Prepare]
// computes the baseline and what the layers read, and [Agent.Finish] takes their answers.
//
// # Names
//
// [Find] seats every synchronous agent of package opponents inside a shield, by the name
// shielded_NAME: shielded_penguin is the rule agent that the others are measured by. [Baseline] is
// our agent without any network.
//
// # How to add to it
//
// An agent: write a world.Synchronous in a package below this one, and let [Find] make it by a name.
// A layer: give [Layers] a field and Prepare or Finish a place where it is asked, and an environment
// in package seat in which it is learnt.
// A rule: change how Plan shares out, or choose accepts, in executor.go; both see the goal, what was
// agreed today, and the view. The module executor.py of package official does the same, call for
// call: change it, too.
// A feature: append it to its vector, say what it is in the comment there, raise [Layout], and do the
// same in the module observe.py of package official.
package scml
