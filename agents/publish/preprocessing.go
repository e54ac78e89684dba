package publish

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// preprocessing is what stands between an environment and the network in training, and moves into
// the model when it is published.
type preprocessing struct {
	Meaning
	// spec is what the environments of the factory show, inner what they show without the wrappers
	// that move.
	spec, inner envs.Spec
	// zero says that the frames before an episode's first one are 0; stacks are the fields that are
	// stacked, none without a stack.
	zero   bool
	stacks map[string]stack
	// bounds makes the network's actions the environment's; nil where they are.
	bounds *bake.Bounds
	// choices are those of fields and of the action that do not begin at 0.
	choices []bake.Start
	// skill is what the model has in the place of its input of that name; nil where that is one.
	skill []float32
}

// stack is a field of the last observations.
type stack struct {
	shape []int // of one observation
	flat  bool  // the stack is a vector
}

// newPreprocessing describes the environments of a factory, of which e is one.
func newPreprocessing(f envs.Factory, e envs.Env) (a preprocessing, err error) {
	a = preprocessing{spec: e.Spec(), inner: e.Spec(), stacks: map[string]stack{}, skill: wrap.FixedSkill(f)}
	if a.Meaning, err = meaningOf(f); err != nil {
		return a, err
	}
	if w, ok := wrap.Find[*wrap.FrameStack](e); ok {
		a.zero = w.StartsWithZeros()
		a.inner.Observation = slices.Clone(a.spec.Observation)
		for i, field := range w.Unwrap().Spec().Observation {
			one, many := field.Space.Shape(), a.spec.Observation[i].Space.Shape()
			if slices.Equal(one, many) {
				continue
			}
			if d := field.Space.DType(); d != tensor.Float32 {
				return a, fmt.Errorf("observation %q is a stack of %v: only float32 can be stacked inside of a model", field.Name, d)
			}
			a.stacks[field.Name] = stack{shape: one, flat: len(many) != len(one)+1}
			a.inner.Observation[i].Space = field.Space
		}
	}
	// Clipping comes outside of rescaling where there are both, and does the rescaling's bounds
	// then; the environment's own are those of the innermost.
	for w, ok := wrap.Find[*wrap.Action](e); ok; w, ok = wrap.Find[*wrap.Action](w.Unwrap()) {
		box := w.Unwrap().Spec().Action.(envs.Box)
		low, high := box.Limits()
		a.bounds, a.inner.Action = &bake.Bounds{Output: agents.ActionOutput, Low: low, High: high, Rescale: w.Rescales()}, box
	}
	for _, field := range a.spec.Observation {
		if first := envs.Starts(field.Space); first != nil {
			a.choices = append(a.choices, bake.Start{Port: field.Name, Of: first})
		}
	}
	if first := envs.Starts(a.spec.Action); first != nil {
		a.choices = append(a.choices, bake.Start{Port: agents.ActionOutput, Of: first})
	}
	if a.Simplex != nil {
		a.inner.Action = envs.NewBox(0, 1, a.spec.Action.(envs.Box).Dims...)
	}
	return a, nil
}

// wrappers are what a baked model has around the network of these inputs, from the inside. What is
// normalised or stacked for critics alone is not among them.
func (a *preprocessing) wrappers(inputs []string, normal []wrap.Normalizer) []bake.Wrapper {
	var list []bake.Wrapper
	for i := range a.Scalings {
		list = append(list, &a.Scalings[i])
	}
	for _, n := range normal {
		if !slices.Contains(inputs, n.Field) {
			continue
		}
		std := make([]float64, len(n.Var))
		for i, v := range n.Var {
			std[i] = math.Sqrt(v + n.Epsilon)
		}
		list = append(list, &bake.Normal{Input: n.Field, Mean: n.Mean, Std: std, Clip: n.Clip})
	}
	for _, f := range a.spec.Observation {
		if s, ok := a.stacks[f.Name]; ok && slices.Contains(inputs, f.Name) {
			w := bake.Frames{Input: f.Name, Repeat: !a.zero}
			if s.flat {
				w.Shape = s.shape
			}
			list = append(list, w)
		}
	}
	for i := range a.choices {
		if port := a.choices[i].Port; port == agents.ActionOutput || slices.Contains(inputs, port) {
			list = append(list, &a.choices[i])
		}
	}
	if a.skill != nil {
		list = append(list, &bake.Fixed{Input: wrap.SkillField, Value: a.skill})
	}
	if a.bounds != nil {
		list = append(list, a.bounds)
	}
	if a.Simplex != nil {
		list = append(list, a.Simplex)
	}
	return list
}

