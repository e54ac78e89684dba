package publish

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Domain is implemented by factories of environments whose specs do not say all that a published
// policy needs, such as those of a market.
type Domain interface {
	// Meaning returns what observations and actions are outside of the environments. It may read
	// their data again.
	Meaning() (Meaning, error)
	// WithAccount returns the configuration of the environments, as their factory has it, with the
	// account among the observations, for a router with limits on risk.
	WithAccount() any
}

// Meaning is what observations and actions are outside of an environment. The zero Meaning is that
// of an environment that shows raw observations and takes actions as they are.
type Meaning struct {
	// Scalings move into the model, and Tables have the unscaled rows of windows, by field.
	Scalings []bake.Affine
	Tables   map[string]*tensor.Tensor
	// Simplex makes the network's actions weights, and Action makes one action of weights again;
	// both are nil where actions are others.
	Simplex *bake.Simplex
	Action  func(action, weights []float32)
	// Info goes into the metadata, Pipeline is how inputs are made, as JSON for the manifest, and
	// Ports describes inputs and outputs by name.
	Info     map[string]string
	Pipeline json.RawMessage
	Ports    map[string]string
	// Past has the data of the splits to train and to validate on, and what they know of the
	// future.
	Past Past
	// Files, unless nil, returns what lies beside the model of a policy, whose heads have these
	// numbers of alternatives.
	Files func(one *served.Policy, heads []int) ([]artifact.NewFile, error)
	// Account is nil where nothing is held.
	Account *Account
}

// Account is how a router with limits on risk, or on what is held, deals with an account.
type Account struct {
	// Field is the observation of the account, and Write writes it: the value as a multiple of the
	// first one, and the time.
	Field string
	Write func(to []float32, value float64, at time.Time)
	// Buy is the order that may be left out, and Restrict leaves assets out of weights, as
	// bake.Holdings does with Least.
	Buy      int
	Least    float64
	Restrict func(weights []float64, held []bool, scratch []float64)
	// Exposure and Weight are the account's own limits on all assets and on one, parts of the
	// value, 0 without a limit. Cuts reports that the account itself multiplies them at times.
	Exposure, Weight float64
	Cuts             bool
}

// meaningOf is what a factory says of its environments, the zero Meaning where it says nothing.
func meaningOf(f envs.Factory) (Meaning, error) {
	if d, ok := wrap.FindFactory[Domain](f); ok {
		return d.Meaning()
	}
	return Meaning{}, nil
}

// files are what lies beside a policy's model.
func (m *Meaning) files(one *served.Policy, heads []int) ([]artifact.NewFile, error) {
	if m.Files == nil {
		return nil, nil
	}
	return m.Files(one, heads)
}

// ArtefactName makes a name that artefacts may have of any text.
func ArtefactName(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') })
	if name := strings.Join(words, "-"); artifact.CheckName(name) == nil {
		return name
	}
	return "agent"
}
