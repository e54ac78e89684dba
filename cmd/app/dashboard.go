package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/export/dashboard"
	"github.com/onnxrl/onnxrl/export/serve/server"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/secretfile"
)

// dashboardFlags are the command line of dashboard. Its server is protected as that of serve is.
type dashboardFlags struct {
	server          serveConfig
	live, liveToken string
	interval        time.Duration
	buckets         int
}

func (a *app) dashboardCommand() *cobra.Command {
	f := dashboardFlags{server: serveDefaults()}
	f.server.HTTP, f.server.GRPC = "127.0.0.1:8090", ""
	cmd := &cobra.Command{
		Use:   "dashboard {RUNS… | --live URL}",
		Short: "Show training and trading on a page that is kept open",
		Long: `Serves a page that shows what runs write while they write it. It has training runs compared, with their seeds as bands; reports of evaluate with equity, drawdown, weights and trades; populations with their genealogy; worlds of scml run; logs of data live; published policies with their lineage, and how they came to a recorded decision. Nothing is written, and training knows nothing of it.

RUNS are directories, of runs or with runs somewhere below them (default: runs), and files that scml run and data live have written. New ones are found while the page is open. With --live URL the page shows a live trading service too: what URL/live/state and URL/live/events say.

Only this machine reaches the page unless --http says otherwise; --token-file and the certificate protect it as they protect serve. The page loads nothing from anywhere else. Memory is bounded: of each metric of each run so many points are kept that all fit into --buckets, with the least and the greatest of what one stands for.`,
		Example: `  onnxrl dashboard runs
  onnxrl dashboard runs/cartpole_ppo-1 runs/cartpole_ppo-2
  onnxrl dashboard --live http://127.0.0.1:8080
  onnxrl dashboard runs --http 0.0.0.0:8090 --token-file token --tls-cert cert.pem --tls-key key.pem`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return saying("dashboard", a.dashboard(cmd.Context(), args, &f))
		},
	}
	fl := cmd.Flags()
	c := &f.server
	fl.StringVar(&c.HTTP, "http", c.HTTP, "address of the page; port 0 takes a free one")
	fl.StringVar(&c.TokenFile, "token-file", "", "file with the bearer token that the page asks for")
	fl.StringArrayVar(&c.AllowedHosts, "allow-host", nil, "further name of the server: what a proxy on this machine passes on as Host; may be repeated")
	fl.StringVar(&c.TLS.Cert, "tls-cert", "", "certificate chain in PEM")
	fl.StringVar(&c.TLS.Key, "tls-key", "", "key of the certificate in PEM")
	fl.StringVar(&f.live, "live", "", "URL of a live trading service, such as http://127.0.0.1:8080")
	fl.StringVar(&f.liveToken, "live-token-file", "", "file with the bearer token of the live trading service")
	fl.DurationVar(&f.interval, "interval", time.Second, "how often files are looked at")
	fl.IntVar(&f.buckets, "buckets", 2<<20, "points that are kept in all, of 40 bytes each")
	return cmd
}

// check refuses what contradicts itself.
func (f *dashboardFlags) check() error {
	if err := f.server.Validate(); err != nil {
		return err
	}
	switch {
	case f.interval < 10*time.Millisecond:
		return fmt.Errorf("--interval %v: expected 10ms or more", f.interval)
	case f.buckets < 1:
		return fmt.Errorf("--buckets %d: expected a positive number", f.buckets)
	case f.liveToken != "" && f.live == "":
		return errors.New("--live-token-file needs --live")
	case f.live == "":
		return nil
	}
	u, err := url.Parse(f.live)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("--live %s: expected the URL of a service, such as http://127.0.0.1:8080", f.live)
	}
	return nil
}

// dashboardStarted is the line that --json prints when requests are answered. The keys are stable.
type dashboardStarted struct {
	HTTP  string   `json:"http"`
	TLS   bool     `json:"tls"`
	Token bool     `json:"token"`
	PID   int      `json:"pid"`
	Paths []string `json:"paths"`
	Live  string   `json:"live,omitempty"`
}

// dashboard runs until the context ends.
func (a *app) dashboard(ctx context.Context, paths []string, f *dashboardFlags) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	if len(paths) == 0 && f.live == "" {
		paths = []string{"runs"}
	}
	if err := dashboard.Check(paths); err != nil {
		return err
	}
	o := dashboard.Options{Paths: paths, Interval: f.interval, Buckets: f.buckets, Explain: dashboard.Attribution(func(ctx context.Context) (engine.Compiler, error) { return a.foreign(ctx, a.engine) }), Version: a.version, Log: a.log}
	if f.live != "" {
		token, err := secretfile.FileOrVariable(f.liveToken, "")
		if err != nil {
			return fmt.Errorf("read the token: %w", err)
		}
		o.Live = &dashboard.Live{URL: f.live, Token: token}
	}
	failed := make(chan error, 1)
	n, err := f.server.listen(a.log, func(err error) { failed <- err })
	if err != nil {
		return err
	}
	defer n.Close()
	defer a.onHangup(n, f.server.files())()
	board := dashboard.New(o)
	// Pages listen for as long as they are open: they end with the board.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// A question names all runs that are compared.
	n.AnswerHTTP(board.Handler(n.Guard), 1<<20)
	watched := make(chan error, 1)
	go func() { watched <- board.Run(ctx) }()
	err = a.printDashboard(f, n, paths)
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	stop()
	return errors.Join(err, quietly(<-watched))
}

// quietly is nil for the end of a context, which is how a board ends.
func quietly(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// printDashboard says where the page is.
func (a *app) printDashboard(f *dashboardFlags, n *server.Server, paths []string) error {
	c := &f.server
	doc := dashboardStarted{HTTP: n.HTTP(), TLS: c.TLS.Cert != "", Token: c.TokenFile != "", PID: os.Getpid(), Paths: append([]string{}, paths...), Live: f.live}
	if a.json {
		return jsonOutput{w: a.out}.Encode(doc)
	}
	for _, w := range c.exposed() {
		a.serveWarning("%s", w)
	}
	scheme := "http"
	if doc.TLS {
		scheme = "https"
	}
	_, err := fmt.Fprintf(a.out, "%s://%s/ (%s)\n", scheme, doc.HTTP, cmp.Or(f.live, "Ctrl-C ends it"))
	return err
}
