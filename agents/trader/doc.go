// Package trader is what publishing has to know of a market, and what a published market agent needs
// to act on bars.
//
// [Kind] is the environment of package trading with what package publish asks of it: features as
// the indicators give them, NaN where they are not known, which the model scales with the statistics
// of the training range, target weights as actions, and golden bars beside the model. Package
// pretrain takes the windows of the training range from it. A [Trader]
// makes features of bars as they arrive, keeps a portfolio and runs the model between them.
//
// # Golden bars
//
// Two files of a market agent's version lead from bars to actions, so that whoever serves it can
// tell that bars become the same observation there ([VerifyBars]). [BarsFile] begins with the state
// of a live.Feed, and goes on with the bars of the last days of the recorded range, as many as make
// a window and seven more decisions:
//
//	state     uint8 [S]          live.Feed.LoadState takes it; a feed that does is also where serving may begin
//	time      int64 [T]          microseconds since 1970, UTC
//	bars      float64 [T,N,5]    open, high, low, close, volume, adjusted as the run's data are; 0 where an asset has no bar
//	status    uint8 [T,N]        1 traded, 2 suspended, 0 no bar
//	extra     float64 [T,N,E]    the pipeline's further columns, where it has any
//	features  float32 [T,N,F]    what the feed makes of them, unscaled, NaN where an asset has none
//
// [DecisionsFile] has, for each of the last D bars, what the agent observes beside its window when
// it begins all in cash and its own orders are executed, and what it decides: position float32
// [D,N], cash float32 [D,1], mask bool [D,3N], action int64 [D,N], and margin float32 [D], below
// which rounding may decide. An agent that takes more than window, position, cash, account and
// mask, or whose market was not prepared by package prepared, has no golden bars.
package trader