// actions says what becomes of the network's outputs, for the proof.
func (a *preprocessing) actions() map[string]func(*tensor.Tensor) *tensor.Tensor {
	switch {
	case a.Simplex != nil:
		return map[string]func(*tensor.Tensor) *tensor.Tensor{a.Simplex.Output: a.Simplex.Apply}
	case a.bounds != nil:
		return map[string]func(*tensor.Tensor) *tensor.Tensor{a.bounds.Output: a.bounds.Apply}
	}
	if s := a.startOf(agents.ActionOutput); s != nil {
		return map[string]func(*tensor.Tensor) *tensor.Tensor{s.Port: s.Apply}
	}
	return nil
}

// startOf are the starts of a port's choices; nil where they begin at 0.
func (a *preprocessing) startOf(port string) *bake.Start {
	i := slices.IndexFunc(a.choices, func(s bake.Start) bool { return s.Port == port })
	if i < 0 {
		return nil
	}
	return &a.choices[i]
}

// bake makes the policy that a network in training is, and writes into it the spaces of what it is
// given and of its action.
func (a *preprocessing) bake(net *models.Network, params *models.Params, states []models.State, normal []wrap.Normalizer) (*onnx.Model, error) {
	m, err := bake.Agent(net, params.View, states, a.wrappers(net.Inputs, normal)...)
	if err != nil {
		return nil, err
	}
	return m, a.describe(m)
}

// describe writes the spaces of a policy's inputs and of its action into its metadata.
func (a *preprocessing) describe(m *onnx.Model) error {
	s := artifact.Spaces{Inputs: map[string]artifact.Space{}, Outputs: map[string]artifact.Space{agents.ActionOutput: agents.DescribeSpace(a.inner.Action)}}
	for _, in := range m.Graph.Input {
		i := a.inner.Observation.Index(in.Name)
		if i < 0 {
			continue
		}
		space := a.inner.Observation[i].Space
		if box, ok := space.(envs.Box); ok && a.Tables[in.Name] != nil {
			// The environment shows scaled values, and the model receives unscaled ones.
			box.Low, box.High = []float64{math.Inf(-1)}, []float64{math.Inf(1)}
			space = box
		}
		s.Inputs[in.Name] = agents.DescribeSpace(space)
	}
	text, err := s.Text()
	if err == nil {
		m.SetMeta(artifact.SpacesKey, text)
	}
	return err
}

// options join a model to the environments: it takes single frames and unscaled windows where they
// show others, and its actions are those of the environment inside.
func (a *preprocessing) options() served.Options {
	o := served.Options{Tables: a.Tables}
	for name, s := range a.stacks {
		if o.Newest == nil {
			o.Newest = map[string][]int{}
		}
		o.Newest[name] = s.shape
	}
	if a.Simplex != nil {
		n, action := a.spec.Action.Shape()[0], a.Action
		o.Actions = func(to, from []float32) {
			for at := 0; at < len(from); at += n {
				action(to[at:at+n], from[at:at+n])
			}
		}
	}
	if b := a.bounds; b != nil && b.Rescale {
		o.Actions = func(to, from []float32) {
			for i, v := range from {
				low, high := b.Low[i%len(b.Low)], b.High[i%len(b.High)]
				to[i] = float32(max(-1, min(1, 2*(float64(v)-low)/(high-low)-1)))
			}
		}
	}
	return o
}

// portOf describes an input or output for the manifest: bounds from what the environment shows,
// meaning from their Domain.
func (a *preprocessing) portOf(p artifact.Port) artifact.Port {
	p.Description = a.Ports[p.Name]
	var space envs.Space
	if i := a.inner.Observation.Index(p.Name); i >= 0 && a.Tables[p.Name] == nil {
		space = a.inner.Observation[i].Space
	} else if p.Name == agents.ActionOutput {
		space = a.inner.Action
	}
	if box, ok := space.(envs.Box); ok && (len(box.Low) > 1 || len(box.High) > 1 || box.Bounds(0) != envs.Unbounded().Bounds(0)) {
		low, high := box.Limits()
		p.Bounds = &artifact.Bounds{Low: artifact.BoundsOf(low), High: artifact.BoundsOf(high)}
	}
	return p
}

// openEnv makes the environment that observations are recorded in; data may have no range to
// validate on.
func openEnv(f envs.Factory) (e envs.Env, err error) {
	var errs []error
	for _, split := range []envs.Split{envs.Valid, envs.Train} {
		if e, err = f.New(split, 0); err == nil {
			return e, nil
		}
		if len(errs) == 0 || err.Error() != errs[0].Error() {
			errs = append(errs, err)
		}
	}
	return nil, errors.Join(errs...)
}
