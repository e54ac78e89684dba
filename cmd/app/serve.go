package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/trader"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/decisions"
	"github.com/onnxrl/onnxrl/export/serve/server"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/processes"
)

func (a *app) serveCommand() *cobra.Command {
	var f *serveFlags
	cmd := &cobra.Command{
		Use:   "serve [CONFIG.yaml]",
		Short: "Serve models over HTTP and gRPC (Open Inference Protocol 2)",
		Long: `Serves models over HTTP and gRPC by the Open Inference Protocol, version 2, with the extensions that Triton's clients use; GET / is a page that shows them.

Models come from the command line (--model NAME=FILE.onnx or NAME=REFERENCE), from a directory laid out as Triton wants it (--repository), or from an
artefact store (--store: all its models, and where references are looked up). With --watch, what is published there is served as soon as its golden values
are right, and no request fails meanwhile. Everything can be in a file instead (- reads it from standard input), whose keys the flags edit.

` + referenceHelp + ``,
		Example: `  onnxrl serve --model policy=best.onnx
  onnxrl serve --store runs/demo/artifacts --watch
  onnxrl serve serve.yaml --http 0.0.0.0:8000 --token-file token --tls-cert cert.pem --tls-key key.pem`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.file = args[0]
			}
			if err := a.serve(cmd.Context(), f); err != nil {
				return fmt.Errorf("serve: %w", err)
			}
			return nil
		},
	}
	f = newServeFlags(cmd.Flags(), a.document)
	rarely(cmd.Flags(), "ab", "access-log", "admin-token-file", "allow-host", "allow-nonfinite", "decisions", "decisions-every", "decisions-full", "drain", "explore", "health", "health-metrics", "instances", "load-model", "load-timeout", "max-body", "max-concurrent", "max-queue", "no-batching", "mode", "no-prove", "server-name", "shadow", "shutdown-delay", "spare-processor", "tls-client-ca", "trace-endpoint", "trace-ratio", "watch-interval")
	return cmd
}

// started is the line that --json prints when requests are answered. The keys are stable.
type started struct {
	HTTP string `json:"http,omitempty"`
	GRPC string `json:"grpc,omitempty"`
	// Health is where probes are answered.
	Health string `json:"health,omitempty"`
	TLS    bool   `json:"tls"`
	Token  bool   `json:"token"`
	// AdminToken says that loading and unloading need a token of their own.
	AdminToken bool            `json:"admin_token"`
	Engine     string          `json:"engine"`
	PID        int             `json:"pid"`
	Models     []startedStatus `json:"models"`
}

type startedStatus struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Aliases []string `json:"aliases"`
	State   string   `json:"state"`
	Reason  string   `json:"reason,omitempty"`
}

