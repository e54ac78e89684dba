package app

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/spf13/pflag"
)

// serveFlags are edits of the configuration: settings, whose values are in given, and others.
type serveFlags struct {
	set                       *pflag.FlagSet
	open                      func(path string) (*configs.Document, error)
	settings                  []serveSetting
	given                     serveConfig
	file                      string
	models, ab, shadow, edits []string
}

// serveSetting is a flag that sets a key. Its type and its default are those of the field.
type serveSetting struct {
	flag, key string
	field     any // a pointer
	help      string
}

// settings declares the keys of the server and of defaults that have a flag. To add one, add its
// field, and a row here.
func (c *serveConfig) settings() []serveSetting {
	return []serveSetting{
		{"repository", "repository", &c.Repository, "serve all models of this directory, laid out as Triton wants it"},
		{"store", "store", &c.Store, "serve all models of this artefact store; references are looked up in it"},
		{"mode", "mode", &c.Mode, "fixed, or explicit: clients load and unload models"},
		{"load-model", "load_models", &c.LoadModels, "in mode explicit, load this model at the start, * for all; may be repeated"},
		{"server-name", "server_name", &c.ServerName, "name in the server's metadata, which Triton's clients compare"},
		{"watch", "watch", &c.Watch, "look for new versions all the time"},
		{"watch-interval", "watch_interval", &c.WatchInterval, "how often --watch looks"},
		{"http", "http", &c.HTTP, "address for HTTP, empty for none; port 0 takes a free one"},
		{"grpc", "grpc", &c.GRPC, "address for gRPC, empty for none"},
		{"health", "health", &c.Health, "address of a port for the probes of a cluster, which show no certificate and no token: /livez and /readyz over HTTP without TLS; without a host, such as :8002, of every network; empty for none"},
		{"health-metrics", "health_metrics", &c.HealthMetrics, "answer Prometheus there, too, at /metrics without TLS; a token of --token-file is asked for"},
		{"token-file", "token_file", &c.TokenFile, "file with the bearer tokens, one a line, of which requests must have one"},
		{"admin-token-file", "admin_token_file", &c.AdminTokenFile, "file with the bearer tokens, one a line, of which loading and unloading models needs one; --mode explicit needs one unless only this machine reaches the server"},
		{"allow-host", "allowed_hosts", &c.AllowedHosts, "further name of the server: what a proxy on this machine passes on as Host, or the host of a page that may send requests; may be repeated"},
		{"tls-cert", "tls.cert", &c.TLS.Cert, "certificate chain in PEM; makes HTTP and gRPC encrypted"},
		{"tls-key", "tls.key", &c.TLS.Key, "key of the certificate in PEM"},
		{"tls-client-ca", "tls.client_ca", &c.TLS.ClientCA, "certificates in PEM of the authorities whose clients are let in: every client, over HTTP and gRPC, has to show a certificate of theirs (mTLS)"},
		{"max-body", "max_body", &c.MaxBody, "largest request, such as 64MiB"},
		{"max-concurrent", "max_concurrent", &c.MaxConcurrent, "most requests at once, waiting ones included; 0 for no limit but the queues"},
		{"timeout", "timeout", &c.Timeout, "longest time for a request; 0 for what clients ask"},
		{"no-prove", "no_prove", &c.NoProve, "load versions without trying them in a process of their own first, for models that you trust where memory or processes are scarce: a model that crashes ONNX Runtime then ends the server"},
		{"load-timeout", "load_timeout", &c.LoadTimeout, "how long a version may take to load and to prove itself; what served before goes on"},
		{"shutdown-delay", "shutdown_delay", &c.ShutdownDelay, "after a signal to stop: how long to go on answering, not ready and with connections that end, until requests go elsewhere (as long as a load balancer takes to notice)"},
		{"drain", "drain", &c.Drain, "how long requests that have begun may take after that"},
		{"access-log", "access_log", &c.AccessLog, "write a line for every request, over HTTP and over gRPC"},
		{"decisions", "decisions.dir", &c.Decisions.Dir, "log into this folder, in Parquet files, what policies see and do, with which probability, and what clients say came of it (parameters reward, terminated and truncated); onnxrl dataset import joins rewards and makes a data set"},
		{"decisions-every", "decisions.every", &c.Decisions.Every, "publish files so often: what a killed server loses at most"},
		{"decisions-full", "decisions.full", &c.Decisions.Full, "where decisions come faster than they can be written: drop some, or let answers wait"},
		{"explore", "decisions.explore", &c.Decisions.Explore, "draw actions from the policies' distributions instead of taking the best, so that what is logged tells of other policies, too; needs --decisions"},
		{"trace-endpoint", "trace.endpoint", &c.Trace.Endpoint, "URL of an OpenTelemetry collector that spans of requests are sent to, such as http://localhost:4318 (OTLP over HTTP); without it as OTEL_EXPORTER_OTLP_ENDPOINT says"},
		{"trace-ratio", "trace.ratio", &c.Trace.Ratio, "share of the requests that are traced, where the client's traceparent does not decide it"},
		{"spare-processor", "spare_processor", &c.SpareProcessor, "for a machine that trains too: keep requests from waiting for a thread that training keeps off its processor ($GOMAXPROCS one higher)"},
		{"max-batch", "defaults.max_batch", &c.Defaults.MaxBatch, "most rows in one run of a model; 0 for what the model says"},
		{"max-delay", "defaults.batching.max_delay", &c.Defaults.Batching.MaxDelay, "how long a request may wait for others to share a run with"},
		{"no-batching", "defaults.batching.off", &c.Defaults.Batching.Off, "run every request by itself"},
		{"max-queue", "defaults.max_queue", &c.Defaults.MaxQueue, "most requests that wait for a model; 0 for 1024"},
		{"instances", "defaults.instances", &c.Defaults.Instances, "runs of a model at once; 0 for 1"},
		{"allow-nonfinite", "defaults.non_finite", (*allowNonFinite)(&c.Defaults.NonFinite), "take NaN and infinities in the inputs of policies, which are refused otherwise"},
	}
}

