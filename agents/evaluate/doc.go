// Package evaluate lets a policy act through whole episodes and says how it did.
//
// [Episodes] counts returns and lengths in any environment. [Policy] makes an agent's actor a
// policy of package backtest, which keeps everything that happens in the trading environment.
// Neither changes anything that training depends on: an evaluation has environments, actors and
// keys of its own. [PairedEpisodes] compares two policies in the same episodes.
//
// # How to add a setting
//
// A field of [Config] with a yaml tag, its default in [Defaults], its check in Validate; programs
// read it, this package only acts.
package evaluate
