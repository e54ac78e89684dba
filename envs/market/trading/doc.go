// Package trading is the portfolio of QTMRL (Liu et al. 2025, arXiv 2508.20467): several assets,
// one pool of cash, and for each asset the decision to buy, to sell or to hold, once per bar; or,
// with actions: weights, target weights of the assets and the cash.
//
// # Data
//
// A [Market] holds T bars of N assets in flat slices: features [T,N,F], open and close prices
// [T,N], and what can be bought and what can be sold at the open and at the close of each bar
// ([Sides], by [SidesAt]). It is shared and never copied; a window of features is a view. A
// [Source] prepares a market for a [Config] once, and makes any number of environments over ranges
// of its bars.
//
// Accounts trade adjusted prices, in which nothing ever happens to a position, or, with
// account.prices: raw, prices as they were quoted, where [Overnight] books what happens on
// ex-dates: dividends and bonus shares that the data have, and else the change of the factor as
// reinvested shares. Features see adjusted prices either way.
//
// # Rule books
//
// A market may be under the rule book of an exchange (data.rules; [Market.Rules]): then its
// limits, lots, taxes and fees by date and settlement hold, accounts trade raw prices, whole
// shares and whole hundredths of the currency, and the keys that would say otherwise are errors
// ([Config.Under]). Shares that a factor of adjustment gives are whole, and what is left of one is
// cash at the ex price. Without a book the same can be set one by one: limits are the columns
// limit_up and limit_down of the data, rates by date and side [Costs].Taxes, lots execution.lot,
// and the days before shares can be sold account.settlement.
//
// # One step
//
// The decision at bar t is taken with everything known at its close. It is filled at a price that
// is only known afterwards ([NextOpen], the default, or [NextClose]); [SameClose] fills at the
// close that the decision has seen, which nobody can do, and its results must be marked as such.
// Sells come first, then buys:
//
//   - SELL gives sell_pct of the position;
//   - BUY spends buy_pct of the cash. With [Fair], every buyer spends, fee included, min(buy_pct,
//     1/n) of the cash after the sells, where n is the number of buyers, so that the order of the
//     assets does not matter (a deviation from the original, where the assets listed first get
//     more). With [Owner], each buys in turn for buy_pct of what is then left, its fee on top, and
//     is skipped when the cash is short;
//   - the fee is fee_rate of the amount, on either side, and what [Costs] add: a least commission,
//     taxes by side and date, a spread and an impact that make fills worse than the price of their
//     bar, and a part of its volume beyond which orders are cancelled, or carried over: a rest is
//     tried at the bars that follow, before other purchases, until it is filled or another order
//     for its asset takes its place.
//
// With account.settlement: 1, shares are sold at the earliest on the day after they were bought.
//
// Impossible trades are not done: a side that is closed at the bar of the decision (the mask says
// so) or at the price of the fill, as both are of a suspended asset, purchases at the upper limit
// and sales at the lower one; a sale of nothing, a purchase for less than [Dust], which the mask
// says too with mask: account. Positions and cash are never negative. A sale that would leave less
// than Dust of value sells all, so that halved positions do not live on as denormal numbers. With a
// lot, orders are rounded down to whole lots, but a sale is at least one.
//
// The portfolio is worth P = cash + Σ position · close. An asset that has ceased to trade keeps its
// last price, unless account.delisting ends what is held of it.
//
// # Members
//
// Where the market has members ([Market.Enrol]), an asset that does not belong cannot be bought,
// neither when it is decided on nor when the order would be filled. What is held of one that is
// leaving is sold whole, whatever the action says, at each fill until it is gone; the mask leaves
// SELL alone, and the cash gets its target weight.
//
// # Delisting
//
// An asset that has had no row for more than data.calendar.gone_after bars is gone. What is held of it
// keeps the last price, which nobody pays. With account.delisting it is paid for at once, with recovery
// of that price, in environments, back-tests of rules and live portfolios by the same code
// ([Overnight]). An asset may come back, and can be bought again then: whether it will is not known.
//
// # Days
//
// Bars within days are bars like all others: an episode runs through the lunch break and the night,
// and the move of the price over them is earned by whoever holds. An order of a day's last bar is
// filled at the open of the next day's first one. account.settlement counts days, not bars.
//
// # Target weights
//
// With actions: weights an action is a Box [N+1], of the assets and, last, of the cash, which
// [WeightRules.Of] makes weights of. There is no mask: a Box has none. [Account.Rebalance] then
// trades at the price of the fill, where the portfolio is worth V:
//
//  1. Each asset is to be worth its weight of V. One that cannot be traded, or not to the side that
//     it would have to be, keeps its position, and the others and the cash share the rest of V by
//     their weights. If these are all 0, it becomes cash.
//  2. Trades below min_trade of V are left out, unless they sell the last of an asset, and all are
//     scaled down where together they are more than max_turnover of V.
//  3. Sells come first, at most what is settled and what participation allows, rounded down to lots
//     unless all is sold; one whose fee would be more than it gives is left out. What could not be
//     sold is not made up for.
//  4. Buys follow, all scaled by the same factor where the cash does not pay them and their fees,
//     and rounded down to lots. So fees and slippage come out of the cash while there is some, and
//     are otherwise shared by the buyers.
//
// Fills do not depend on the order of the assets, to the bit: sums over assets are exact.
//
// Exported agents give the weights themselves, and [Env.Rebalance] takes them.
//
// # Limits on risk
//
// risk limits what an account holds and loses (package risk), for orders and for weights, in
// training, back-tests and live portfolios by the same code. [Account.Mark] tells what the account
// is worth at each close; the next fill keeps to what follows from it, in this order:
//
//  1. Beyond risk.drawdown nothing is bought, and with then: flatten everything is sold. BUY is
//     masked.
//  2. Sales that somebody wants keep to what is left of the day's max_turnover.
//  3. Of an asset that is worth more than max_weight, what is beyond it is sold; where all are
//     worth more than max_exposure, the same part of each is. Neither asks whether the asset could
//     be traded when it was decided on. Lots are rounded up. Both limits are smaller by the factor
//     risk.cvar.cut while the CVaR is beyond its limit.
//  4. Purchases are cut to what is left under max_weight, then all by the same factor to what is
//     left under max_exposure and max_turnover. BUY is masked where a limit left no room at the
//     close of the decision. Target weights are clipped before, in favour of the cash.
//
// So no position and no sum of positions is beyond its limit after a fill, in parts of what the
// account is worth at the prices of the fill before their costs. Until the next fill they are
// passed by what prices do, and by no more. What a limit demands is not sold where the market does
// not let it: a side that is closed, settlement, participation, a fee that is more than the sale
// gives. It is tried again at each fill, and told ([Account.Bound], risk.Unsold). A position held
// at its limit is trimmed after each rise, for a fee: let agents aim lower.
//
// # Reward
//
// reward is [Simple], [Log], [Excess], [DifferentialSharpe], [Drawdown] or [MeanCVaR], each less
// reward_params.turnover times what was traded as a part of the value before. The memory of rewards
// begins again with each episode and is saved with it.
//
// # Safety signals
//
// With safety_signals each step also tells what it cost beside the reward, for agents under
// constraints (agent.constraints): drawdown, whose sum over an episode is its maximum drawdown, and
// loss, whose sum is 1 − the value at the end over the cash at the beginning. A limit on the mean
// or the CVaR of either is one of an episode, of a year where it has 250 bars. step_loss is the
// loss of a step alone, of daily bars of a day, for limits with over: step. They are not observed;
// nothing is paid for them, unlike costs and fee_rate.
//
// # Observation
//
// window [W,N,F] is the view of the features of the last W bars; position [N] and cash [1] are
// shares of the portfolio's value, or the plain numbers on request. The original passes plain
// numbers; shares do not depend on the price level. Where there is no mask, tradable [N] says which
// assets can be traded at the present bar.
//
// # Slots
//
// With slots: K, an environment sees and trades K of the N assets of a market at a time: window
// [W,K,F], position [K] and an action for each slot. An asset that belongs takes the first slot
// that is empty, assets in the order of the market, and keeps it until it does not belong any more
// and nothing of it is held; assets for which there is no slot wait. The window of a slot is that
// of its present asset, the bars before it came included. In an empty slot features are zero, and
// holding is all that can be done. Fills and positions are of assets, not of slots, and
// [Env.Slots] says who is where.
//
// # Episodes
//
// An episode runs through the whole range of bars, or through a random part of it of fixed length.
// Its end is no end of the world: it is truncated, so that the value of the last state counts,
// unless the configuration says terminate.
//
// # How to add an order type
//
// Add it to [Execution], and a file beside fill.go that implements it; the conservation of value in
// property_test.go must hold for it without change.
//
// # How to add a limit on risk
//
// See package risk. One on positions is a step in risk.go: in cut where it demands sales, in room
// where it forbids purchases, with its bit of risk.Bounds where it changes anything, and in close
// where it masks. TestLimitsHoldAfterEveryFill says what must hold.
//
// # How to add a reward
//
// Give it a word and a case in reward.go, a name in RewardParams.check, and what it remembers a
// field of rewardMemory; add it to rewards in reward_test.go with numbers by hand, and the contract
// of environments holds that it is saved.
package trading
