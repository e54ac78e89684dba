package network

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// FeaturesOutput is the output of a user-supplied policy that gSDE's noise comes from, float32
// [batch, L].
const FeaturesOutput = "features"

// userPolicy is a policy that the configuration brings.
type userPolicy struct {
	// plain reads one vector or window; nil where the model is known by the names of its inputs and
	// outputs.
	plain encoder.Encoder
	ports *encoder.Ports
	// fields has the input of each field that the model reads, "" for others; vector is the one
	// that takes all of them, if there is one.
	fields []string
	vector string
	// mask says that it reads the action mask, features that it has FeaturesOutput. output are its
	// logits, means or values.
	mask, features bool
	output         string
	states         []models.State
}

// openPolicy reads the policy that a configuration names, if any.
func openPolicy(c Config, f *Frame, kinds []encoder.Kind) (*userPolicy, error) {
	if c.Policy.Kind == "" {
		return nil, nil
	}
	p := &userPolicy{}
	var err error
	if c.Policy.Kind == encoder.FileKind.Name {
		if p.ports, err = encoder.OpenPorts(c.Policy.Section); err == nil {
			err = p.connect(f)
		}
	} else if !f.single() {
		err = fmt.Errorf("%s reads one vector or window, and the observations of %s are %s; kind: file reads each by its name", c.Policy.Kind, f.Spec.Name, f.observations())
	}
	if err == nil && p.ports == nil {
		p.plain, err = encoder.New(kinds, c.Policy)
	}
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}

// single reports whether the observation can be had as one value: a vector of all fields, or the
// one window.
func (f *Frame) single() bool {
	return f.Assets+f.Among == 0 && (f.Series < 0 || len(f.Flat) == 0)
}

// observations lists the fields and their shapes.
func (f *Frame) observations() string {
	var list []string
	for i, field := range f.Spec.Observation {
		if f.Reads(i) {
			list = append(list, fmt.Sprintf("%s %v", field.Name, field.Space.Shape()))
		}
	}
	return strings.Join(list, ", ")
}

// connect finds out what the inputs and outputs of the file are. One that has an input and an
// output only, and needs nothing but one value, is left to its package's encoder, which has more
// ways to read it.
func (p *userPolicy) connect(f *Frame) error {
	g, c := p.ports.Model().Graph, p.ports.Config()
	p.fields = make([]string, len(f.Spec.Observation))
	var rest []string
	for _, v := range g.Inputs() {
		switch {
		case strings.HasPrefix(v.Name, models.StatePrefix):
		case v.Name == agents.MaskInput && f.Spec.Masked:
			p.mask = true
		case v.Name == agents.MaskInput:
			return fmt.Errorf("%s has an input %s, and the actions of %s are not masked", p.ports.Name(), v.Name, f.Spec.Name)
		default:
			rest = append(rest, v.Name)
		}
	}
	var err error
	if p.states, err = models.NamedStates(g); err != nil {
		return fmt.Errorf("%s: %w", p.ports.Name(), err)
	}
	if err := p.read(f, rest); err != nil {
		return err
	}
	var outputs []string
	for _, v := range g.Output {
		switch {
		case v.Name == FeaturesOutput && c.Output != FeaturesOutput:
			p.features = true
		case !strings.HasPrefix(v.Name, models.NextStatePrefix):
			outputs = append(outputs, v.Name)
		}
	}
	alone := len(p.states) == 0 && !p.mask && !p.features && p.vector != ""
	switch p.output = c.Output; {
	case alone:
		p.ports = nil
	case p.output != "":
		computes := func(n *onnx.Node) bool { return slices.Contains(n.Output, p.output) }
		if !slices.ContainsFunc(g.Node, computes) {
			return fmt.Errorf("%s computes no %q; its outputs are %s", p.ports.Name(), p.output, strings.Join(outputs, ", "))
		}
	case len(outputs) != 1:
		return fmt.Errorf("%s has %d outputs (%s) beside %s and %s…: name the policy's with output: …", p.ports.Name(), len(outputs), strings.Join(outputs, ", "), FeaturesOutput, models.NextStatePrefix)
	default:
		p.output = outputs[0]
	}
	return nil
}

// read finds the fields that inputs read: by their names, or all at once where there is one input
// and the observation can be had as one value.
func (p *userPolicy) read(f *Frame, inputs []string) error {
	index := func(name string) int {
		if i := f.Spec.Observation.Index(name); i >= 0 && f.Reads(i) {
			return i
		}
		return -1
	}
	one := p.ports.Config().Input
	if one == "" && len(inputs) == 1 && (len(p.fields) == 1 || index(inputs[0]) < 0) {
		one = inputs[0]
	}
	if one != "" && f.single() {
		p.vector = one
		return nil
	}
	for _, name := range inputs {
		i := index(name)
		if i < 0 {
			return fmt.Errorf("%s has an input %q, and the observations of %s are %s; expected inputs that are called as the fields they read", p.ports.Name(), name, f.Spec.Name, f.observations())
		}
		p.fields[i] = name
	}
	if len(inputs) == 0 {
		return fmt.Errorf("%s reads nothing of the observations of %s, %s", p.ports.Name(), f.Spec.Name, f.observations())
	}
	return nil
}

// HasPolicy reports whether the configuration brings the whole policy, see [Torso.Policy].
func (t *Torso) HasPolicy() bool { return t.policy != nil }

