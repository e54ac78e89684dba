// Package publish makes a policy in training a file that serves: baked with everything between raw
// observation and action, compared with the trained policy, written into the run directory and the
// run's artefact store.
//
// # When
//
//	RUN/best.onnx    the newest improvement, proved on 256 rows and marked as a candidate in its metadata; after the run, what was published
//	RUN/artifacts    the artefact store: only what is proved on as many rows as the document's section publish asks for
//
// The best policy is published once, when the run has ended; with publish.when: improvements each
// improvement is, with never none, and there is no file either. The aliases are latest and best. An
// environment that fails while observations are recorded ends no run; what could not be published
// then is when the run has ended, or by hand. A file descends from the run's document, seed and env
// steps alone: publishing a policy again gives the same reference.
//
// # What the model takes and gives
//
// The model takes observations as they come and gives actions as the environment inside of all
// wrappers takes them:
//
//	a [Domain]             observations are taken as they are outside of the environment, such as a market's features before they are scaled, and actions are given as they are meant, such as target weights
//	wrappers.normalize   observations are normalised with the running statistics as they were when the policy was taken
//	wrappers.frame_stack one observation at a time is taken, and the others are remembered
//	rescale_action, clip_action   actions are stretched and limited to the environment's bounds
//
// The metadata and the manifest have the bounds of inputs and actions, and what the Domain says, such
// as the names of assets and features in order, their units and statistics. [OpenActor] joins a file
// to an environment again.
//
// # The proof
//
// Parity is checked on recorded observations, in blocks of 1,024: half of the rows are spread over
// the validation split, or the training split where there is no other, under random actions; half
// are what the policy itself meets. Of a policy that remembers whole episodes are recorded, and
// both forms go through them with their own memory. A policy that is nearly undecided in more than
// 1 % of its choices is not published unless publish.allow_ties says so, and the run's summary says
// why. Any other difference is an error. 10,240 rows of the demo's network take 7 s on one core,
// 10,000 of a 2×64 network for CartPole 0.2 s.
//
// # A router and its experts
//
// [Whole] makes a router of package meta and its experts one model of the environment that the
// experts act in, see bake.Router. Beside the action it gives who is in charge. It is checked in
// that router's own environment, step by step and with its memory: who may be chosen, who is, and
// what is done. A limit on CVaR cuts the target weights that the model gives, by the limits of
// env.env.risk; a model of orders cannot cut, and is refused.
//
// # How to add an environment with preprocessing of its own
//
// Write a package of its own, as agents/trader is for the kind trading, with a kind whose factory
// is the environment's and also a [Domain]: it gives the scalings of inputs, the tables that
// observations come from before scaling, and the description. Name that kind in
// agents/experiment/kinds in the place of the environment's own.
//
// # How to add a wrapper that moves into the model
//
// Write its form as a bake.Wrapper, find it in newPreprocessing, and add to preprocessing.options
// what joins a model that has it to environments that have it too. The variants of package app's
// export tests train, publish and export one of each kind.
package publish
