// Package run trains what an experiment document describes, in a run directory that keeps
// everything: it can be interrupted, killed, resumed bit for bit, trained with several seeds, begun
// with the parameters of another run, and its best policy is proved and published.
//
//	p, err := run.Open(ctx, kinds.All(), "config.yaml", run.Options{Engine: engine, Dir: "runs/first"})
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
// # Intervals
//
// [Interval] is the unit that searches, populations and other machines train in: (document,
// checkpoint, seed, env steps) -> (checkpoint, metrics, artefact). Each has a run directory of its
// own, with interval.json. It is trained as any run is, so intervals that follow each other have
// the bits of one run, and one whose document was edited those of train.Trainer.Edit.
//
// # Evaluation
//
// [Evaluation] has the best policies of a run, of its seeds, or of a file act in the environment of
// their document: through episodes, or, of trading, through a split next to baselines, for a report
// (packages evaluate, assess and export/report).
//
// # What makes a run
//
// The first checkpoint makes a directory a run. [Dir] is the part that other programs than those
// that train agents have in common with them.
package run
