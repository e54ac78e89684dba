package livetrade

import (
	"fmt"
	"net"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/stream"
)

// Config is the document of a service.
type Config struct {
	// Name begins the ids of its orders, and is the key of its records.
	Name string `yaml:"name"`
	// Policy is a run directory, whose best is meant, or a reference to a version of the store.
	Policy string `yaml:"policy"`
	// Set edits the policy's configuration of data and environment, such as env.fee_rate=0.
	Set []string `yaml:"set,omitzero"`
	// State is the directory of the journal and the snapshots.
	State string `yaml:"state"`
	// Warm begins with the state of features that the policy was published with, in place of a
	// history: messages up to it are left out.
	Warm bool `yaml:"warm,omitzero"`
	// From is the day of the first decision; empty: the first with a whole window.
	From bars.Date `yaml:"from,omitzero"`
	// Source gives the bars, Sink takes what is published.
	Source configs.Kinded `yaml:"source" kinds:"source"`
	Sink   configs.Kinded `yaml:"sink" kinds:"sink"`
	// Broker executes the orders; without one it is a paper account of the service's own, which
	// trades at the prices of the bars by the market's rules and costs.
	Broker configs.Kinded `yaml:"broker,omitzero" kinds:"broker"`
	// Execution is how orders are given to the broker.
	Execution Execution `yaml:"execution,omitzero"`
	// Bars says what happens to bars that do not come as they should.
	Bars stream.Rules `yaml:"bars"`
	// Risk are limits beside those of the environment.
	Risk Risk `yaml:"risk,omitzero"`
	// Swap is how it goes over to another version, which the reference of Policy has come to name.
	Swap Swap `yaml:"swap,omitzero"`
	// Snapshot is the number of batches from a snapshot to the next, which is written when no
	// message comes for a while, and at the latest after twice as many.
	Snapshot int `yaml:"snapshot"`
	// Journal is how much of the journal is kept.
	Journal Retention `yaml:"journal,omitzero"`
	// Alerts names the receivers of risk events, which are sent at once.
	Alerts Alerts `yaml:"alerts,omitzero"`
	// KillFile, while it is there, is the kill switch.
	KillFile string `yaml:"kill_file,omitzero"`
	// HTTP answers with the state, the events and the metrics, and takes the kill switch.
	HTTP HTTP `yaml:"http,omitzero"`
	// Health is the address of a port without tokens for the probes of a cluster, such as :9466 of
	// every network of the machine; empty is none. It answers /livez, and /readyz from when the
	// service has caught up until it is asked to stop.
	Health string `yaml:"health,omitzero"`
	// Trace is where spans go, each decision's and those of its stages.
	Trace Trace `yaml:"trace,omitzero"`
}

// Trace is where spans go.
type Trace struct {
	// Endpoint is that of a collector, such as http://localhost:4318; empty: what the environment
	// variables of OpenTelemetry say, and else nowhere.
	Endpoint string `yaml:"endpoint,omitzero"`
	// Ratio is the share of decisions that are traced.
	Ratio float64 `yaml:"ratio,omitzero"`
}

// HTTP is where others look at a service.
type HTTP struct {
	// Address is such as :9465, which without a host is one of this machine only; empty: none.
	Address string `yaml:"address,omitzero"`
	// TokenFile has the bearer token that is asked for, and AdminTokenFile that of the kill switch.
	TokenFile      string `yaml:"token_file,omitzero"`
	AdminTokenFile string `yaml:"admin_token_file,omitzero"`
	// AllowedHosts are names by which a proxy on this machine may call it.
	AllowedHosts []string `yaml:"allowed_hosts,omitzero"`
}

// Defaults returns the defaults; Name, Policy, State, Source and Sink must be set.
func Defaults() Config {
	return Config{Execution: DefaultExecution(), Bars: stream.DefaultRules(), Snapshot: 256, Alerts: DefaultAlerts(), Trace: Trace{Ratio: 1}}
}

// Validate reports what is wrong with the fields; those of the parts are reported by the parts.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(c.Name != "", "name", "required")
	for _, r := range c.Name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.' {
			p.Addf("name", "%q: expected letters, digits, _, - and .", c.Name)
			break
		}
	}
	p.Check(len(c.Name) <= 40, "name", "%q: expected at most 40 characters", c.Name)
	p.Check(c.Policy != "", "policy", "required: a run directory or a reference")
	p.Check(c.State != "", "state", "required: a directory")
	p.Check(c.Source.Kind != "", "source.kind", "required")
	p.Check(c.Sink.Kind != "", "sink.kind", "required")
	if a := c.HTTP.Address; a != "" {
		_, _, err := net.SplitHostPort(a)
		p.Check(err == nil, "http.address", "%q is no address, expected HOST:PORT or :PORT", a)
	} else {
		p.Check(c.HTTP.TokenFile == "" && c.HTTP.AdminTokenFile == "" && len(c.HTTP.AllowedHosts) == 0, "http.address", "is missing")
	}
	if a := c.Health; a != "" {
		_, _, err := net.SplitHostPort(a)
		p.Check(err == nil, "health", "%q is no address, expected HOST:PORT or :PORT", a)
	}
	p.NonNegative("swap.every", c.Swap.Every)
	p.NonNegative("swap.shadow", c.Swap.Shadow)
	p.InRange("trace.ratio", c.Trace.Ratio, 0, 1)
	p.NonNegative("journal.keep", c.Journal.Keep)
	p.Check(c.Journal.FileMB >= 0 && c.Journal.FileMB <= 1<<20, "journal.file_mb", "%d, expected a number of megabytes", c.Journal.FileMB)
	p.Check(c.Snapshot >= 1, "snapshot", "%d, expected a number of batches", c.Snapshot)
	return p.Err()
}

// fits reports what a service cannot do with the bars of an agent.
func (c *Config) fits(p live.Pipeline) error {
	if c.Warm && p.Adjusted == bars.ByActions {
		return fmt.Errorf("warm: the prices of the agent's data are adjusted by what their dividends and bonus shares make from the first row on (source.adjust: %s), with which bars that arrive cannot go on; expected false, and the history as bars", bars.ByActions)
	}
	return nil
}

// String names the service.
func (c *Config) String() string { return fmt.Sprintf("live %s", c.Name) }
