package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/onnxrl/onnxrl/agents/experiment"
)

// Exit codes. exitError is for what failed and for checks that did not pass, exitUsage for command
// lines that name a command or flag that there is not, exitInterrupted what shells use for Ctrl-C.
const (
	exitError       = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// Main runs the command line of the process over the kinds that configurations can name. It
// ends the process with the exit status: 0, 1 for what failed and for checks that did not pass,
// 2 for an unknown command or flag, 130 after a signal.
func Main(kinds experiment.Kinds, options ...Option) {
	os.Exit(Execute(untilSignalled(), kinds, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, options...))
}

// Execute runs one command line over the kinds that documents can name, as a program of that name
// does, and returns its exit status; see [Main]. The streams are the command's; the process's own
// are left alone, and so are signals: where they would end the command, ctx does. Several may run
// at once, but only one of them may fetch references (URL#sha256:…): the process has one downloader,
// which the context of the latest command ends.
func Execute(ctx context.Context, kinds experiment.Kinds, args []string, in io.Reader, out, errw io.Writer, options ...Option) int {
	a := newApp(fileName(), in, out, errw)
	a.kinds = kinds
	for _, o := range options {
		o(a)
	}
	return a.run(ctx, a.command(), args)
}

// untilSignalled is a context that ends with the first signal.
func untilSignalled() context.Context {
	// The first signal asks for a clean stop, in which state is saved; a second one ends the
	// program at once.
	signalled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, end := context.WithCancelCause(context.Background())
	go func() {
		<-signalled.Done()
		stop() // Before anybody reads that a second signal would do that.
		end(context.Cause(signalled))
	}()
	return ctx
}

// errInterrupted says that work was stopped by a signal after its state was saved.
var errInterrupted = errors.New("interrupted")

// quietError has been shown to the user already and only sets the exit status.
type quietError struct{ err error }

func (e quietError) Error() string { return e.err.Error() }
func (e quietError) Unwrap() error { return e.err }

// saying names the command that an error is of, unless the user has been shown it already.
func saying(command string, err error) error {
	var quiet quietError
	if err == nil || errors.As(err, &quiet) {
		return err
	}
	return fmt.Errorf("%s: %w", command, err)
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	if unknown := (*usageError)(nil); errors.As(err, &unknown) {
		return exitUsage
	}
	return exitError
}

// errorText is what is said of an error, empty where it has been shown already.
func errorText(err error) string {
	var q quietError
	if err == nil || errors.As(err, &q) {
		return ""
	}
	text := err.Error()
	if exitCode(err) == exitInterrupted {
		// The message says what was being done. Interrupting means that its context was cancelled,
		// by whichever signal.
		for _, why := range []string{context.Canceled.Error(), "terminated signal received", "interrupt signal received"} {
			text = strings.TrimSuffix(strings.ReplaceAll(text, ": "+why, ""), why)
		}
		text = strings.TrimSuffix("interrupted: "+text, ": ")
	}
	return text
}
