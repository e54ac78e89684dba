package app

import (
	"fmt"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/server"
	"github.com/onnxrl/onnxrl/export/serve/tracing/otlp"
	"github.com/onnxrl/onnxrl/models/drift"
)

// serveConfig is the file that onnxrl serve reads. Relative paths in it are relative to the working
// directory, as those of flags are. What its keys mean is said in settings, their defaults in
// serveDefaults.
type serveConfig struct {
	HTTP           string `yaml:"http"`
	GRPC           string `yaml:"grpc"`
	Health         string
	HealthMetrics  bool
	TokenFile      string
	AdminTokenFile string
	AllowedHosts   []string
	// TLS are the files of the certificate that HTTP and gRPC are encrypted with.
	TLS server.TLS `yaml:"tls"`
	// References of models without a store of their own are looked up in Store.
	Repository     string
	Store          string
	Mode           string
	LoadModels     []string
	ServerName     string
	Watch          bool
	WatchInterval  time.Duration
	MaxBody        configs.Bytes
	MaxConcurrent  int
	Timeout        time.Duration
	NoProve        bool
	LoadTimeout    time.Duration
	ShutdownDelay  time.Duration
	Drain          time.Duration
	AccessLog      bool
	Decisions      serveDecisions
	Trace          serveTrace
	SpareProcessor bool // see processes.SpareProcessor
	// Defaults are the settings of models that say nothing else.
	Defaults modelSettings
	// Models are further models, and the settings of those of repository and store.
	Models []configs.Section `section:"model"`

	models []servedModel
}

// serveDecisions are decisions.Options; see there. Full is drop or wait.
type serveDecisions struct {
	Dir     string
	Every   time.Duration
	Full    string
	Explore bool
}

// modelSettings are serve.Config in a file's words; see there.
type modelSettings struct {
	MaxBatch int
	// NoBatchAxis takes the first axis of inputs for what it is, and batches nothing.
	NoBatchAxis bool
	// Batching shares runs between requests.
	Batching  batchingSettings
	Instances int
	// Threads are those of a run; 0 means 1.
	Threads  int
	MaxQueue int
	// QueueTimeout is how long a request may wait for its run; 0 is as long as it asks.
	QueueTimeout time.Duration
	// NonFinite says where NaN and infinities are refused: auto (in the inputs of policies), allow
	// (nowhere), inputs, outputs or both.
	NonFinite string
	// Versions says which versions are served.
	Versions versionSettings
	// Sequences limits the memories of recurrent models, one for each sequence of requests.
	Sequences sequenceSettings
	// Drift compares observations with those that a policy was published on.
	Drift driftSettings
	// Routes divide requests without a version.
	Routes []routeSettings
	// Shadows are run on copies of requests, and compared.
	Shadows []shadowSettings
}

type batchingSettings struct {
	Off      bool
	MaxDelay time.Duration
	// Preferred are sizes of batches that are run without waiting.
	Preferred []int
}

type versionSettings struct {
	// Latest serves so many of the newest versions, All every one, and Specific those that it
	// names.
	Latest   int
	All      bool
	Specific []string
}

type sequenceSettings struct {
	// Max is the most at once, Idle how long one may be silent before it is dropped.
	Max  int
	Idle time.Duration
}

type driftSettings struct {
	// Limit is the largest population stability index of a feature, Window the number of rows that
	// are compared: several episodes, at least.
	Limit  float64
	Window int
	// Action is what follows beyond the limit: warn (in the log), refuse (requests, until the
	// window is within the limit again) or ignore (nothing is compared).
	Action string
}

type routeSettings struct {
	// Version is the one that requests go to, Weight its share among the weights of all routes.
	Version string
	Weight  float64
}

type shadowSettings struct {
	// Version is the one that is run, Share the share of requests that are copied.
	Version string
	Share   float64
}

// servedModel is an entry of models. With Path it is one ONNX file, with Ref a name or version of
// an artefact store; with neither it only has settings.
type servedModel struct {
	// Name is what clients call the model.
	Name string
	// Path is one ONNX file; Ref is a name or a version of an artefact store. With neither the
	// entry has settings only.
	Path          string
	Ref           string
	modelSettings `yaml:",inline"`
}

// servedModels is what an entry of models can be told.
var servedModels = []configs.Kind{{Defaults: func() any { return servedModel{modelSettings: serveDefaults().Defaults} }}}

func serveDefaults() serveConfig {
	return serveConfig{
		HTTP: "127.0.0.1:8000", GRPC: "127.0.0.1:8001", Mode: "fixed", ServerName: "triton", WatchInterval: time.Second, MaxBody: 64 << 20, LoadTimeout: serve.DefaultLoadTimeout, Drain: 30 * time.Second, Trace: serveTrace{Ratio: 1}, Decisions: serveDecisions{Every: time.Minute, Full: "drop"},
		Defaults: modelSettings{NonFinite: "auto", Drift: driftSettings{Limit: serve.DefaultDriftLimit, Window: drift.DefaultWindow, Action: "warn"}},
	}
}

// driftActions are the words for serve.DriftAction.
var driftActions = [...]string{serve.WarnDrift: "warn", serve.RefuseDrift: "refuse", serve.IgnoreDrift: "ignore"}

var nonFinite = []struct {
	name string
	rule serve.NonFinite
}{{"auto", serve.AutoNonFinite}, {"allow", serve.AllowNonFinite}, {"inputs", serve.RejectNonFiniteInputs}, {"outputs", serve.RejectNonFiniteOutputs}, {"both", serve.RejectNonFinite}}

// Validate implements the check of package configs.
func (c *serveConfig) Validate() error {
	var p configs.Problems
	checkAddress(&p, "http", c.HTTP)
	checkAddress(&p, "grpc", c.GRPC)
	checkAddress(&p, "health", c.Health)
	p.Check(!c.HealthMetrics || c.Health != "", "health_metrics", "there is no health: metrics are shown at its address")
	p.Check(c.HTTP != "" || c.GRPC != "", "http", "there is neither an address for http nor for grpc")
	p.Check((c.TLS.Cert == "") == (c.TLS.Key == ""), "tls", "cert and key belong together")
	p.Check(c.TLS.ClientCA == "" || c.TLS.Cert != "", "tls", "client_ca without cert and key: connections have to be encrypted for clients to show certificates")
	p.Check(c.Decisions.Every > 0, "decisions.every", "is %v, expected more than 0", c.Decisions.Every)
	p.OneOf("decisions.full", c.Decisions.Full, "drop", "wait")
	p.Check(!c.Decisions.Explore || c.Decisions.Dir != "", "decisions.explore", "there is no decisions.dir: what is drawn and not logged teaches nothing")
	p.OneOf("mode", c.Mode, "fixed", "explicit")
	if c.Mode == "explicit" && c.AdminTokenFile == "" {
		for _, address := range []string{c.HTTP, c.GRPC} {
			p.Check(address == "" || server.Loopback(address), "admin_token_file", "missing, but in mode explicit everyone who reaches %s could replace the models: expected a file with a token of administration (--admin-token-file), or an address such as 127.0.0.1:8000", address)
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
	p.OneOf("drift.action", s.Drift.Action, driftActions[:]...)
	p.Check(s.Drift.Limit > 0, "drift.limit", "is %g, expected more than 0", s.Drift.Limit)
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
	c.Drift = serve.Drift{Limit: s.Drift.Limit, Window: s.Drift.Window, Action: serve.DriftAction(max(0, slices.Index(driftActions[:], s.Drift.Action)))}
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

// model returns the settings of a model, whose entry is made where there is none.
func (c *serveConfig) model(name string) *modelSettings {
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
