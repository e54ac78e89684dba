package app

import (
	"context"
	"io"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/server"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Program is what the subcommands of another program, such as onnxrl-bench, share with those of
// onnxrl: global flags, streams, engines, the log and how signals end a command.
type Program struct{ app *app }

// Run runs the command line of the process over other subcommands than onnxrl's and ends it with
// the exit status, as [Main] does.
func Run(name, short string, commands ...func(*Program) *cobra.Command) {
	a := newApp(name, os.Stdin, os.Stdout, os.Stderr)
	var list []*cobra.Command
	for _, c := range commands {
		list = append(list, c(&Program{a}))
	}
	os.Exit(a.run(untilSignalled(), a.root(name, short, commandGroup{"Commands", list}), os.Args[1:]))
}

// Engine opens an engine, which the program closes at its end: by its name, or without one that of
// --engine. ONNX Runtime is installed on first use unless --no-install forbids it.
func (p *Program) Engine(ctx context.Context, name string) (engine.Compiler, error) {
	if name == "" {
		name = p.app.engine
	}
	return p.app.namedEngine(ctx, name)
}

// Actor starts processes of this program that act for a run (run.Options), with its engine: the
// command [ActorName] is to be served by [Main].
func (p *Program) Actor(c engine.Compiler) func(context.Context, int) (actors.Conn, error) {
	return p.app.launchActor(c, nil)
}

// EngineFlag is what --engine says.
func (p *Program) EngineFlag() string { return p.app.engine }

// Print writes a report as a table, or with --json as JSON. What the report fails by, unless nil,
// is in the report and sets only the exit status.
func (p *Program) Print(report interface{ Print(io.Writer) error }, failed error) error {
	return p.app.printTable(report, failed)
}

// Progress says on a terminal what is being done, unless --quiet.
func (p *Program) Progress(format string, args ...any) {
	p.app.begin(format, args...)
}

// Listening is a server on the network.
type Listening struct {
	server *server.Server
}

// Listen has a server that runs on the named engine answer on free ports of this machine, over HTTP
// and gRPC, as onnxrl serve does by default.
func (p *Program) Listen(s *serve.Server, engine string) (*Listening, error) {
	c := serveDefaults()
	c.HTTP, c.GRPC = "127.0.0.1:0", "127.0.0.1:0"
	n, err := c.listen(p.app.log, nil)
	if err != nil {
		return nil, err
	}
	c.answer(n, s, engine, p.app.log, nil, nil)
	return &Listening{n}, nil
}

// URL is where HTTP is answered.
func (l *Listening) URL() string {
	return (&url.URL{Scheme: "http", Host: l.server.HTTP()}).String()
}

// GRPC is the address host:port of gRPC.
func (l *Listening) GRPC() string { return l.server.GRPC() }

// Close frees the addresses. Requests that do not end within a second are cut off.
func (l *Listening) Close() error {
	l.server.Close()
	return nil
}
