package actors

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/flightrpc/flighturl"
)

// Config is the part of a run's document that says who acts.
type Config struct {
	// Count is the number of actors, each with as many of the environments, that act while the
	// learner learns: RLlib's num_env_runners, Sample Factory's num_workers. 0 acts and learns in
	// turns.
	Count int `yaml:"count"`
	// MaxPolicyLag is how many updates the parameters that act may be behind those that learn from
	// what they did. 0 lets actors wait for the learner, and has the same results each time.
	MaxPolicyLag int `yaml:"max_policy_lag"`
	// Processes gives each actor a process of its own, for environments that use a processor's time
	// or may crash: one that ends is started again, up to three times in a row, and the unroll that
	// it was playing is lost. Without, actors share the process of the learner.
	Processes bool `yaml:"processes"`
	// URLs are servers of actors on other machines (onnxrl actor serve), grpc://HOST:PORT or
	// grpc+tls://HOST:PORT, among which the actors are spread. An actor whose server or connection
	// ends is begun again there or at the next one, as is a process.
	URLs []string `yaml:"urls,omitempty"`
	// CA is a file with the certificate of the servers' authority, in PEM; empty are the system's.
	// Cert and Key are the learner's own, TokenFile has the bearer token.
	CA        string `yaml:"ca,omitempty"`
	Cert      string `yaml:"cert,omitempty"`
	Key       string `yaml:"key,omitempty"`
	TokenFile string `yaml:"token_file,omitempty"`
	// Timeout is how long servers that are not there, or have no free slot, are waited for; 0 is a
	// minute.
	Timeout time.Duration `yaml:"timeout,omitempty"`
}

// Defaults returns no actors; if there were some, they would be one update behind at most.
func Defaults() Config { return Config{MaxPolicyLag: 1} }

// On reports whether there are actors.
func (c Config) On() bool { return c.Count > 0 }

// Elsewhere reports whether actors are in other processes than the learner.
func (c Config) Elsewhere() bool { return c.On() && (c.Processes || len(c.URLs) > 0) }

// Patience is how long servers are waited for.
func (c Config) Patience() time.Duration {
	if c.Timeout == 0 {
		return time.Minute
	}
	return c.Timeout
}

// Kind is a protocol of servers of actors.
type Kind struct {
	// Name is what the protocol is called, and Schemes those of the URLs in train.actors.urls.
	Name    string
	Schemes []string
	// Launch returns what begins an actor at one of the servers of a section, whose learner runs
	// its networks by an engine of that name.
	Launch func(c Config, engine string, log *slog.Logger) func(ctx context.Context, index int) (Conn, error)
}

// Validate reports all problems of the section.
func (c Config) Validate() error {
	var p configs.Problems
	p.NonNegative("count", c.Count)
	p.NonNegative("max_policy_lag", c.MaxPolicyLag)
	for i, url := range c.URLs {
		p.Join(fmt.Sprintf("urls[%d]", i), flighturl.Check(url))
	}
	p.Check(len(c.URLs) == 0 || !c.Processes, "processes", "actors are at urls, or processes of this machine: expected one of the two")
	p.Check(len(c.URLs) > 0 || c.CA == "" && c.Cert == "" && c.Key == "" && c.TokenFile == "" && c.Timeout == 0, "urls", "required by ca, cert, key, token_file and timeout, which are of servers")
	p.Check((c.Cert == "") == (c.Key == ""), "cert", "needs key, and key cert")
	p.Check(c.Timeout >= 0, "timeout", "is %v, expected at least 0", c.Timeout)
	return p.Err()
}
