package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/models/drift"
)

// Config says how a model is served. The zero value is a model that runs one request at a time on
// one instance, with everything the model file says taken as it is.
type Config struct {
	// MaxBatch is the most rows of one run and of one request, as Triton's max_batch_size. 0 lets
	// the server decide: models all of whose inputs and outputs have the same free first extent are
	// combined up to Options.MaxBatch rows and larger requests run by themselves; others have no
	// batch axis. Whatever it is, requests are combined only where the rows of a run do not depend
	// on each other, which is tried while a version is loaded.
	MaxBatch int
	// NoBatchAxis says that the first axis is no batch, whatever it looks like: requests are never
	// combined. A max_batch_size of 0 in Triton's configuration sets it.
	NoBatchAxis bool
	Batching    Batching
	// Instances is the number of sessions, and so of runs at once; 0 means 1. Threads is the number
	// of threads within a run; 0 means 1.
	Instances, Threads int
	// MaxQueue is the most requests that may wait; 0 means 1024. QueueTimeout is how long one may
	// wait at most; 0 means as long as its context allows.
	MaxQueue     int
	QueueTimeout time.Duration
	// NonFinite says what happens to NaN and infinities.
	NonFinite NonFinite
	// Drift says what happens where observations are not those that a policy was published on.
	Drift Drift
	// ModelFile is the name of the model in the folder of a version; empty means model.onnx.
	ModelFile string
	// Policy says which versions are loaded.
	Policy VersionPolicy
	// Sequences bounds them; State adds to, or takes the place of, what the model's metadata says.
	Sequences Sequences
	State     []StatePort
	// Controls are inputs that the server fills with what it knows of a request's sequence.
	Controls []ControlInput
	// Ports are what requests give and get, where that is not as the model has it; everything said
	// here must fit the model.
	Ports []PortConfig
	// WarmUps are run before a version becomes ready.
	WarmUps []WarmUp
	// Ignored are the fields of a configuration that have no effect here, and why.
	Ignored []string
	// Routes divide the requests that name no version.
	Routes []Route
	// Shadows get copies of requests.
	Shadows []Shadow
}

// Batching is how requests are combined.
type Batching struct {
	// Off runs every request by itself.
	Off bool
	// MaxDelay is how long a request may wait for others while an instance is free; 0 takes what is
	// there.
	MaxDelay time.Duration
	// Preferred are numbers of rows that need no further waiting. Without them only a full batch
	// does not wait for MaxDelay.
	Preferred []int
}

// VersionPolicy says which versions of a model are loaded. Exactly one field is set; the zero value
// is Latest 1.
type VersionPolicy struct {
	// Latest loads the newest n.
	Latest int
	// All loads all.
	All bool
	// Specific loads those: numbers, digests, prefixes of digests, or aliases, which are followed
	// when they move.
	Specific []string
}

// Sequences bounds the sequences of a model.
type Sequences struct {
	// Max is the most at once; 0 means 1024. Idle is how long one may rest before its state is
	// dropped; 0 means a minute.
	Max  int
	Idle time.Duration
	// Direct says that the configuration asks for Triton's strategy of that name. State lies beside
	// the sequence here, so any instance takes any step whatever it says.
	Direct bool
}

// StatePort is a pair of ports that carries state from one request of a sequence to the next.
type StatePort struct {
	Input  string `json:"input"`
	Output string `json:"output"`
	// Shape is that of the state of one sequence, without the batch axis; it may be left out where
	// the input declares it.
	Shape []int `json:"shape"`
	// Initial is the state at the start: one value for all elements, one for each, or none for
	// zeros.
	Initial Values `json:"initial"`
	// File takes the place of Initial: below the folder "initial_state" of the model,
	// little-endian.
	File string `json:"-"`
}

// Route gives a version a share of the requests that name none.
type Route struct {
	Version string
	// Weight is relative to the sum of all routes' weights.
	Weight float64
}

// Shadow runs a version on copies of requests that another version answers, and compares.
type Shadow struct {
	Version string
	// Share of the requests that are copied, in (0, 1]; 0 means all.
	Share float64
}

// Defaults of Config and Options.
const (
	DefaultMaxBatch          = 64
	DefaultMaxQueue          = 1024
	DefaultMaxSequences      = 1024
	DefaultIdle              = time.Minute
	DefaultLoadTimeout       = 2 * time.Minute
	DefaultMaxAbandonedLoads = 8
	DefaultModelFile         = "model.onnx"
)

