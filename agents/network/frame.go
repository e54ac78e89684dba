package network

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/meta"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The fields that may stand beside a window of assets.
const (
	PositionField = "position"
	CashField     = "cash"
	// TradableField says of each asset whether it can be traded, where there is no mask that would.
	TradableField = "tradable"
)

// Frame says how the observations and actions of an environment enter a network. Indices of fields
// are -1 where there is none. It is immutable.
type Frame struct {
	Spec envs.Spec
	// Heads has the number of choices of each categorical head; nil for actions in a Box.
	Heads []int
	// Dims is the number of components of actions in a Box, 0 for others.
	Dims int
	// Series is the field [W,N,F] or [W,F]; Assets is N, or 0 for [W,F].
	Series int
	Assets int
	// Among is N where an action is one for all assets together (envs.Spec.Joint, or Discrete),
	// such as who trades them, or in what shares: heads read what is summed up over the assets, and
	// Assets is 0.
	Among int
	// Position [N] and Cash [1] stand beside a window of assets; Flat are the fields that are
	// flattened otherwise.
	Position, Cash int
	// Tradable [N] stands beside them where actions are not masked; assets at 0 are not looked at.
	Tradable int
	// Shared are vectors beside them that are every asset's: the skill that policies are
	// conditioned on, and what a router knows of its experts.
	Shared []int
	Flat   []int
	// hidden are fields that are not read; whole is the frame that reads all.
	hidden []int
	whole  *Frame
}

// Reads reports whether a field of the observation is read.
func (f *Frame) Reads(field int) bool { return !slices.Contains(f.hidden, field) }

// central returns the frame of critics: of the fields that are central (envs.Field.Central), which
// no frame reads otherwise, it reads those that are named.
func (f *Frame) central(fields []string) (*Frame, error) {
	unread := slices.DeleteFunc(f.Spec.Observation.Central(), func(name string) bool { return slices.Contains(fields, name) })
	return f.whole.without(unread)
}

// without returns the frame of who does not read some fields.
func (f *Frame) without(fields []string) (*Frame, error) {
	if len(fields) == 0 {
		return f, nil
	}
	own := *f
	own.Flat, own.Shared, own.hidden = slices.Clone(f.Flat), slices.Clone(f.Shared), slices.Clone(f.hidden)
	for _, name := range fields {
		i := f.Spec.Observation.Index(name)
		switch {
		case i < 0 || !own.Reads(i):
			return nil, fmt.Errorf("%q is given twice, or no field of the observation: %s", name, f.observations())
		case i == f.Series && f.Assets+f.Among > 0:
			return nil, fmt.Errorf("%q is the window of assets, which the policy chooses by", name)
		case i == f.Series:
			own.Series = -1
		case i == f.Position:
			own.Position = -1
		case i == f.Cash:
			own.Cash = -1
		case i == f.Tradable:
			own.Tradable = -1
		}
		own.hidden = append(own.hidden, i)
		read := func(k int) bool { return k == i }
		own.Flat, own.Shared = slices.DeleteFunc(own.Flat, read), slices.DeleteFunc(own.Shared, read)
	}
	if own.Series < 0 && len(own.Flat) == 0 {
		return nil, fmt.Errorf("nothing is left for the policy of %s", f.observations())
	}
	return &own, nil
}

// NewFrame finds out what the fields of an observation are, or says which does not fit to what. It
// does not read fields that are central. A field is a window where the environment says so
// (envs.Field.Window and Series); [Config.Frame] is for networks that take others for one as well.
func NewFrame(spec envs.Spec) (*Frame, error) { return openFrame(spec, false) }

// Frame is NewFrame for networks of the configuration: where it names an encoder, or a policy, that
// reads windows, matrices of numbers are windows, too.
func (c Config) Frame(spec envs.Spec, kinds []encoder.Kind) (*Frame, error) {
	windows := false
	for _, k := range []configs.Kinded{c.Encoder, c.Policy} {
		if k.Kind == "" || windows {
			continue
		}
		e, err := encoder.New(kinds, k)
		// Opening the encoder reports its errors.
		windows = err == nil && encoder.ReadsWindows(e)
	}
	return openFrame(spec, windows)
}

func openFrame(spec envs.Spec, windows bool) (*Frame, error) {
	f, err := newFrame(spec, windows)
	if err != nil {
		return nil, err
	}
	f.whole = f
	return f.central(nil)
}

