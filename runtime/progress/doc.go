// Package progress shows how far a long operation has come: a bar that is redrawn in place on a
// terminal, and plain lines at long intervals everywhere else, so that a log file stays readable.
//
//	p := progress.Start(os.Stderr, progress.Options{Label: "fit", Unit: "steps", Total: 100_000})
//	logger := slog.New(slog.NewTextHandler(p.Lines(os.Stderr), nil)) // lines appear above the bar
//	for … {
//		p.Add(1)
//		p.Field("loss", loss)
//	}
//	p.Finish()
//
// For a download, set Unit to progress.Bytes and read through [Progress.Reader].
//
// # Behaviour
//
// A bar is redrawn at most ten times a second, each time by one write that moves to the start of
// the line, draws and erases the rest: nothing is cleared first, so nothing flickers. It fits the
// width of the terminal at that moment; where it is too narrow, numbers are rounded and the unit is
// left out, and fields that do not fit even so are cut. Drawing happens inside Add, Set and Finish
// and in no other goroutine. Errors of the writer are ignored: a progress bar does not end a run.
//
// The rate is an average over about the last ten seconds; a resumed operation starts from
// Options.Initial, which counts for the bar but not for the rate. All methods are safe for
// concurrent use and do nothing on a nil *Progress.
//
// # How to add an output form
//
// Add a method like drawBar that writes one state, and choose it in Start.
package progress