// Validate reports everything that is wrong with the configuration.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, v := range []struct {
		key   string
		value int
	}{{"max_batch", c.MaxBatch}, {"instances", c.Instances}, {"threads", c.Threads}, {"max_queue", c.MaxQueue}, {"sequences.max", c.Sequences.Max}, {"policy.latest", c.Policy.Latest}} {
		if v.value < 0 {
			bad("%s is %d, expected at least 0", v.key, v.value)
		}
	}
	if !(c.Drift.Limit >= 0) {
		bad("drift.limit is %g, expected at least 0", c.Drift.Limit)
	}
	if w := c.Drift.Window; w < 0 || w > 0 && w < 100 {
		bad("drift.window is %d, expected at least 100 rows, or 0 for %d", w, drift.DefaultWindow)
	}
	if c.Instances > 1024 {
		bad("instances is %d, expected at most 1024", c.Instances)
	}
	for _, v := range []struct {
		key   string
		value time.Duration
	}{{"batching.max_delay", c.Batching.MaxDelay}, {"queue_timeout", c.QueueTimeout}, {"sequences.idle", c.Sequences.Idle}} {
		if v.value < 0 {
			bad("%s is %v, expected at least 0", v.key, v.value)
		}
	}
	for i, p := range c.Batching.Preferred {
		if p < 1 || c.MaxBatch > 0 && p > c.MaxBatch {
			bad("batching.preferred[%d] is %d, expected 1 to the largest batch", i, p)
		}
	}
	if c.NonFinite < AutoNonFinite || c.NonFinite > RejectNonFinite {
		bad("non_finite is %d, which is no rule", c.NonFinite)
	}
	if n := c.ModelFile; n != "" && (n == "." || !fs.ValidPath(n) || strings.ContainsAny(n, `/\:`)) {
		bad("model_file is %q, expected the name of a file", n)
	}
	set := 0
	for _, on := range []bool{c.Policy.Latest > 0, c.Policy.All, len(c.Policy.Specific) > 0} {
		if on {
			set++
		}
	}
	if set > 1 {
		bad("policy has %d of latest, all and specific, expected one", set)
	}
	sum := 0.0
	for i, r := range c.Routes {
		if !(r.Weight >= 0) || math.IsInf(r.Weight, 0) {
			bad("routes[%d].weight is %v, expected a finite number of at least 0", i, r.Weight)
		}
		sum += r.Weight
	}
	if len(c.Routes) > 0 && !(sum > 0) {
		bad("the weights of routes add up to %v, expected more than 0", sum)
	}
	for i, s := range c.Shadows {
		if !(s.Share >= 0 && s.Share <= 1) {
			bad("shadows[%d].share is %v, expected 0 to 1", i, s.Share)
		}
	}
	for i, s := range c.State {
		if s.Input == "" || s.Output == "" {
			bad("state[%d] has input %q and output %q, expected names", i, s.Input, s.Output)
		}
	}
	for i, k := range c.Controls {
		if err := k.validate(); err != nil {
			bad("controls[%d]: %w", i, err)
		}
	}
	return errors.Join(errs...)
}

// modelFile is the name of the model in the folder of a version: a file, or a folder with the file
// and its external data.
func (c *Config) modelFile() string { return cmp.Or(c.ModelFile, DefaultModelFile) }

// withDefaults fills in what 0 stands for.
func (c Config) withDefaults() Config {
	c.Instances, c.Threads = max(c.Instances, 1), max(c.Threads, 1)
	if c.MaxQueue == 0 {
		c.MaxQueue = DefaultMaxQueue
	}
	if c.Drift.Limit == 0 {
		c.Drift.Limit = DefaultDriftLimit
	}
	if c.Drift.Window == 0 {
		c.Drift.Window = drift.DefaultWindow
	}
	if c.Sequences.Max == 0 {
		c.Sequences.Max = DefaultMaxSequences
	}
	if c.Sequences.Idle == 0 {
		c.Sequences.Idle = DefaultIdle
	}
	if !c.Policy.All && len(c.Policy.Specific) == 0 && c.Policy.Latest == 0 {
		c.Policy.Latest = 1
	}
	return c
}
