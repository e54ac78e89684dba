package apptest

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/configs"
)

// Settled is the effective configuration of an experiment.
func Settled(t *testing.T, path string, set ...string) experiment.Config {
	t.Helper()
	c, _, err := kinds.All().Load(path, set)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = kinds.All().Settle(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if c.Tune.IsZero() {
		return c
	}
	search := tune.Defaults()
	if err := c.Tune.Decode(&search); err != nil {
		t.Fatal(err)
	}
	if search.Metric == "" {
		search.Metric = c.Train.Validation.Metric
	}
	if c.Tune, err = configs.NewSection(search); err != nil {
		t.Fatal(err)
	}
	return c
}

// InKeysOfNow writes a configuration with the keys that some had other names for.
func InKeysOfNow(t *testing.T, c any) *configs.Document {
	t.Helper()
	text, err := configs.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	now := strings.NewReplacer("rollout_steps:", "n_steps:", "entropy_coef:", "ent_coef:", "value_coef:", "vf_coef:", "grad_clip:", "max_grad_norm:",
		" schedule:", " learning_rate_schedule:", "\nschedule:", "\nlearning_rate_schedule:", "lr_actor:", "learning_rate:", "lr_critic:", "critic_learning_rate:", "  rho_bar: 1.0\n  c_bar: 1.0\n", "  vtrace: {clip_rho: 1.0, clip_c: 1.0}\n")
	doc, err := configs.Parse("configuration", []byte(now.Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// SameSettings compares every key of an older configuration.
func SameSettings(t *testing.T, what string, got, want any) {
	t.Helper()
	changes, err := configs.Diff(InKeysOfNow(t, want), InKeysOfNow(t, got))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.Old == "" {
			continue
		}
		// A section that was null has keys now.
		if c.Old == "null" && strings.HasPrefix(c.New, "{") {
			continue
		}
		t.Errorf("%s: %s", what, c)
	}
}
