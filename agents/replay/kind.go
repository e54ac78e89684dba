package replay

import (
	"context"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/flightrpc/flighturl"
)

// Dataset is the section dataset of a document.
type Dataset struct {
	// Path is the folder of the data set.
	Path string `yaml:"path"`
	// Share is the part of each batch that is drawn from it. 1 is offline: no environment is
	// stepped but in validation, train.num_envs is 1, and train.total_env_steps counts rounds, that
	// is updates for each train_freq. Below 1 the agent acts in the environment, and draws the rest
	// from its own replay.
	Share float64 `yaml:"share"`
	// Validation is the share of the episodes that are held out, drawn by Seed; evaluations have
	// action_diff, or action_match, and action_score on them.
	Validation float64 `yaml:"validation"`
	Seed       uint64  `yaml:"seed"`
}

// SetDefaults implements configs.Defaulter: a section that is given asks for learning offline.
func (c *Dataset) SetDefaults() { *c = Dataset{Share: 1} }

// Validate implements configs.Validator.
func (c Dataset) Validate() error {
	var p configs.Problems
	p.Check(c.Path != "", "path", "required: the folder of a data set, such as onnxrl record makes")
	p.Check(c.Share > 0 && c.Share <= 1, "share", "is %g, expected a share of each batch above 0 and at most 1", c.Share)
	p.Check(c.Validation >= 0 && c.Validation < 1, "validation", "is %g, expected a share of the episodes from 0 to below 1", c.Validation)
	return p.Err()
}

// DatasetKind is a format of data sets.
type DatasetKind struct {
	// Name is what the format is called, such as parquet.
	Name string
	// Open reads what a folder says of its data set. A folder of another format is an error.
	Open func(dir string) (Recorded, error)
}

// Recorded is a data set that was opened.
type Recorded interface {
	// Source returns the SHA-256 of the data set, in hexadecimal, and the digests of the versions
	// that its episodes come of.
	Source() (digest string, parents []string)
	// Learn reads the episodes as a learner's replay. judge, nil where none are held out, returns
	// the metrics of a policy on those that are, which its environment need not be stepped for.
	Learn(ctx context.Context, f envs.Factory, c Dataset) (given agents.Replay, judge func(ctx context.Context, a agents.Agent) (map[string]float64, error), err error)
}

// Served is the section replay of a document: where transitions are kept instead of in the
// learner's own replay.
type Served struct {
	// Kind is flight.
	Kind string `yaml:"kind"`
	// URL is grpc://HOST:PORT, or grpc+tls://HOST:PORT.
	URL string `yaml:"url"`
	// Table is the name of one that the server has, and that can be sampled.
	Table string `yaml:"table"`
	// Writer is the name by which the server knows the run's batches; empty is one that is drawn.
	Writer string `yaml:"writer,omitempty"`
	// Policy is whose transitions they are to others.
	Policy int32 `yaml:"policy,omitempty"`
	// Prefetch is the number of samples that are asked for ahead. With 0 a sample may be of all
	// that the run has recorded, and runs that are alone repeat.
	Prefetch int `yaml:"prefetch"`
	// Rounds is the number of rounds that are sent together; a sample does not wait for it.
	Rounds int `yaml:"rounds"`
	// CA is a file with the certificate of the authority, in PEM; empty are the system's. Cert and
	// Key are the client's own, TokenFile has the bearer token.
	CA        string `yaml:"ca,omitempty"`
	Cert      string `yaml:"cert,omitempty"`
	Key       string `yaml:"key,omitempty"`
	TokenFile string `yaml:"token_file,omitempty"`
	// AnyBuild takes a server of another build of the program, which may draw other samples.
	AnyBuild bool `yaml:"any_build,omitempty"`
	// Timeout is how long a server that does not answer is waited for.
	Timeout time.Duration `yaml:"timeout"`
}

// SetDefaults implements configs.Defaulter.
func (c *Served) SetDefaults() {
	*c = Served{Kind: "flight", Table: "transitions", Rounds: 16, Timeout: time.Minute}
}

// Validate implements configs.Validator.
func (c Served) Validate() error {
	var p configs.Problems
	p.Check(c.Kind == "flight", "kind", "is %q, expected flight", c.Kind)
	p.Join("url", flighturl.Check(c.URL))
	p.Check(c.Table != "", "table", "required: the name of a table of the server")
	p.AtLeast("prefetch", c.Prefetch, 0)
	p.AtLeast("rounds", c.Rounds, 1)
	p.Check(c.Timeout > 0, "timeout", "is %v, expected more than 0", c.Timeout)
	p.Check((c.Cert == "") == (c.Key == ""), "cert", "needs key, and key cert")
	return p.Err()
}

// ServedKind is a protocol of servers that keep transitions.
type ServedKind struct {
	// Name is that of replay.kind.
	Name string
	// Dial makes a connection. The server need not be there yet.
	Dial func(c Served) (Connection, error)
}

// Connection is one to a server. It is safe for concurrent use.
type Connection interface {
	// Store is the learner's place there.
	Store() Store
	// Close ends the connection, and whatever goes on over it.
	Close() error
}