// allowNonFinite is non_finite as a flag that is there or not.
type allowNonFinite string

// String, Set and Type implement pflag.Value.
func (a *allowNonFinite) String() string { return strconv.FormatBool(*a == "allow") }
func (a *allowNonFinite) Type() string   { return "bool" }
func (a *allowNonFinite) Set(text string) error {
	on, err := strconv.ParseBool(text)
	*a = "auto"
	if on {
		*a = "allow"
	}
	return err
}

func newServeFlags(set *pflag.FlagSet, open func(path string) (*configs.Document, error)) *serveFlags {
	f := &serveFlags{set: set, open: open, given: serveDefaults()}
	f.settings = f.given.settings()
	for _, s := range f.settings {
		switch p := s.field.(type) {
		case *string:
			set.StringVar(p, s.flag, *p, s.help)
		case *bool:
			set.BoolVar(p, s.flag, *p, s.help)
		case *int:
			set.IntVar(p, s.flag, *p, s.help)
		case *float64:
			set.Float64Var(p, s.flag, *p, s.help)
		case *time.Duration:
			set.DurationVar(p, s.flag, *p, s.help)
		case *[]string:
			set.StringArrayVar(p, s.flag, *p, s.help)
		case *configs.Bytes:
			set.TextVar(p, s.flag, *p, s.help)
		case *allowNonFinite:
			set.VarPF(p, s.flag, "", s.help).NoOptDefVal = "true"
		default:
			panic(fmt.Sprintf("--%s: no flag has the type %T", s.flag, p))
		}
	}
	set.StringArrayVar(&f.models, "model", nil, "serve NAME=FILE.onnx or NAME=REFERENCE; may be repeated")
	set.StringArrayVar(&f.ab, "ab", nil, "divide requests without a version: MODEL=VERSION:WEIGHT,VERSION:WEIGHT")
	set.StringArrayVar(&f.shadow, "shadow", nil, "run MODEL=VERSION or MODEL=VERSION:SHARE on copies of requests and compare")
	set.StringArrayVar(&f.edits, "set", nil, "edit the configuration, for instance --set defaults.threads=2")
	return f
}

