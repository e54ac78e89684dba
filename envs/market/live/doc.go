// Package live computes the features of a market one bar at a time, equal bit for bit to those of
// the prepared data set that an agent was trained on, and keeps the portfolio that the agent
// observes beside them.
//
// # Concepts
//
// A [Pipeline] is everything that stands between bars and an agent's window: assets and their
// order, features with their parameters and statistics, window, time zone, and when an asset counts
// as gone. It is made from the manifest of a prepared set ([NewPipeline]), and travels as JSON in
// the manifest of a published agent ([ParsePipeline]).
//
// A [Feed] is given the bars of all assets at one time after another ([Feed.Append]) and shows the
// last W rows of features as one block [W,N,F], scaled ([Feed.Scaled]) and as an agent takes them
// that scales by itself ([Feed.Raw], NaN where a feature is not known), and which assets can be
// traded. Appending allocates nothing. What cannot be the next row, such as a bar of an earlier
// time or of a price that is not positive, is an error that changes nothing.
//
// Bars are what package bars gives after cleaning: finite positive prices, a high and a low that
// hold them, a volume that is not negative, adjusted as those of the set. Limits, raw prices and
// factors, where the agent's account trades by them, are beside them ([Row.Quote]). An asset
// without a bar is treated as in the set: not listed before its first bar, then missing, its last
// close carried forward, and gone after too many.
//
// A [Portfolio] executes orders by the rules of package trading against the feed's bars and shows
// position, cash and mask as its environment does. [Portfolio.Hold] takes holdings from elsewhere,
// such as a broker's.
//
// # Beginning
//
// Recursive indicators never forget where they began, so a feed is equal to the set only if it saw
// the same bars. [Feed.Prime] replays a history; [Feed.SaveState] and [Feed.LoadState] go on where
// another feed of the same pipeline stopped, without one. A state that was saved without its window
// is smaller and gives a whole window after W more bars. States are refused by feeds of another
// pipeline.
//
// # How to add a feature
//
// See package feature; the feed runs its streams. Something that a feed carries from bar to bar is
// a field of Feed or asset, moved in state.go; raise stateVersion there.
package live
