// Package run trains what a configuration describes, in a run directory that keeps everything. A
// run can be interrupted, killed, resumed bit for bit, trained with several seeds, and begun with
// the parameters of another run. Its best policy passes a parity check and is published.
//
//	p, err := run.Open(ctx, kinds.All(), "config.yaml", run.Job{Dir: "runs/first"}, run.Options{Engine: engine})
//	…
//	defer p.Close()
//	summary, err := p.Train(ctx)
//
// # A run directory
//
//	config.yaml      the effective document; training it again is the recipe
//	lineage.json     how the run came to be: see [Lineage]
//	sources.json     the digests of its data and files
//	metrics.jsonl    metrics, one object a line; tensorboard/ has the same
//	checkpoints/     complete states; the directory is locked through it
//	best.onnx        the best policy so far, and artifacts/ what was published
//	finished.json    the summary of a run that has ended
//	seed-N/          all of it for each of several seeds, beside summary.json
//
// # Jobs and intervals
//
// A [Job] says what is trained: it is a value that can be written down, and has the same [Result] in
// this process, in another one and on another machine ([Executor]). [Options] are what a process has
// to train it with: an engine, hooks, data that are open already.
//
// An interval ([Job.Train]) is the unit that searches, populations and other machines train in:
// (document, checkpoint, seed, env steps) -> (checkpoint, metrics, artefact). Each has a run
// directory of its own, with interval.json. It is trained as any run is, so intervals that follow
// each other have the bits of one run, and one whose document was edited those of
// train.Trainer.Edit.
//
// # Runs that share a replay
//
// With [Options.Replay] runs of one process, such as the seeds of a group or the members of a
// population, record into one store and learn from what all of them record. Each is given its place
// by what it is, and not by when it comes. A run's checkpoints have the store's identity and how
// much it held, in the place of transitions. So its owner saves the store, after an interval of one
// member and before that of the next. Members that are trained one after another go on from there
// with the bits of ones that never stopped, in whichever process. A checkpoint of an interval that
// was killed is ahead of the store then, and refused: begin that interval again. Members that are
// trained at once see each other's transitions as they come, and no two trainings are alike;
// sections of the store (replay.Shared.Divide) are for those that are to be.
//
// # Evaluation
//
// [Evaluation] has the best policies of a run, of its seeds, or of a file act in the environment of
// their configuration. They act through episodes, or, of trading, through a split next to
// baselines, for a report (packages evaluate, assess and export/report).
//
// # What makes a run
//
// The first checkpoint makes a directory a run. [Dir] is the part that other programs than those
// that train agents have in common with them.
package run
