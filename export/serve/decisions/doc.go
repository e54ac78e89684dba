// Package decisions logs what served policies decide, with its propensity, and lets them explore.
//
// A [Log] stands in front of a serve.Service. Of each row of a request whose answer has an action
// it keeps what was seen, what was done, and with which probability, which version has answered,
// the request's id and what the client said of the action before in the sequence (parameters
// reward, terminated and truncated). A request without an id is given one, which its answer has, so
// that rewards can be joined by id later. The form on disk is package models/decisionlog's, which
// "onnxrl dataset import" reads.
//
// Rows are written in the background, so that answers do not wait for the disk: through a bounded
// queue, of which a full one drops rows, counted by reason in [Counts], or with [Options].Wait has
// answers wait. Files are published whole after [Options].Every, or earlier when they are full, and
// at Close. A process that is killed loses the rows that are not published, which are those of the
// last Every and of the queue.
//
// # Propensities
//
// An action that is always the best one has the probability 1 where actions are discrete, and no
// density else. With [Options].Explore actions are drawn: of a model with log-probabilities by
// these, and of one that was exported with a sample (export/bake.Sample, SampleGaussian) by noise
// that is drawn here. The action of the answer is then the drawn one. The density of a Gaussian is
// in the units of the action, squashing included, whose scale the metadata tell (bake's
// MetaSquashScale). Of a model without, it is found out by what the model made of mean and sample:
// densities are NaN before a decision in which these were far enough from each other, and a little
// off in the first ones.
//
// # How to add a column
//
// Add it to models/decisionlog, and fill it in Log.keep.
package decisions
