// Package risk limits what a portfolio may lose and hold. The same code stands behind training,
// back-tests, trading from bars as they arrive, and whoever chooses between experts.
//
// # Vocabulary
//
// A book is whatever has a value over time: a portfolio, or an expert that trades on paper. A
// [Monitor] watches one book by its value alone and knows whether one of two limits is passed:
//
//   - drawdown: the fall from the highest value of the last 30 days of the market. Beyond the limit
//     the book is stopped ([Monitor.Stopped]) until the drawdown is back at drawdown.resume, which
//     is lower, so that it does not stop and go with every move (hysteresis). The window rolls: what
//     was lost is forgotten after it;
//   - cvar: the mean loss of the worst twentieth of the daily returns of the last 250 days. Beyond
//     the limit what may be held is multiplied by cvar.cut ([Monitor.Factor]) until the CVaR is back
//     at cvar.resume.
//
// The other limits of a [Config], max_exposure, max_weight and max_turnover, are on positions. They
// are kept by whoever trades: package trading, for its environment, its back-tests and live
// portfolios alike. [Bounds] say which limits have changed what was traded. How large a part of a
// bar an order may be is no limit on risk but a rule of the market: costs.participation, which
// sales that a limit demands keep to as well.
//
// # Experts
//
// Whoever chooses between experts has a Monitor for each of them, feeds all of them at every bar,
// and masks those that are stopped; see the example.
//
// # How to add a limit
//
// One on the value alone, such as on volatility: a section of Config with its check, what it
// remembers in Monitor and Memory, its number in measure, a call of trip in decide, a bit of Bounds
// with its name, and an effect, such as a further factor in [Monitor.Limits]. The tests compare
// what is measured with its definition and what is remembered with a monitor that never stopped.
// One on positions: a key of Config, and a step in risk.go of package trading, whose property test
// must know what exactly holds after a fill.
package risk
