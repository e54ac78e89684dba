// Package brokertest is a double of Alpaca's Trading API v2 on this machine, for tests of what
// trades with it.
//
// # Concepts
//
// A [Double] is an http.Handler that answers as the documentation says: account, positions,
// orders, an order by client id, cancelling, the clock and the activities FILL. A test is the
// market: [Double.Price], [Double.Open], [Double.Trade], which fills what can be, wholly or in
// part, and [Double.Close]. [Double.Fault] decides for each request whether it is answered,
// refused, lost before or after it took effect, or left without an answer. [Double.Save] and
// [Load] are a restart with its state.
//
// Accounts are without margin: what is bought must be paid by the cash that no open order needs,
// market orders at 4 % above the price, and what is sold must be held. Shares are counted in
// billionths and money in millionths, exactly.
//
// [Double.Transport] is the way to a double without a network, for thousands of schedules.
//
// # How to add an endpoint
//
// Add it to Double.ServeHTTP and its answer, field by field as documented, below it.
package brokertest
