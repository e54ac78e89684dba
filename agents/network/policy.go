package network

import (
	"fmt"
	"slices"
	"strings"

	"onnxrl/envs"
	"onnxrl/models/encoder"
	"onnxrl/models/layer"
	"onnxrl/runtime/onnx"
)

// openPolicy reads the policy that a configuration names, if any, and says where none can be.
func openPolicy(c Config, f *Frame, kinds []encoder.Kind) (encoder.Encoder, error) {
	if c.Policy.Kind == "" {
		return nil, nil
	}
	if f.Window() != nil || f.Assets > 0 || f.Series >= 0 && len(f.Flat) > 0 {
		var fields []string
		for _, field := range f.Spec.Observation {
			fields = append(fields, fmt.Sprintf("%s %v", field.Name, field.Space.Shape()))
		}
		return nil, fmt.Errorf("policy: a policy of one's own reads vectors, or one window that lies in no table; the observations of %s are %s: name an encoder instead", f.Spec.Name, strings.Join(fields, ", "))
	}
	p, err := encoder.New(kinds, c.Policy)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}

// HasPolicy reports whether the configuration brings the whole policy, see [Torso.Policy].
func (t *Torso) HasPolicy() bool { return t.policy != nil }

// Policy appends the policy that the configuration brings, below the scope policy: float32 [batch, D], where D is one of the widths. All fields of the observation are its input, as one vector, or the one window.
func (t *Torso) Policy(g *layer.Graph, in Inputs, widths ...int) (onnx.Value, error) {
	var x onnx.Value
	if t.f.Series >= 0 {
		x = in.Obs[t.f.Series]
	} else {
		x = t.flat(g, in)
	}
	y, err := t.policy.Build(g.In("policy"), x)
	if err != nil {
		return "", fmt.Errorf("policy: the observations of %s: %w", t.f.Spec.Name, err)
	}
	if n := g.Extent(y, -1); !slices.Contains(widths, n) {
		return "", fmt.Errorf("policy: it gives %d numbers, and the actions of %s are %v; expected %s", n, t.f.Spec.Name, t.f.Spec.Action, t.expected(widths))
	}
	return y, g.Err()
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

// Parameters returns how many numbers a distribution over the actions needs: a logit for each choice, or a mean for each component.
func (f *Frame) Parameters() int {
	n := f.Dims
	for _, k := range f.Heads {
		n += k
	}
	return n
}
