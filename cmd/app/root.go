package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/serve/prove"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// app is what subcommands share: streams, global flags and the engine, opened on first use.
type app struct {
	name, version string
	// advice finds command lines of onnxrl in texts; nil where the program is called onnxrl.
	advice   *regexp.Regexp
	kinds    experiment.Kinds
	in       io.Reader
	out, err io.Writer
	json     bool
	quiet    bool
	logLevel string
	engine   string
	library  string
	offline  bool
	opened   map[string]engine.Compiler
	// tries is where models are tried first, nil until one is.
	tries *prove.Process
	log   *slog.Logger
	// logFormat is text or json; lines is what standard error goes through in JSON, nil in text.
	logFormat string
	lines     *logLines
	stop      *stopping
	// watch shows what the command trains to Prometheus; nil without --metrics.
	watch metrics.Watcher
	// workers is how many processes train, 0 trains in this one, and executorURL whose workers do;
	// trains is what came of that.
	workers     int
	executorURL string
	trains      interface {
		run.Executor
		io.Closer
	}
}

func newApp(name string, in io.Reader, out, errw io.Writer) *app {
	return &app{name: name, version: version(), in: in, out: printable.NewWriter(out), err: printable.NewWriter(errw), opened: map[string]engine.Compiler{}, stop: &stopping{}}
}

func (a *app) run(ctx context.Context, root *cobra.Command, args []string) int {
	errw := a.err // Before --log-format changes it.
	a.kinds.Note, a.kinds.Engine = a.noteOnce(), a.compiler
	a.kinds.Document = readsDocuments(a.kinds.Document, a.in)
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(errw)
	a.stop.tellOn(errw, a.name)
	gone, err := a.stop.execute(ctx, root)
	if !gone {
		a.close()
	}
	if text := a.named(errorText(err)); text != "" {
		text = withPointers(text, args)
		if a.log == nil { // the command line itself was refused
			if a.json = a.json || slices.Contains(args, "--json"); asksJSON(args) {
				a.lines = newLogLines(errw, a.name)
			}
		}
		switch {
		case a.lines != nil:
			a.lines.log.Error(text)
		case a.json:
			a.err = errw
			// Standard error may be closed, and there is nobody else to tell.
			_ = jsonOutput{w: errw}.Encode(failureOf(text, err))
		default:
			fmt.Fprintf(errw, "%s: %s\n", a.name, text)
		}
	}
	return exitCode(err)
}

// failure is what --json prints on standard error, as its last line, instead of an error; the keys are
// stable.
type failure struct {
	Error string `json:"error"`
	// Problems are those of a document, with their places.
	Problems []configProblem `json:"problems,omitempty"`
}

func failureOf(text string, err error) failure {
	f := failure{Error: text}
	var list configs.Errors
	if errors.As(err, &list) {
		var r configReport
		r.add(list)
		f.Problems = r.Problems
	}
	return f
}

// noteOnce returns what writes notes to standard error, each once. It may be called at any time.
func (a *app) noteOnce() func(text string) {
	var said sync.Map
	return func(text string) {
		if _, again := said.LoadOrStore(text, true); !again {
			a.say("note: %s", text)
		}
	}
}

// asksJSON reports whether a command line that could not be read asks for a log in JSON.
func asksJSON(args []string) bool {
	return strings.Contains(" "+strings.Join(args, " ")+" ", " --log-format json ") || slices.Contains(args, "--log-format=json")
}

// command is the whole program.
func (a *app) command() *cobra.Command {
	return a.root(a.name, "Reinforcement learning with ONNX graphs: train, evaluate, export, serve", a.commands()...)
}

// root is the command of a program, with the flags that all its subcommands have.
func (a *app) root(name, short string, groups ...commandGroup) *cobra.Command {
	root := &cobra.Command{
		Use:           name,
		Short:         short,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if what := cmd.Annotations[printsText]; a.json && what != "" {
				return fmt.Errorf("%s prints %s, and no table that --json could stand for", cmd.CommandPath(), what)
			}
			if err := a.startLog(); err != nil {
				return err
			}
			a.localObjects(cmd.Context())
			return localReferences(cmd, args)
		},
	}
	f := root.PersistentFlags()
	f.BoolVar(&a.json, "json", false, "print JSON with stable keys, errors included")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "show no progress")
	f.StringVar(&a.logLevel, "log-level", "warn", "debug, info, warn or error")
	f.StringVar(&a.logFormat, "log-format", "text", "text, or json objects")
	f.StringVar(&a.engine, "engine", "auto", "auto, "+strings.Join(engineNames(), " or "))
	f.StringVar(&a.library, "ort-library", "", "ONNX Runtime's library, or its folder")
	f.BoolVar(&a.offline, "no-install", false, "never install ONNX Runtime")
	addGroups(root, groups)
	var version bool
	root.Flags().BoolVar(&version, "version", false, "show the version")
	root.Args, root.RunE = cobra.ArbitraryArgs, func(cmd *cobra.Command, args []string) error {
		if version && len(args) == 0 {
			return a.printVersion()
		}
		return group(cmd, args)
	}
	root.InitDefaultCompletionCmd()
	sayUsage(root)
	sayTopics(root)
	a.nameCommands(root)
	a.wrapHelp(root)
	a.complete(root)
	return root
}

// printsText is the annotation of commands without a report; it says what they print instead. All
// others print JSON with --json.
const printsText = "prints"

// commands are the subcommands by what they are for; one file each.
func (a *app) commands() []commandGroup {
	return []commandGroup{
		{"Train", append([]*cobra.Command{a.demoCommand(), a.trainCommand(), a.evaluateCommand(), a.tuneCommand(), a.evolveCommand(), a.ablateCommand(), a.fitCommand(), a.configCommand()}, a.kindsCommands()...)},
		{"Data", []*cobra.Command{a.dataCommand(), a.recordCommand(), a.datasetCommand()}},
		{"Models and serving", []*cobra.Command{a.modelsCommand(), a.exportCommand(), a.serveCommand(), a.graphCommand(), a.gradCommand(), a.compareCommand()}},
		{"Trading", []*cobra.Command{a.liveCommand(), a.walkforwardCommand()}},
		{"League", []*cobra.Command{a.leagueCommand(), a.scmlCommand()}},
		{"Operations", []*cobra.Command{a.doctorCommand(), a.versionCommand(), a.dashboardCommand(), a.benchCommand(), a.workerCommand(), a.actCommand(), a.actorCommand(), a.replayCommand(), a.proveCommand()}},
	}
}

// printTable writes a report as a table, or with --json as JSON. What the report fails by, unless
// nil, sets the exit status.
func (a *app) printTable(report interface{ Print(io.Writer) error }, failed error) error {
	print := func() error { return report.Print(a.out) }
	if a.json {
		print = func() error { return a.printJSON(report) }
	}
	if err := print(); err != nil || failed == nil {
		return err
	}
	return quietError{failed}
}

// begin says on a terminal what a command does and how long that usually takes, before anything is
// opened, unless --quiet.
func (a *app) begin(format string, args ...any) {
	if !a.quiet && !a.json && a.lines == nil && isTerminal(a.err) {
		a.say(format, args...)
	}
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := printable.Raw(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
