package serve

import (
	"context"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Service is what the wire formats need of a server; [Server] is the one that there is. All methods
// are safe for concurrent use, and their errors are [Error]s.
type Service interface {
	// Infer answers a request.
	Infer(ctx context.Context, req *Request, resp *Response) error
	// Live reports whether the process works, Ready whether it takes requests: it is not closing,
	// and each model that it was asked to serve has a version that does. Of models that were
	// found and not asked for, one that serves is enough once all have been tried.
	Live() bool
	Ready() bool
	// ModelReady is nil when the model, or the version of it where one is named, takes requests;
	// otherwise it says why not.
	ModelReady(model, version string) error
	// Metadata describes a version, the one that a request without a version gets where none is
	// named.
	Metadata(model, version string) (Metadata, error)
	// Config returns the configuration that a model is served with.
	Config(model, version string) (Config, error)
	// Index lists every version that is known, by model name and then as versions are ordered; with
	// ready only those that take requests.
	Index(ready bool) []ModelStatus
	// Statistics returns those of one version, of all versions of a model, or, without a name, of
	// everything, in the order of Index.
	Statistics(model, version string) ([]Statistics, error)
	// AbandonedLoads is the number of loads that exceeded their timeout, or whose model was
	// unloaded meanwhile, and are still running.
	AbandonedLoads() int
	// Crashes is the number of versions that were refused because trying them ended the process
	// that tried them; see Options.Prove.
	Crashes() int
	// Load loads or reloads a model from its source, Unload stops serving it. Load returns when the
	// model serves, Unload when no new request gets it. They are Unsupported unless the server's
	// mode is Explicit.
	Load(ctx context.Context, model string, o LoadOptions) error
	Unload(ctx context.Context, model string) error
	// Golden returns inputs that the version is known to answer, and its answers; nil where it has
	// none.
	Golden(model, version string) (*artifact.Golden, error)
}

// LoadOptions change what Load loads.
type LoadOptions struct {
	// Config, JSON in the form of Triton's model configuration, takes the place of the model's own.
	Config []byte
	// Files are a model by path within its folder, such as "1/model.onnx", and take the place of
	// the source's versions. Config is then required.
	Files map[string][]byte
}

// Port is an input or output of a version.
type Port struct {
	Name  string
	DType tensor.DType
	// Shape has -1 for free extents, the batch included; nil where the rank is not known.
	Shape []int
	// Implicit marks ports that requests in a sequence leave out and descriptions do not list:
	// those that carry state, and inputs that the server fills.
	Implicit bool
}

// Metadata describes a version.
type Metadata struct {
	Name string
	// Version is the one described, Versions all that are ready, Aliases the names that stand for
	// this one.
	Version           string
	Versions, Aliases []string
	Inputs, Outputs   []Port
	// Digest is that of the artefact or of the file, as [Content].Digest.
	Digest string
	// MaxBatch is the most rows of one request, 0 where the model has no batch axis.
	MaxBatch int
	// Info is what the model file says of itself: its metadata entries.
	Info map[string]string
	// Manifest describes versions of an artefact store; nil for others.
	Manifest *artifact.Manifest
}

// State is where a version is in its life, in Triton's words.
type State string

// The states of a version.
const (
	Loading     State = "LOADING"
	Ready       State = "READY"
	Unloading   State = "UNLOADING"
	Unavailable State = "UNAVAILABLE"
)

// ModelStatus is one line of the index.
type ModelStatus struct {
	Name string
	// Version is empty for a model none of whose versions could be listed.
	Version string
	Aliases []string
	State   State
	// Reason says why the state is what it is, where that is not obvious.
	Reason string
	// Default marks the version that a request without a version gets, routes aside.
	Default bool
}