// load reads the file, if there is one, and applies the flags that were given.
func (f *serveFlags) load() (*serveConfig, error) {
	doc, err := configs.Parse("no file", nil)
	if f.file != "" {
		doc, err = f.open(f.file)
	}
	if err != nil {
		return nil, err
	}
	if err := doc.Set(f.edits...); err != nil {
		return nil, err
	}
	for _, s := range f.settings {
		if !f.set.Changed(s.flag) {
			continue
		}
		if err := doc.SetValue(s.key, reflect.ValueOf(s.field).Elem().Interface()); err != nil {
			return nil, fmt.Errorf("--%s: %w", s.flag, err)
		}
	}
	c := serveDefaults()
	b := configs.Book{Lists: map[string][]configs.Kind{"model": servedModels}}
	if problems := b.Check(doc.Section(), c); len(problems) > 0 {
		return nil, problems
	}
	if err := doc.Decode(&c); err != nil {
		return nil, err
	}
	for _, s := range c.Models {
		m := servedModel{modelSettings: c.Defaults}
		if err := s.Decode(&m); err != nil {
			return nil, err
		}
		c.models = append(c.models, m)
	}
	if err := f.addModels(&c); err != nil {
		return nil, err
	}
	return &c, c.checkModels()
}

func (f *serveFlags) addModels(c *serveConfig) error {
	for _, text := range f.models {
		name, what, ok := strings.Cut(text, "=")
		if !ok {
			// A path or reference alone names itself.
			name, what = "", text
		}
		m := servedModel{Name: name, modelSettings: c.Defaults}
		if strings.EqualFold(filepath.Ext(what), ".onnx") {
			m.Path = what
			m.Name = cmp.Or(name, strings.TrimSuffix(filepath.Base(what), filepath.Ext(what)))
		} else {
			m.Ref = what
			m.Name = cmp.Or(name, nameOfReference(what))
		}
		if m.Name == "" || what == "" || ok && name == "" {
			return fmt.Errorf("--model %q: expected NAME=FILE.onnx or NAME=REFERENCE", text)
		}
		c.models = append(c.models, m)
	}
	for _, text := range f.ab {
		name, list, ok := strings.Cut(text, "=")
		if !ok || list == "" {
			return fmt.Errorf("--ab %q: expected MODEL=VERSION:WEIGHT,VERSION:WEIGHT", text)
		}
		m := c.model(name)
		for part := range strings.SplitSeq(list, ",") {
			version, weight, err := cutNumber(part)
			if err != nil {
				return fmt.Errorf("--ab %q: %w", text, err)
			}
			m.Routes = append(m.Routes, routeSettings{Version: version, Weight: weight})
		}
	}
	for _, text := range f.shadow {
		name, rest, ok := strings.Cut(text, "=")
		if !ok || rest == "" {
			return fmt.Errorf("--shadow %q: expected MODEL=VERSION or MODEL=VERSION:SHARE", text)
		}
		version, share, err := cutNumber(rest)
		if err != nil {
			return fmt.Errorf("--shadow %q: %w", text, err)
		}
		m := c.model(name)
		m.Shadows = append(m.Shadows, shadowSettings{Version: version, Share: share})
	}
	return nil
}

// cutNumber splits VERSION:NUMBER; without a number it is 1. Digests have a colon of their own,
// after which no number in [0, 1000] can follow.
func cutNumber(text string) (version string, number float64, err error) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 || strings.HasSuffix(text[:at], "sha256") {
		return text, 1, nil
	}
	if number, err = strconv.ParseFloat(text[at+1:], 64); err != nil {
		return "", 0, fmt.Errorf("%q is no number", text[at+1:])
	}
	return text[:at], number, nil
}
