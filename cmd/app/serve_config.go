package app

import (
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/tracing/otlp"
)

// serveConfig is the file that onnxrl serve reads. Relative paths in it are relative to the working
// directory, as those of flags are.
type serveConfig struct {
	// HTTP and GRPC are addresses host:port to listen on; empty for not at all. Port 0 takes a free
	// one.
	HTTP string `yaml:"http"`
	GRPC string `yaml:"grpc"`
	// TokenFile holds the bearer token that every request must have, but for the files of the page
	// and the health endpoints.
	TokenFile string
	// AdminTokenFile holds the bearer token of requests that load and unload models; without one,
	// that of TokenFile is theirs. Mode explicit needs one where other machines reach the server.
	AdminTokenFile string
	// AllowedHosts are names that the server is known by, besides localhost: those that a proxy on
	// the same machine passes on as Host, and the hosts of pages that may send requests.
	AllowedHosts []string
	TLS          serveTLS `yaml:"tls"`
	// Repository is a directory as Triton lays it out, Store an artefact store: all models of both
	// are served. References of models without a store of their own are looked up in Store.
	Repository string
	Store      string
	// Mode is fixed, where the sources decide what is served, or explicit, where clients load and
	// unload.
	Mode string
	// LoadModels are loaded at the start in mode explicit; "*" stands for all.
	LoadModels []string
	// ServerName is what the server calls itself in its metadata. Triton's clients expect triton.
	ServerName string
	// Watch looks for new versions every WatchInterval.
	Watch         bool
	WatchInterval time.Duration
	// MaxBody bounds one request, MaxConcurrent all requests at once (0: no limit but the queues),
	// Timeout the time of one (0: none but the client's).
	MaxBody       configs.Bytes
	MaxConcurrent int
	Timeout       time.Duration
	// NoProve loads versions without trying them in a process of their own first.
	NoProve bool
	// LoadTimeout bounds the time from reading a version until it is ready.
	LoadTimeout time.Duration
	// ShutdownDelay is how long the server goes on answering after it was told to stop, while it
	// says that it is not ready and its connections end: long enough for whoever divides requests
	// among servers to notice.
	ShutdownDelay time.Duration
	// Drain is how long requests that have begun may take after that.
	Drain time.Duration
	// AccessLog writes a line for each request, over HTTP and over gRPC.
	AccessLog bool
	// Trace is where spans of requests go.
	Trace serveTrace
	// SpareProcessor is for servers beside a training run; see priority.SpareProcessor.
	SpareProcessor bool
	// Defaults are the settings of models that say nothing else.
	Defaults modelSettings
	// Models are further models, and the settings of those of repository and store.
	Models []configs.Section

	models []servedModel
}

// serveTLS are files in PEM: the server's certificate chain and its key, and, for clients that need
// certificates too (mTLS), those of the authorities that issue them.
type serveTLS struct {
	Cert, Key string
	ClientCA  string `yaml:"client_ca"`
}

// modelSettings are serve.Config in a file's words; see there.
type modelSettings struct {
	MaxBatch     int
	NoBatchAxis  bool
	Batching     batchingSettings
	Instances    int
	Threads      int
	MaxQueue     int
	QueueTimeout time.Duration
	// NonFinite says where NaN and infinities are refused: auto (in the inputs of policies), allow
	// (nowhere), inputs, outputs or both.
	NonFinite string
	Versions  versionSettings
	Sequences sequenceSettings
	Routes    []routeSettings
	Shadows   []shadowSettings
}

type batchingSettings struct {
	Off       bool
	MaxDelay  time.Duration
	Preferred []int
}

type versionSettings struct {
	Latest   int
	All      bool
	Specific []string
}

type sequenceSettings struct {
	Max  int
	Idle time.Duration
}

type routeSettings struct {
	Version string
	Weight  float64
}

type shadowSettings struct {
	Version string
	Share   float64
}

// servedModel is an entry of models. With Path it is one ONNX file, with Ref a name or version of
// an artefact store; with neither it only has settings.
type servedModel struct {
	Name          string
	Path          string
	Ref           string
	modelSettings `yaml:",inline"`
}

func serveDefaults() serveConfig {
	return serveConfig{
		HTTP: "127.0.0.1:8000", GRPC: "127.0.0.1:8001", Mode: "fixed", ServerName: "triton", WatchInterval: time.Second, MaxBody: 64 << 20, LoadTimeout: serve.DefaultLoadTimeout, Drain: 30 * time.Second, Trace: serveTrace{Ratio: 1},
		Defaults: modelSettings{NonFinite: "auto"},
	}
}

