package serve

import (
	"context"
	"io/fs"
	"time"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Source says which models and versions there are.
type Source interface {
	// Scan lists them, by name. It is called again and again, from one goroutine at a time. A model
	// that cannot be described is listed with its Err; the error of Scan is for what concerns all
	// models, and leaves everything as it was.
	Scan(ctx context.Context) ([]Listing, error)
}

// Listing is a model of a source.
type Listing struct {
	Name   string
	Config Config
	// Stamp changes whenever Config does.
	Stamp string
	// Versions are listed from the oldest to the newest.
	Versions []Candidate
	// Aliases are what else the versions are called.
	Aliases map[string]string
	// Err says why the model cannot be served.
	Err error
	// Found says that nobody has asked for the model by its name: the server is ready without it
	// where it cannot be served, as long as another one can.
	Found bool
}

// Candidate is a version that may be loaded.
type Candidate struct {
	// Name is the version's: a number, or a digest.
	Name string
	// Stamp changes whenever the content does.
	Stamp string
	// Open reads the version.
	Open func(ctx context.Context) (*Content, error)
}

// Content is what a version is made of.
type Content struct {
	Model *onnx.Model
	// BaseDir is the folder of external data, empty where the model holds everything.
	BaseDir string
	// Files has the files that the configuration names: those of warm-ups and initial states; nil
	// for none.
	Files fs.FS
	// Golden is replayed before the version takes requests; nil for none.
	Golden *artifact.Golden
	// Artifact is the version of an artefact store that this was read from, Manifest its
	// description; nil for others.
	Artifact *artifact.Version
	Manifest *artifact.Manifest
	// Digest is that of the artefact, or the SHA-256 of the file in the same form, sha256:…; empty
	// where it is not known.
	Digest string
	// Release frees what Open took, after the last run; nil for nothing.
	Release func() error
}

// Mode says who decides which models are served.
type Mode int

const (
	// Fixed loads everything once, and again when Poll is called.
	Fixed Mode = iota
	// Explicit loads nothing but what Load asks for.
	Explicit
)

// Options of a server.
type Options struct {
	// Compiler is the engine. It is the caller's to close, after the server.
	Compiler engine.Compiler
	// Engine are the options that every model is compiled with, but for Threads and BaseDir.
	Engine engine.Options
	Mode   Mode
	// MaxBatch is the largest batch of models that leave it open; 0 means DefaultMaxBatch.
	MaxBatch int
	// LoadTimeout is how long a version may take from the begin of reading until it is ready; 0
	// means DefaultLoadTimeout. A load that takes longer is abandoned, and what served before goes
	// on.
	LoadTimeout time.Duration
	// MaxAbandonedLoads is how many abandoned loads may still be running, because an engine's call
	// cannot be cancelled; 0 means DefaultMaxAbandonedLoads. With that many nothing more is loaded
	// until one of them ends, and what serves goes on.
	MaxAbandonedLoads int
	// Prove, unless nil, is called with each version before it is compiled here; where it returns
	// an error the version is refused. It is for trying the version where a crash of the engine
	// takes nothing with it: package prove does that in another process. It must return soon after
	// its context has ended.
	Prove func(ctx context.Context, t Trial) error
	// Verify, unless nil, is called with each version after its golden inputs were replayed; where
	// it returns an error the version does not become ready. It must return soon after its context
	// has ended.
	Verify func(ctx context.Context, c *Content) error
	// MaxConcurrent is the most requests in the server at once, waiting ones included; 0 means no
	// limit but those of the models.
	MaxConcurrent int
	// Observer receives every request; nil for none.
	Observer Observer
	// Clock is what durations are measured with; nil is the system's.
	Clock Clock
	// Log receives what was loaded, unloaded and refused, and why; nil for nothing.
	Log func(ModelStatus)
}

// Clock measures time.
type Clock interface {
	// Now is used for differences and for the time of the last request.
	Now() time.Time
	// AfterFunc calls f once, in a goroutine of its own, after d, unless stop is called before;
	// stop reports whether it was in time.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// SystemClock is the system's clock.
type SystemClock struct{}

// Now implements Clock.
func (SystemClock) Now() time.Time { return time.Now() }

// AfterFunc implements Clock.
func (SystemClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