// PolicyReads reports whether the policy that the configuration brings reads a field.
func (t *Torso) PolicyReads(field int) bool {
	return t.policy != nil && (t.policy.plain != nil || t.policy.vector != "" || t.policy.fields[field] != "")
}

// PolicyStates are what the policy that the configuration brings remembers: inputs state/… and
// outputs next_state/… of its file.
func (t *Torso) PolicyStates() []models.State {
	if t.policy == nil {
		return nil
	}
	return t.policy.states
}

// Policy appends the policy that the configuration brings, below the scope policy: float32 [batch,
// D], where D is one of the widths.
func (t *Torso) Policy(g *layer.Graph, in Inputs, widths ...int) (onnx.Value, error) {
	z, err := t.PolicyFeatures(g, in, false, widths...)
	return z.Given, err
}

// PolicyFeatures is Policy with the features that gSDE needs, if these are asked for, as Pooled.
func (t *Torso) PolicyFeatures(g *layer.Graph, in Inputs, sde bool, widths ...int) (Features, error) {
	if s := t.policy.states; len(s) > 0 {
		return Features{}, fmt.Errorf("policy: %s has a memory, %q to %q, and this algorithm gives policies none; ppo does", t.policy.ports.Name(), s[0].Input, s[0].Output)
	}
	z, _, err := t.PolicyStep(g, in, nil, sde, widths...)
	return z, err
}

// PolicyStep is PolicyFeatures of a policy with a memory: states are the values of PolicyStates
// before the step, [batch, …] each, and next those after it.
func (t *Torso) PolicyStep(g *layer.Graph, in Inputs, states []onnx.Value, sde bool, widths ...int) (z Features, next []onnx.Value, err error) {
	p, f := t.policy, t.f
	if p.ports == nil {
		z.Given, err = p.plain.Build(g.In("policy"), t.single(g, in))
	} else {
		z, next, err = p.build(t, g, in, states, sde && p.features)
	}
	if err != nil {
		return Features{}, nil, fmt.Errorf("policy: the observations of %s: %w", f.Spec.Name, err)
	}
	if n := len(g.Dims(z.Given)); n > 2 {
		// Heads may have an axis of their own.
		z.Given = g.Op("Flatten", []onnx.Value{z.Given}, onnx.AttrInt("axis", 1))
	}
	if n := g.Extent(z.Given, -1); !slices.Contains(widths, n) {
		if err := g.Err(); err != nil {
			return Features{}, nil, fmt.Errorf("policy: %w", err)
		}
		return Features{}, nil, fmt.Errorf("policy: it gives %d numbers, and the actions of %s are %v; expected %s", n, f.Spec.Name, f.Spec.Action, t.expected(widths))
	}
	return z, next, g.Err()
}

// build appends the model by the names of its inputs and outputs.
func (p *userPolicy) build(t *Torso, g *layer.Graph, in Inputs, states []onnx.Value, features bool) (z Features, next []onnx.Value, err error) {
	given := map[string]onnx.Value{}
	for i, name := range p.fields {
		if name != "" {
			given[name] = in.Obs[i]
		}
	}
	if p.vector != "" {
		given[p.vector] = t.single(g, in)
	}
	if p.mask {
		given[agents.MaskInput] = in.Mask
	}
	outputs := []string{p.output}
	for i, s := range p.states {
		given[s.Input] = states[i]
		outputs = append(outputs, s.Output)
	}
	if features {
		outputs = append(outputs, FeaturesOutput)
	}
	out, err := p.ports.Build(g.In("policy"), given, outputs...)
	if err != nil {
		return z, nil, err
	}
	z.Given, next = out[0], out[1:1+len(p.states)]
	for i, s := range p.states {
		if was, is := g.Type(states[i]), g.Type(next[i]); is.DType != was.DType || len(is.Dims) != len(was.Dims) || !slices.Equal(is.Dims[1:], was.Dims[1:]) {
			return z, nil, fmt.Errorf("%s: its output %q is %v, expected %v as the input %q", p.ports.Name(), s.Output, is, was, s.Input)
		}
	}
	if features {
		z.Pooled = out[len(out)-1]
		z.PerAsset = z.Pooled
		if dims := g.Dims(z.Pooled); len(dims) != 2 || !dims[1].IsKnown() {
			return z, nil, fmt.Errorf("%s: its output %q is %v, expected float32[%s,L]", p.ports.Name(), FeaturesOutput, g.Type(z.Pooled), layer.Batch)
		}
	}
	return z, next, g.Err()
}

// single appends the observation as one value.
func (t *Torso) single(g *layer.Graph, in Inputs) onnx.Value {
	if t.f.Series >= 0 {
		return in.Obs[t.f.Series]
	}
	return t.flat(g, in)
}

// expected says what the numbers of a policy are.
func (t *Torso) expected(widths []int) string {
	if _, ok := t.f.Spec.Action.(envs.Box); !ok {
		return fmt.Sprintf("%d, one for each choice", widths[0])
	}
	if len(widths) > 1 {
		return fmt.Sprintf("%d means, or these and as many log standard deviations", widths[0])
	}
	return fmt.Sprintf("%d, one for each component", widths[0])
}

// Parameters returns how many numbers a distribution over the actions needs: a logit for each
// choice, or a mean for each component.
func (f *Frame) Parameters() int {
	n := f.Dims
	for _, k := range f.Heads {
		n += k
	}
	return n
}