var nonFinite = []struct {
	name string
	rule serve.NonFinite
}{{"auto", serve.AutoNonFinite}, {"allow", serve.AllowNonFinite}, {"inputs", serve.RejectNonFiniteInputs}, {"outputs", serve.RejectNonFiniteOutputs}, {"both", serve.RejectNonFinite}}

// Validate implements the check of package configs.
func (c *serveConfig) Validate() error {
	var p configs.Problems
	for _, v := range []struct{ key, address string }{{"http", c.HTTP}, {"grpc", c.GRPC}} {
		if v.address == "" {
			continue
		}
		if _, port, err := net.SplitHostPort(v.address); err != nil {
			p.Addf(v.key, "%q is no address, expected host:port such as 127.0.0.1:8000", v.address)
		} else if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
			p.Addf(v.key, "%q has no port from 0 to 65535", v.address)
		}
	}
	p.Check(c.HTTP != "" || c.GRPC != "", "http", "there is neither an address for http nor for grpc")
	p.Check((c.TLS.Cert == "") == (c.TLS.Key == ""), "tls", "cert and key belong together")
	p.Check(c.TLS.ClientCA == "" || c.TLS.Cert != "", "tls", "client_ca without cert and key: connections have to be encrypted for clients to show certificates")
	p.OneOf("mode", c.Mode, "fixed", "explicit")
	if c.Mode == "explicit" && c.AdminTokenFile == "" {
		for _, address := range []string{c.HTTP, c.GRPC} {
			p.Check(address == "" || loopback(address), "admin_token_file", "missing, but in mode explicit everyone who reaches %s could replace the models: expected a file with a token of administration (--admin-token-file), or an address such as 127.0.0.1:8000", address)
		}
	}
	p.Check(!c.Watch || c.Mode == "fixed", "watch", "expected mode fixed: in mode explicit, clients decide what is loaded")
	p.Check(len(c.LoadModels) == 0 || c.Mode == "explicit", "load_models", "expected mode explicit: in mode fixed every model is loaded")
	p.NotEmpty("server_name", c.ServerName)
	p.Positive("watch_interval", c.WatchInterval)
	p.Positive("max_body", c.MaxBody)
	p.NonNegative("max_concurrent", c.MaxConcurrent)
	p.NonNegative("timeout", c.Timeout)
	p.Positive("load_timeout", c.LoadTimeout)
	p.NonNegative("shutdown_delay", c.ShutdownDelay)
	p.NonNegative("drain", c.Drain)
	if c.Trace.Endpoint != "" {
		if err := otlp.CheckEndpoint(c.Trace.Endpoint); err != nil {
			p.Addf("trace.endpoint", "%v", err)
		}
	}
	p.InRange("trace.ratio", c.Trace.Ratio, 0, 1)
	return p.Err()
}

// Validate implements the check of package configs.
func (s *modelSettings) Validate() error {
	var p configs.Problems
	names := make([]string, 0, len(nonFinite))
	for _, n := range nonFinite {
		names = append(names, n.name)
	}
	p.OneOf("non_finite", s.NonFinite, names...)
	c := s.config()
	p.Join("", c.Validate())
	return p.Err()
}

// Validate implements the check of package configs.
func (m *servedModel) Validate() error {
	var p configs.Problems
	p.NotEmpty("name", m.Name)
	p.Check(m.Path == "" || m.Ref == "", "path", "there is a ref as well, expected one of them")
	p.Join("", m.modelSettings.Validate())
	return p.Err()
}

// config is what the server takes.
func (s *modelSettings) config() serve.Config {
	c := serve.Config{
		MaxBatch: s.MaxBatch, NoBatchAxis: s.NoBatchAxis, Batching: serve.Batching(s.Batching), Instances: s.Instances, Threads: s.Threads,
		MaxQueue: s.MaxQueue, QueueTimeout: s.QueueTimeout, Policy: serve.VersionPolicy(s.Versions), Sequences: serve.Sequences{Max: s.Sequences.Max, Idle: s.Sequences.Idle},
	}
	for _, n := range nonFinite {
		if n.name == s.NonFinite {
			c.NonFinite = n.rule
		}
	}
	for _, r := range s.Routes {
		c.Routes = append(c.Routes, serve.Route(r))
	}
	for _, s := range s.Shadows {
		c.Shadows = append(c.Shadows, serve.Shadow(s))
	}
	return c
}

// serveFlags are edits of the configuration.
type serveFlags struct {
	file, repository, store, mode, http, grpc   string
	tokenFile, adminTokenFile                   string
	cert, key, clientCA                         string
	allowHosts                                  []string
	watch, accessLog, noBatching, spare         bool
	models, ab, shadow, sets                    []string
	maxBatch, maxQueue, maxConcurrent, instance int
	maxDelay, interval, timeout, drain, delay   time.Duration
	loadTimeout                                 time.Duration
	noProve                                     bool
	allowNonFinite                              bool
	loadModels                                  []string
	serverName, traceEndpoint                   string
	traceRatio                                  float64
	maxBody                                     configs.Bytes
}

