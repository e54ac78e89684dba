package train_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestInherit begins with statistics of another run, as far as they fit, and says what does not.
func TestInherit(t *testing.T) {
	there := wrap.Defaults().Normalize
	there.Obs, there.Reward = true, true
	stats := func(mean float64) wrap.Running {
		return wrap.Running{Mean: []float64{mean}, Var: []float64{4}, Count: 1000}
	}
	state := vector.Statistics{Fields: []string{"position"}, Obs: []wrap.Running{stats(0.25)}, Return: stats(3), Returns: []float64{5, 6, 7}}
	n := 0
	for name, c := range sorted.All(map[string]struct {
		change      func(cfg *train.Config, s *vector.Statistics, there *wrap.Normalize)
		taken, left []string
	}{
		"both":             {func(*train.Config, *vector.Statistics, *wrap.Normalize) {}, []string{"position (1 elements, 1000 observations)", "returns"}, nil},
		"no rewards there": {func(_ *train.Config, _ *vector.Statistics, there *wrap.Normalize) { there.Reward = false }, []string{"position (1 "}, []string{"not scaled there"}},
		"no rewards here":  {func(c *train.Config, _ *vector.Statistics, _ *wrap.Normalize) { c.Normalize.Reward = false }, []string{"position (1 "}, []string{"not scaled here"}},
		"another discount": {func(_ *train.Config, _ *vector.Statistics, there *wrap.Normalize) { there.Gamma = new(0.9) }, []string{"position (1 "}, []string{"0.9 there and 0.99 here"}},
		"other fields":     {func(_ *train.Config, s *vector.Statistics, _ *wrap.Normalize) { s.Fields = []string{"speed"} }, []string{"returns"}, []string{"position: is not normalised there", "speed: is not normalised here"}},
		"another shape": {func(_ *train.Config, s *vector.Statistics, _ *wrap.Normalize) {
			s.Obs = []wrap.Running{wrap.NewRunning(3)}
		}, []string{"returns"}, []string{"position: has 3 elements there and 1 here"}},
		"nothing here": {func(c *train.Config, _ *vector.Statistics, _ *wrap.Normalize) {
			c.Normalize = wrap.Defaults().Normalize
		}, nil, []string{"position: is not normalised here", "returns"}},
		"only rewards there": {func(_ *train.Config, s *vector.Statistics, _ *wrap.Normalize) { s.Fields, s.Obs = nil, nil }, []string{"returns"}, []string{"position: is not normalised there"}},
	}) {
		cfg, s, from := small(), state, there
		cfg.Normalize = there
		c.change(&cfg, &s, &from)
		tr, err := train.New(t.Context(), factory(t), &maker{rollout: 20}, agents.Setup{Engine: portable.New(), Key: rng.New(7)}, cfg, train.Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		taken, left, err := tr.Inherit(s, from)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		says := func(what string, list, want []string) {
			if n++; len(list) != len(want) || !slices.EqualFunc(list, want, strings.Contains) {
				t.Errorf("%s: %s %q, expected %q", name, what, list, want)
			}
		}
		says("taken", taken, c.taken)
		says("left", left, c.left)
		if len(c.taken) > 0 && strings.HasPrefix(c.taken[0], "position") {
			if own := tr.Normalizers(); own[0].Mean[0] != 0.25 || own[0].Var[0] != 4 {
				t.Errorf("%s: %+v", name, own)
			}
		}
		if _, err := tr.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := tr.Inherit(s, from); err == nil || !strings.Contains(err.Error(), "has taken 600 env steps already") {
			t.Errorf("%s: in the middle of a run: %v", name, err)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
	if n != 16 {
		t.Errorf("%d checks", n)
	}
	tr, err := train.New(t.Context(), factory(t), &maker{rollout: 20}, agents.Setup{Engine: portable.New(), Key: rng.New(7)}, small(), train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if _, _, err := tr.Inherit(vector.Statistics{Fields: []string{"x"}}, there); err == nil {
		t.Error("statistics without numbers are taken")
	}
}
