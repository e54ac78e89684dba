// Package publish makes a policy in training a file that serves: baked with everything between raw
// observation and action, proved equal to what was trained, written beside the run and into its
// artefact store.
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
//	market               features as the indicators give them, NaN where they are not known, are scaled with the statistics of the training range
//	wrappers.normalize   observations are normalised with the running statistics as they were when the policy was taken
//	wrappers.frame_stack one observation at a time is taken, and the others are remembered
//	env.actions: weights   actions are target weights, of the assets in order and of the cash
//	rescale_action, clip_action   actions are stretched and limited to the environment's bounds
//
// The metadata and the manifest name assets, features, units and statistics in order, and the
// bounds of inputs and actions. [OpenActor] joins a file to an environment again.
//
// # The proof
//
// Parity is proved on recorded observations, in blocks of 1,024: half of the rows are spread over
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
// experts act in, see bake.Router. Beside the action it gives who is in charge. It is proved in
// that router's own environment, step by step and with its memory: who may be chosen, who is, and
// what is done. A limit on CVaR cuts the target weights that the model gives, by the limits of
// env.env.risk; a model of orders cannot cut, and is refused.
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
//
// # How to add an environment with preprocessing of its own
//
// Add a case to newMarket, which gives the scalings of inputs, the tables that observations come
// from before scaling, and the description.
//
// # How to add a wrapper that moves into the model
//
// Write its form as a bake.Wrapper, find it in newPreprocessing, and add to preprocessing.options
// what joins a model that has it to environments that have it too. The variants of package app's
// export tests train, publish and export one of each kind.
package publish
