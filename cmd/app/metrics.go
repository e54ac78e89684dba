package app

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/export/serve/server"
	"github.com/onnxrl/onnxrl/runtime/metrics/exporter"
)

// metricsFlags say where a command that works for long answers Prometheus.
type metricsFlags struct {
	address, token string
	hosts          []string
}

// addMetrics gives a command that works for long the flag --metrics. What the command trains is
// then shown by app.watch, from before it begins until it has ended.
func (a *app) addMetrics(cmd *cobra.Command) {
	var f metricsFlags
	fl := cmd.Flags()
	fl.StringVar(&f.address, "metrics", "", "answer Prometheus at this address, for instance :9464 (default: not at all)")
	fl.StringVar(&f.token, "metrics-token-file", "", "with --metrics, file with the bearer token that is asked for")
	fl.StringArrayVar(&f.hosts, "metrics-allow-host", nil, "with --metrics, name by which a proxy on this machine may call it")
	rarely(fl, "metrics", "metrics-token-file", "metrics-allow-host")
	work := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if f.address == "" {
			if f.token != "" || len(f.hosts) > 0 {
				return fmt.Errorf("%s: --metrics-token-file and --metrics-allow-host belong to --metrics", cmd.Name())
			}
			return work(cmd, args)
		}
		end, err := a.answerMetrics(&f)
		if err != nil {
			return fmt.Errorf("%s: --metrics %s: %w", cmd.Name(), f.address, err)
		}
		defer end()
		return work(cmd, args)
	}
}

// answerMetrics begins to answer Prometheus, until end is called.
func (a *app) answerMetrics(f *metricsFlags) (end func(), err error) {
	address, err := server.Local(f.address)
	if err != nil {
		return nil, err
	}
	files := server.Files{Token: f.token}
	n, err := server.Listen(server.Options{HTTP: address, Files: files, AllowedHosts: f.hosts, Flag: "--metrics-allow-host", Log: a.log, Failed: a.unanswered("--metrics")})
	if err != nil {
		return nil, err
	}
	watch := exporter.New(time.Now)
	watch.ShowProcess()
	a.watch = watch
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", watch.Handler())
	n.AnswerHTTP(n.Guard.Handler(guard.Use, mux), 0)
	if f.token == "" && !server.Loopback(address) {
		a.say("warning: --metrics listens on %s without a token (--metrics-token-file): everyone who reaches it can read it", address)
	}
	if !a.quiet {
		a.say("metrics on http://%s/metrics", n.HTTP())
	}
	same := func() {}
	if f.token != "" { // Without one the signal ends the command, as it does without --metrics.
		same = a.onHangup(n, files)
	}
	return func() {
		same()
		n.Close()
	}, nil
}
