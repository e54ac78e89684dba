package train_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// astray shows what it was told to in place of an element of its observation, from the second step
// on.
type astray struct {
	envs.Env
	value float32
	steps int
}

func (e *astray) Step(a *tensor.Tensor, ts *envs.TimeStep) error {
	err := e.Env.Step(a, ts)
	if e.steps++; e.steps > 1 {
		ts.Obs[0].Float32s()[0] = e.value
	}
	return err
}

type strays struct {
	envs.Factory
	value float32
}

func (f *strays) New(s envs.Split, i int) (envs.Env, error) {
	e, err := f.Factory.New(s, i)
	return &astray{Env: e, value: f.value}, err
}

// TestOutsideBoundsIsToldOnce: an observation outside of its Box ends no run, and is reported
// once however often it comes.
func TestOutsideBoundsIsToldOnce(t *testing.T) {
	for _, c := range []struct {
		value float32
		want  string
	}{{0.5, ""}, {1, ""}, {1.5, "value=1.5 low=0 high=1"}, {-0.25, "value=-0.25 low=0 high=1"}} {
		var text bytes.Buffer
		_ = run(t, options{cfg: small(), factory: &strays{factory(t), c.value}, maker: &maker{rollout: 20}, hooks: train.Hooks{Log: slog.New(slog.NewTextHandler(&text, nil))}})
		told := strings.Count(text.String(), "an observation lies outside of its bounds")
		if c.want == "" && told != 0 || c.want != "" && (told != 1 || !strings.Contains(text.String(), c.want) || !strings.Contains(text.String(), "field=position environment=0 element=0")) {
			t.Errorf("%g: told %d times:\n%s", c.value, told, &text)
		}
	}
}
