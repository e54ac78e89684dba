package convert

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/onnxrl/onnxrl/configs"
)

// torchActivations are the activations of torch.nn by their names here.
var torchActivations = map[name]string{"nn.Tanh": "tanh", "nn.ReLU": "relu", "nn.ELU": "elu", "nn.LeakyReLU": "leaky_relu", "nn.GELU": "gelu", "nn.SiLU": "silu", "nn.Sigmoid": "sigmoid"}

// zooPolicyArguments are the arguments of a policy of Stable-Baselines3.
func (t *translation) zooPolicyArguments(s configs.Section) {
	for _, a := range t.arguments(s) {
		switch a.name {
		case "net_arch":
			t.zooLayers(a.value, s)
		case "activation_fn":
			named, _ := a.value.(name)
			if activation, ok := torchActivations[named]; ok {
				t.set("agent.activation", activation, s)
			} else {
				t.fail(s, "activation_fn=%v has no equal here", a.value)
			}
		case "log_std_init", "ortho_init":
			t.set("agent."+a.name, a.value, s)
		case "n_critics":
			if n, ok := whole(a.value); ok {
				t.set("agent.n_critics", n, s)
			} else {
				t.fail(s, "n_critics=%v: expected a number of critics", a.value)
			}
		case "optimizer_class":
			if a.value != name("RMSpropTFLike") {
				t.fail(s, "optimizer_class=%v has no equal here: expected RMSpropTFLike", a.value)
				continue
			}
			t.set("agent.optimizer", map[string]any{"kind": "rmsprop", "alpha": 0.99, "eps": 1e-8, "eps_inside": true, "ones": true}, s)
		case "optimizer_kwargs":
			list, _ := a.value.([]argument)
			for _, o := range list {
				if path, ok := map[string]string{"eps": "eps", "alpha": "alpha", "weight_decay": "decay"}[o.name]; ok {
					t.set("agent.optimizer."+path, o.value, s)
				} else {
					t.fail(s, "optimizer_kwargs: %s has no equal here", o.name)
				}
			}
		default:
			t.fail(s, "the argument %s has no equal here", a.name)
		}
	}
}

// zooLayers are the hidden layers: a list, or one each for the actor (pi) and the critic (vf of
// algorithms on policy, qf of others). A list may hold the dict, as before Stable-Baselines3 1.8.
func (t *translation) zooLayers(v any, s configs.Section) {
	if list, ok := v.([]any); ok && len(list) == 1 {
		if inner, ok := list[0].([]argument); ok {
			v = inner
		}
	}
	parts, ok := v.([]argument)
	if !ok {
		parts = []argument{{"pi", v}}
	}
	layers := map[string][]int{}
	for _, p := range parts {
		widths, err := integers(p.value)
		if err != nil || !slices.Contains([]string{"pi", "vf", "qf"}, p.name) {
			t.fail(s, "net_arch: expected a list of widths, or dict(pi=[…], vf=[…]) with such lists: %s: %v", p.name, err)
			return
		}
		layers[p.name] = widths
	}
	pi, q := layers["pi"], layers["qf"]
	if vf, ok := layers["vf"]; ok && !slices.Equal(pi, vf) {
		t.fail(s, "net_arch: actor and critic have equal layers here, found %v and %v", pi, vf)
		return
	}
	t.set("agent.hidden", pi, s)
	if q != nil && !slices.Equal(pi, q) {
		t.set("agent.critic_hidden", q, s)
	}
}

// integers reads a list of whole numbers.
func integers(v any) ([]int, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("found %v", v)
	}
	widths := []int{}
	for _, e := range list {
		n, ok := whole(e)
		if !ok {
			return nil, fmt.Errorf("found %v", e)
		}
		widths = append(widths, n)
	}
	return widths, nil
}

// whole returns a positive whole number of Python's.
func whole(v any) (int, bool) {
	f, ok := v.(float64)
	return int(f), ok && f >= 1 && f <= math.MaxInt32 && f == math.Trunc(f)
}

func parseNumber(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