// edit is a flag and the key that it sets.
type edit struct {
	flag, key string
	value     any
}

func (f *serveFlags) edits() []edit {
	nonFinite := "auto"
	if f.allowNonFinite {
		nonFinite = "allow"
	}
	return []edit{
		{"http", "http", f.http}, {"grpc", "grpc", f.grpc}, {"token-file", "token_file", f.tokenFile}, {"admin-token-file", "admin_token_file", f.adminTokenFile}, {"allow-host", "allowed_hosts", f.allowHosts},
		{"tls-cert", "tls.cert", f.cert}, {"tls-key", "tls.key", f.key}, {"tls-client-ca", "tls.client_ca", f.clientCA},
		{"repository", "repository", f.repository}, {"store", "store", f.store}, {"mode", "mode", f.mode}, {"load-model", "load_models", f.loadModels}, {"server-name", "server_name", f.serverName}, {"watch", "watch", f.watch}, {"watch-interval", "watch_interval", f.interval},
		{"max-body", "max_body", f.maxBody}, {"max-concurrent", "max_concurrent", f.maxConcurrent}, {"timeout", "timeout", f.timeout}, {"load-timeout", "load_timeout", f.loadTimeout}, {"no-prove", "no_prove", f.noProve}, {"shutdown-delay", "shutdown_delay", f.delay}, {"drain", "drain", f.drain}, {"access-log", "access_log", f.accessLog}, {"spare-processor", "spare_processor", f.spare},
		{"trace-endpoint", "trace.endpoint", f.traceEndpoint}, {"trace-ratio", "trace.ratio", f.traceRatio},
		{"max-batch", "defaults.max_batch", f.maxBatch}, {"max-delay", "defaults.batching.max_delay", f.maxDelay}, {"no-batching", "defaults.batching.off", f.noBatching},
		{"max-queue", "defaults.max_queue", f.maxQueue}, {"instances", "defaults.instances", f.instance}, {"allow-nonfinite", "defaults.non_finite", nonFinite},
	}
}

// load reads the file, if there is one, and applies the flags that were given.
func (f *serveFlags) load(changed func(flag string) bool) (*serveConfig, error) {
	doc, err := configs.Parse("no file", nil)
	if f.file != "" {
		doc, err = configs.Open(f.file)
	}
	if err != nil {
		return nil, err
	}
	if err := doc.Set(f.sets...); err != nil {
		return nil, err
	}
	for _, e := range f.edits() {
		if !changed(e.flag) {
			continue
		}
		if err := doc.SetValue(e.key, e.value); err != nil {
			return nil, fmt.Errorf("--%s: %w", e.flag, err)
		}
	}
	c := serveDefaults()
	if err := doc.Decode(&c); err != nil {
		return nil, err
	}
	var problems configs.Errors
	for _, s := range c.Models {
		m := servedModel{modelSettings: c.Defaults}
		if err := s.Decode(&m); err != nil {
			if list, ok := err.(configs.Errors); ok {
				problems = append(problems, list...)
				continue
			}
			return nil, err
		}
		c.models = append(c.models, m)
	}
	if len(problems) > 0 {
		return nil, problems
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
		m := c.settings(name)
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
		m := c.settings(name)
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

// settings returns the entry of a model, which is made where there is none.
func (c *serveConfig) settings(name string) *modelSettings {
	for i := range c.models {
		if c.models[i].Name == name {
			return &c.models[i].modelSettings
		}
	}
	c.models = append(c.models, servedModel{Name: name, modelSettings: c.Defaults})
	return &c.models[len(c.models)-1].modelSettings
}

// checkModels reports what is wrong with the models as a whole, flags included.
func (c *serveConfig) checkModels() error {
	var p configs.Problems
	for i := range c.models {
		m := &c.models[i]
		p.Join(fmt.Sprintf("models[%d]", i), m.Validate())
		p.Check(m.Path != "" || m.Ref != "" || c.Repository != "" || c.Store != "", fmt.Sprintf("models[%d]", i), "%q has neither path nor ref, and there is neither a repository nor a store that it may be in", m.Name)
		p.Check(slices.IndexFunc(c.models, func(o servedModel) bool { return o.Name == m.Name }) == i, fmt.Sprintf("models[%d].name", i), "%q is there twice", m.Name)
	}
	p.Check(len(c.models) > 0 || c.Repository != "" || c.Store != "", "", "nothing to serve: expected --model, --repository or --store, or those keys in the file")
	return p.Err()
}