// serve runs until the context ends.
func (a *app) serve(ctx context.Context, f *serveFlags) (err error) {
	c, err := f.load()
	if err != nil {
		return err
	}
	if c.SpareProcessor {
		defer processes.SpareProcessor()()
	}
	with, err := a.compiler(ctx)
	if err != nil {
		return err
	}
	// Signals are counted from here: one that comes while models load is not lost.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	k, err := newCatalogue(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	var stopping atomic.Bool
	warned := &warnings{texts: map[string]string{}}
	o := serve.Options{Compiler: with, MaxConcurrent: c.MaxConcurrent, LoadTimeout: c.LoadTimeout, Verify: proveBars(with), Log: a.serveLog(&stopping, warned)}
	if !c.NoProve {
		if p := a.prover(with); p != nil {
			o.Prove = p.Try
		}
	}
	if c.Mode == "explicit" {
		o.Mode = serve.Explicit
	}
	tracer, flush, err := a.tracer(ctx, c, warned)
	if err != nil {
		return err
	}
	defer flush()
	s, err := serve.New(o, k)
	if err != nil {
		return err
	}
	// Before anything is loaded, so that an address that is taken is an error at once.
	failed := make(chan error, 3)
	n, err := c.listen(a.log, func(err error) { failed <- err })
	if err != nil {
		return errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	defer n.Close()
	// Before anything is loaded as well, so that the health endpoints answer while a large model
	// loads.
	var requests *slog.Logger
	if c.AccessLog {
		requests = a.requestLog()
	}
	var answers serve.Service = s
	if o := c.Decisions; o.Dir != "" {
		d, err := decisions.New(s, decisions.Options{Dir: o.Dir, Every: o.Every, Wait: o.Full == "wait", Explore: o.Explore, Log: a.log})
		if err != nil {
			return errors.Join(err, s.Close(context.WithoutCancel(ctx)))
		}
		defer func() {
			err = errors.Join(err, d.Close())
			n := d.Counts()
			a.serveNote("%d decisions are in %s", n.Published-n.Removed, o.Dir)
			if n.Queue+n.Disk+n.Form+n.Removed > 0 {
				a.serveWarning("decisions that are not: %d because their folder was removed meanwhile, %d because the queue was full, %d because their file could not be written, %d because no action was asked for, or an input has a type that no log has", n.Removed, n.Queue, n.Disk, n.Form)
			}
		}()
		answers = d
	}
	c.answer(n, answers, with.Name(), a.log, requests, tracer)
	err = errors.Join(s.Poll(ctx), loadModels(ctx, s, c.LoadModels))
	if err != nil && ctx.Err() == nil && (c.Watch || c.tolerates(err)) {
		// Sources that are watched may be repaired, and models that were not asked for by name stop nobody.
		a.serveWarn(warned, err)
		err = nil
	}
	if err == nil {
		err = a.printStarted(c, n, s, with.Name())
	}
	if err != nil {
		stopping.Store(true)
		now, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel()
		// Nothing has been printed yet.
		_ = n.Shutdown(now)
		return errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	// Clients are given their time.
	defer a.stop.hold(c.ShutdownDelay + c.Drain + stopGrace)()
	err = a.serveUntil(ctx, s, k, n, failed, f, hangup, warned)
	stopping.Store(true)
	if c.ShutdownDelay > 0 && err == nil {
		s.LameDuck()
		n.LameDuck()
		a.serveNote("stopping: not ready any more, requests are answered for another %v", c.ShutdownDelay)
		select {
		case <-time.After(c.ShutdownDelay):
		case err = <-failed:
		}
	}
	return errors.Join(err, a.drain(s, n, c))
}

// tolerates reports whether an error, or each of several, is about a model of repository or store
// that neither the configuration nor --load-model names.
func (c *serveConfig) tolerates(err error) bool {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range list.Unwrap() {
			if !c.tolerates(e) {
				return false
			}
		}
		return true
	}
	e := new(serve.Error)
	return errors.As(err, &e) && e.Model != "" && !slices.Contains(c.LoadModels, e.Model) && !slices.ContainsFunc(c.models, func(m servedModel) bool { return m.Name == e.Model })
}

// loadModels loads what is asked for at the start.
func loadModels(ctx context.Context, s *serve.Server, names []string) error {
	if slices.Contains(names, "*") {
		names = nil
		for _, m := range s.Index(false) {
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	var errs []error
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		errs = append(errs, s.Load(ctx, name, serve.LoadOptions{}))
	}
	return errors.Join(errs...)
}

// proveBars has versions that trade from bars prove that bars still become the recorded features
// and actions.
func proveBars(c engine.Compiler) func(context.Context, *serve.Content) error {
	return func(ctx context.Context, content *serve.Content) error {
		if content.Artifact == nil {
			return nil
		}
		_, err := trader.VerifyBars(ctx, *content.Artifact, c)
		return err
	}
}

// serveUntil watches and reloads until the context ends or the network fails.
func (a *app) serveUntil(ctx context.Context, s *serve.Server, k *catalogue, n *server.Server, failed <-chan error, f *serveFlags, hangup <-chan os.Signal, warned *warnings) error {
	var watch sync.WaitGroup
	defer watch.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if c := k.config.Load(); c.Watch {
		t := time.NewTicker(c.WatchInterval)
		defer t.Stop()
		watch.Go(func() { s.Watch(ctx, t.C, func(err error) { a.serveWarn(warned, err) }) })
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-hangup:
			if err := k.reload(f); err != nil {
				a.serveWarning("the configuration stays as it was: %v", err)
			}
			if err := n.Reload(k.config.Load().files()); err != nil {
				a.serveWarning("tokens or certificate stay as they were: %v", err)
			}
			warned.forget("")
			if err := s.Poll(ctx); err != nil && ctx.Err() == nil {
				a.serveWarn(warned, err)
			}
			a.serveNote("reloaded")
		}
	}
}

// warnings are those that were written, with their models: one that persists is written once.
type warnings struct {
	mu    sync.Mutex
	texts map[string]string
}

// first reports whether a text is new.
func (w *warnings) first(text, model string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.texts[text]
	if len(w.texts) >= 1000 {
		clear(w.texts)
	}
	w.texts[text] = model
	return !ok
}

// forget is called when a model serves: if the same goes wrong again, it is news. Without a model
// everything is forgotten.
func (w *warnings) forget(model string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.texts, func(_, of string) bool { return model == "" || of == model })
}

// serveWarn writes an error of the server, or each of several, once.
func (a *app) serveWarn(w *warnings, err error) {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range list.Unwrap() {
			a.serveWarn(w, e)
		}
		return
	}
	model := ""
	if e := new(serve.Error); errors.As(err, &e) {
		model = e.Model
	}
	if w.first(err.Error(), model) {
		a.serveWarning("%v", err)
	}
}

