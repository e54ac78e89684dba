// Package publish makes a policy in training a file that serves: baked with everything between raw observation and action, proved equal to what was trained, written beside the run and into its artefact store.
//
// # What is published
//
// RUN/best.onnx is always the newest publication, and RUN/artifacts keeps all of them, with the aliases latest and best. For a market, the model takes features as the indicators give them, NaN where they are not known, and scales them itself with the statistics of the training range; the metadata
// and the manifest name assets, features, units and statistics in order. Other environments show what the model takes.
//
// Everything in a file descends from the run's document, seed and env steps, so publishing a policy again, as a run does that was killed before its next checkpoint, gives the same reference.
//
// # The proof
//
// Parity is proved on recorded observations: half of the rows are spread over the validation split, or the training split where there is no other, under random actions; half are what the policy itself meets in several stretches of it. A policy that is undecided between actions is published all the same, with the number of such choices in its metadata and
// a warning in the log: a run must not end because it has not learnt yet. Any other difference is an error.
//
// For the shipped QTMRL network a publication takes 1.8 s of one core's time, nearly all of it 288 rows through both forms; the three sessions it compiles take 50 ms. That is little next to a validation, which it follows, so every improvement is published.
//
// # Golden bars
//
// A version of a market agent proves more than that the model gives its golden outputs: two files lead from bars to actions, so that whoever serves it can tell that bars become the same observation there. [BarsFile] begins with the state of a live.Feed, and goes on with the bars of the last days of the recorded range, as many as make a window and seven more decisions:
//
//	state     uint8 [S]          live.Feed.LoadState takes it; a feed that does is also where serving may begin
//	time      int64 [T]          microseconds since 1970, UTC
//	bars      float64 [T,N,5]    open, high, low, close, volume, adjusted as the run's data are; 0 where an asset has no bar
//	status    uint8 [T,N]        1 traded, 2 suspended, 0 no bar
//	extra     float64 [T,N,E]    the pipeline's further columns, where it has any
//	features  float32 [T,N,F]    what the feed makes of them, unscaled, NaN where an asset has none
//
// [DecisionsFile] has, for each of the last D bars, what the agent observes beside its window when it begins all in cash and its own orders are executed, and what it decides: position float32 [D,N], cash float32 [D,1], mask bool [D,3N], action int64 [D,N], and margin float32 [D], below which rounding may decide. Bars and features are the same for all publications of a run, and the store keeps
// them once; decisions cost D runs of the model. [VerifyBars] goes from bars to actions again.
//
// An agent that takes more than window, position, cash and mask, or whose market was not prepared by package prepared, has no golden bars.
//
// A run proves each publication on 256 rows; 10,000 of them, as "onnxrl export" proves a model on with a [Recording], take the demo's network 8 s of one core's time.
//
// # Reading one back
//
// [OpenActor] joins a file to an environment again, unscaled where the model scales.
//
// # How to add an environment with preprocessing of its own
//
// Add a case to newMarket, which gives the scalings of inputs, the tables that observations come from before scaling, and the description.
package publish
