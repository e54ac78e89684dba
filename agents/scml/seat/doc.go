// Package seat makes environments of a factory in SCML's Standard league: what the layers of
// the agent of package scml learn in.
//
// # Environments
//
//	scml_goals    where the manager learns: a step for each day, whose action is the goal
//	scml_threads  where executor and coordinator learn: a step for each question of the world, whose
//	              actions are a residual, or a weight, for each negotiation
//
// Each episode is a world of its own, drawn as the league draws its tournaments: two to four
// levels, 50 to 200 days, agents of the league's own beside two to four competitors, of which one
// is the learner, at any level, and the others are drawn from rivals, which may be directories of
// agents, such as earlier selves. The first layer is always there; those that are not learnt are
// those of the directory layers, frozen, and are left out without one.
//
// # Agents
//
// scml_threads is a world of several agents (envs.Multi), one for each partner of the factory, at
// most [scml.Threads], who are there from the first question to the last. An agent whose
// negotiation is not asked about sees zeros for it, and its action does nothing. All learn one
// policy, whose graph is what a directory's agent.json names: its inputs are those that package
// scml gives executors and coordinators.
//
// # Observations
//
// They are those of package scml, which the agent has wherever it plays. What the whole market
// looks like, stocks and balances of each level, is central: critics read it; in scml_threads, too,
// the factory's situation, and how far residuals may go before the shield cuts them.
//
// # Rewards
//
// All money is relative to the factory's before the first day, times scale, so that an undiscounted
// episode is the factory's score. The manager's is, for each day,
//
//	Δcash + inventory·(γ·Φ' − Φ) − shortfall·predicted + liquidity·units
//
// where Φ is the stock at its trading price, predicted the penalties for what would be missing if
// nothing else was agreed, and units what was agreed on the day, at trading prices; γ is gamma, and
// should be the learner's.
//
// An executor's or coordinator's is, for each question and agent, what has come about since the
// question before,
//
//	shared·ΔW + own·ΔW' + price·Σ ±q·(trading − p) + liquidity·Σ q·trading
//	  − target_units·Σ |agreed − Q|·trading/n − target_prices·Σ q·|p − P|
//
// all of it relative to the money before the first day, times scale. W is the factory's worth: the
// balance, and what the days ahead bring if nothing else is agreed, production, penalties and
// storage included, at today's trading prices and with the mean of what has come from outside so
// far, and inventory times the stock after these days, as far as the lines can use it and there is
// anybody to sell to, at its trading price. At the end of the world it is the balance, so that
// shared alone, undiscounted, is the score, less what the factory was worth at the first question.
// ΔW' is what the agent's own contracts have added to W. The sums are over these, of q units at p,
// with a minus for sales, whose prices are better above the market's; trading is the product's
// price. When a day is over its goal's units Q, of each side and bucket, are compared with what
// was agreed, by all n agents together; P is the goal's price in money.
//
// # Diagnostics
//
// Of scml_threads each term without its weight has a diagnostic of its name.
//
// score is the factory's balance relative to that before the first day, breach the units missing on
// the day, overflow those in stock beyond what its lines use in a day, and win, on the last step,
// whether no other competitor has a better score.
//
// # How to add an environment
//
// Embed seat, which plays a world up to the next question, and say in Reset and Step which
// questions the learner answers.
package seat
