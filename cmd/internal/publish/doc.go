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
// # Reading one back
//
// [OpenActor] joins a file to an environment again, unscaled where the model scales.
//
// # How to add an environment with preprocessing of its own
//
// Add a case to newMarket, which gives the scalings of inputs, the tables that observations come from before scaling, and the description.
package publish