func newFrame(spec envs.Spec, windows bool) (*Frame, error) {
	f := &Frame{Spec: spec, Series: -1, Position: -1, Cash: -1, Tradable: -1}
	f.Heads = envs.Heads(spec.Action)
	switch a := spec.Action.(type) {
	case envs.Discrete, envs.MultiDiscrete, envs.MultiBinary:
	case envs.Box:
		f.Dims = 1
		for _, n := range a.Shape() {
			f.Dims *= n
		}
	default:
		return nil, fmt.Errorf("the actions of %s are %v, expected discrete, multi-discrete, multi-binary or box", spec.Name, spec.Action)
	}
	for i, field := range spec.Observation {
		if rank := len(field.Space.Shape()); rank != 2 && rank != 3 || field.Space.DType() != tensor.Float32 || field.Central || !windows && field.Window == nil && !field.Series {
			continue
		}
		if f.Series >= 0 {
			other := spec.Observation[f.Series]
			return nil, fmt.Errorf("observations %q %v and %q %v of %s are both windows; one is expected", other.Name, other.Space.Shape(), field.Name, field.Space.Shape(), spec.Name)
		}
		f.Series = i
		if shape := field.Space.Shape(); len(shape) == 3 {
			f.Assets = shape[1]
		}
	}
	if f.Assets > 0 && (f.Discrete() || spec.Joint) {
		f.Assets, f.Among = 0, f.Assets
	}
	if f.Assets > 0 {
		return f, f.besideAssets()
	}
	for i := range spec.Observation {
		if i != f.Series && !f.ofAssets(i, f.Among) {
			f.Flat = append(f.Flat, i)
		}
	}
	return f, nil
}

// ofAssets reports whether field i is one that stands beside a window of n assets, and keeps it.
func (f *Frame) ofAssets(i, n int) bool {
	field := f.Spec.Observation[i]
	shape := field.Space.Shape()
	switch {
	case n == 0:
		return false
	case field.Name == PositionField && slices.Equal(shape, []int{n}):
		f.Position = i
	case field.Name == CashField && slices.Equal(shape, []int{1}):
		f.Cash = i
	case field.Name == TradableField && slices.Equal(shape, []int{n}):
		f.Tradable = i
	default:
		return false
	}
	return true
}

// besideAssets checks the heads and finds what stands beside the window.
func (f *Frame) besideAssets() error {
	w := f.Spec.Observation[f.Series]
	n := len(f.Heads)
	perAsset := (n == f.Assets || n == f.Assets+1) && !slices.ContainsFunc(f.Heads[:f.Assets], func(k int) bool { return k != f.Heads[0] })
	if !perAsset && f.Dims != f.Assets && f.Dims != f.Assets+1 {
		return fmt.Errorf("observation %q of %s is %v, a window of %d assets, and its actions are %v; expected one for all assets together, discrete or said to be joint, one head for each asset, all of the same size, or one component for each, and at most one head or component for the portfolio", w.Name, f.Spec.Name, w.Space.Shape(), f.Assets, f.Spec.Action)
	}
	for i, field := range f.Spec.Observation {
		switch shape := field.Space.Shape(); {
		case i == f.Series || f.ofAssets(i, f.Assets):
		case (field.Name == wrap.SkillField || field.Name == meta.ExpertsField) && len(shape) == 1:
			f.Shared = append(f.Shared, i)
		default:
			return fmt.Errorf("observation %q %v of %s does not fit beside %q %v; expected %s [%d], %s [1], %s [%d], or %s or %s, vectors", field.Name, shape, f.Spec.Name, w.Name, w.Space.Shape(), PositionField, f.Assets, CashField, TradableField, f.Assets, wrap.SkillField, meta.ExpertsField)
		}
	}
	return nil
}

// Discrete reports whether actions are of the space Discrete, which have no axis for their one
// head.
func (f *Frame) Discrete() bool {
	_, ok := f.Spec.Action.(envs.Discrete)
	return ok
}

// Portfolio is the number of components, or heads, 0 or 1, that follow those of the assets and
// belong to none.
func (f *Frame) Portfolio() int {
	if f.Assets == 0 {
		return 0
	}
	return max(f.Dims+len(f.Heads)-f.Assets, 0)
}

// Continuous reports whether actions lie in a Box.
func (f *Frame) Continuous() bool { return f.Dims > 0 }

// Window returns the window of the series field, or nil when the observation has none that lies in
// a table.
func (f *Frame) Window() *envs.Window {
	if f.Series < 0 {
		return nil
	}
	return f.Spec.Observation[f.Series].Window
}

// MaskLen is the number of elements of a mask, and of log-probabilities, for one row; 0 for actions
// in a Box.
func (f *Frame) MaskLen() int { return envs.MaskLen(f.Spec.Action) }
