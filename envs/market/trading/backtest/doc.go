// Package backtest lets a policy trade a range of bars once and keeps everything that happened.
//
// # Vocabulary
//
// A [Policy] decides with everything known at the close of a bar. A [Record] is what came of it: T
// decisions at T+1 bars, with the portfolio's value, cash, positions and weights at every close,
// orders, trades, fees and rewards. Run makes a record of a policy in the trading environment, so
// what is evaluated is what was trained in.
//
// A [Rule] is a policy of another kind, which orders to buy and to sell a fraction cannot express:
// it says which assets to be in. [Accounts] simulates one: every asset has an account of its own
// with an equal share of the initial cash, which is in the asset with all it has or out of it.
// Prices, fill rule, lots and fees are the environment's; its limits on risk are not kept. The
// share of an asset that cannot be traded yet stays cash in its account until it can.
//
// # Baselines
//
//   - [BuyAndHold]: every account buys as soon as it can and never sells. Equal weights at the
//     start, and none of the rebalancing that would keep them equal. This is the bar to beat: a
//     universe chosen with hindsight rises by itself;
//   - [BuyListed]: the same with all of the cash in the assets that can be traded at the first bar,
//     and none in those that are listed later;
//   - [MovingAverage]: an account is in its asset when the close lies above the mean of the last n
//     closes, the present one included, and out when it lies at or below it, or when n closes are
//     not known yet. Closes count from the first bar of the market at which the asset can be
//     traded, also those before the range;
//   - [Random]: each asset is bought with probability 0.2, sold with 0.2 and held with 0.6, by the
//     orders of the environment. [RandomSeeds] are the seeds whose mean is usually told;
//   - [HoldCash]: nothing is ever done;
//   - [Index]: a series of prices, held without costs.
//
// Liu et al. 2025 (arXiv 2508.20467) name the moving-average rules and the random policy without
// defining them: what a signal buys and how much, fees, fills and the stocks without history are
// this package's choices.
//
// # Sensitivity
//
// [Lagged] executes decisions later than they were taken: a result that a lag of one bar destroys
// came from prices that nobody could have traded at. [Costs] runs a policy again at other fee
// rates.
//
// # Metrics over assets
//
// [Record.Returns] are the portfolio's. [Record.AssetReturns] are those of the capital employed in
// one asset: the mean over assets of a metric of these is what the paper reports, and it is not the
// metric of the portfolio.
//
// # How to add a baseline
//
// Where it can be said in BUY, SELL and HOLD, write a Policy in a file named after it; where it
// only says which assets to be in, a Rule. A Rule gets the bar and the asset and may look at bars
// up to that one; add it to the list in baselines_test.go, which proves that it does not look
// further.
package backtest