// drain ends the server: what has begun finishes, as long as it may.
func (a *app) drain(s *serve.Server, n *server.Server, c *serveConfig) error {
	a.serveNote("stopping: requests that have begun may take another %v", c.Drain)
	ctx, cancel := context.WithTimeout(context.Background(), c.Drain)
	defer cancel()
	err := n.Shutdown(ctx)
	// Requests that did not finish in time are cut off by closing the network; the server then has
	// none.
	err = errors.Join(err, s.Close(ctx))
	if err == nil {
		a.serveNote("stopped")
	}
	return err
}

// reload reads the configuration again. Models and their settings change; addresses and limits of
// the network stay until the program starts again.
func (k *catalogue) reload(f *serveFlags) error {
	c, err := f.load()
	if err != nil {
		return err
	}
	old := k.config.Load()
	if c.Repository != old.Repository {
		return fmt.Errorf("repository was %q and is %q: restart the server for that", old.Repository, c.Repository)
	}
	k.config.Store(c)
	return nil
}

func (a *app) serveNote(format string, args ...any) {
	if !a.quiet {
		a.say(format, args...)
	}
}

func (a *app) serveWarning(format string, args ...any) {
	a.say("warning: "+format, args...)
}

// serveLog tells what was loaded and refused, one line each; that everything is unloaded at the end
// goes without saying.
func (a *app) serveLog(stopping *atomic.Bool, warned *warnings) func(serve.ModelStatus) {
	return func(m serve.ModelStatus) {
		what := fmt.Sprintf("%s: %s", strings.TrimSpace(m.Name+" "+shortVersion(m.Version)), strings.ToLower(string(m.State)))
		if m.State == serve.Ready {
			warned.forget(m.Name)
		}
		switch {
		case stopping.Load():
		case m.State == serve.Unavailable && m.Reason != "":
			warned.first((&serve.Error{Model: m.Name, Version: m.Version, Err: errors.New(m.Reason)}).Error(), m.Name)
			a.serveWarning("%s: %s", what, m.Reason)
		case m.State == serve.Ready && m.Reason != "":
			a.serveWarning("%s: %s", strings.TrimSpace(m.Name+" "+shortVersion(m.Version)), m.Reason)
		case m.State == serve.Loading && m.Reason != "":
			a.serveWarning("%s: %s", m.Name, m.Reason)
		case m.State == serve.Ready && len(m.Aliases) > 0:
			a.serveNote("%s (%s)", what, strings.Join(m.Aliases, ", "))
		default:
			a.serveNote("%s", what)
		}
	}
}

// shortVersion shortens a digest.
func shortVersion(v string) string {
	if hex, ok := strings.CutPrefix(v, "sha256:"); ok {
		v = hex
	}
	if len(v) > 12 {
		v = v[:12]
	}
	return v
}

// printStarted says where what is served: for scripts one line of JSON, after which requests are
// answered.
func (a *app) printStarted(c *serveConfig, n *server.Server, s *serve.Server, engine string) error {
	index := s.Index(false)
	doc := started{HTTP: n.HTTP(), GRPC: n.GRPC(), Health: n.Health(), TLS: c.TLS.Cert != "", Token: c.TokenFile != "", AdminToken: c.AdminTokenFile != "", Engine: engine, PID: os.Getpid(), Models: []startedStatus{}}
	for _, m := range index {
		doc.Models = append(doc.Models, startedStatus{m.Name, m.Version, append([]string{}, m.Aliases...), string(m.State), m.Reason})
	}
	if a.json {
		return jsonOutput{w: a.out}.Encode(doc)
	}
	for _, w := range c.exposed() {
		a.serveWarning("%s", w)
	}
	if a.lines != nil {
		a.lines.log.Info("started", "http", doc.HTTP, "grpc", doc.GRPC, "health", doc.Health, "tls", doc.TLS, "token", doc.Token, "admin_token", doc.AdminToken, "engine", doc.Engine, "pid", doc.PID, "models", doc.Models)
		return nil
	}
	scheme := "http"
	if c.TLS.Cert != "" {
		scheme = "https"
	}
	if at := n.HTTP(); at != "" {
		fmt.Fprintf(a.out, "HTTP  %s://%s/ (a page for people; v2/… for programs; metrics)\n", scheme, at)
	}
	if at := n.GRPC(); at != "" {
		fmt.Fprintf(a.out, "gRPC  %s\n", at)
	}
	if doc.Health != "" {
		fmt.Fprintf(a.out, "health  http://%s%s, %s\n", doc.Health, server.LivePath, server.ReadyPath)
	}
	for _, m := range index {
		state := strings.ToLower(string(m.State))
		fmt.Fprintf(a.out, "model %s %s %s\n", m.Name, cmp.Or(shortVersion(m.Version), "-"), strings.TrimSpace(state+" "+m.Reason))
	}
	if len(index) == 0 {
		fmt.Fprintln(a.out, "no models yet")
	}
	return nil
}
