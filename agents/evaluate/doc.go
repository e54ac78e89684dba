// Package evaluate lets a policy act through whole episodes and says how it did.
//
// [Episodes] counts returns and lengths in any environment, [Validator] does so while an agent
// trains, and [PairedEpisodes] compares two policies in the same episodes. None changes anything that
// training depends on: an evaluation has environments, actors and keys of its own. Environments that
// are not evaluated by episodes, such as a market, have a judge, see agents/experiment.
// [Selection] is out of how many trials a policy was chosen, and [Period] the time that it has
// seen.
//
// # How to add a setting
//
// A field of [Config] with a yaml tag, its default in [Defaults], its check in Validate; programs
// read it, this package only acts.
package evaluate
