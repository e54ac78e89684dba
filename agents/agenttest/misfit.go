package agenttest

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Has requires an error with all of the words.
func Has(t testing.TB, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not have %q: %v", w, err)
		}
	}
}

// Refuse requires that no agent is made for an environment, and that the error has all of the
// words. m and err are what a constructor of makers returned.
func Refuse(t testing.TB, m agents.Maker, err error, spec envs.Spec, words ...string) {
	t.Helper()
	if err == nil {
		var a agents.Agent
		if a, err = m.New(t.Context(), agents.Setup{Spec: spec, Envs: 2, Engine: testengines.All(t)[0], Encoders: encoder.Kinds(), Key: rng.New(1)}); err == nil {
			a.Close()
			t.Fatalf("an agent was made, expected an error with %q", words)
		}
	}
	Has(t, err, words...)
}

// Parse reads the parameters of an agent out of a document.
func Parse(t testing.TB, k agents.Kind, text string) (agents.Maker, error) {
	t.Helper()
	d, err := configs.Parse("run.yaml", []byte("agent:\n  kind: "+k.Name+"\n  "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Agent configs.Kinded `yaml:"agent"`
	}
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return agents.Parse([]agents.Kind{k}, doc.Agent)
}

// BadConfigs reads documents that must be refused, with all of their problems and the file's name.
func BadConfigs(t *testing.T, k agents.Kind, documents map[string][]string) {
	t.Helper()
	for text, words := range documents {
		_, err := Parse(t, k, text)
		if err == nil || len(words) == 0 {
			t.Errorf("%q is accepted", text)
		}
		Has(t, err, append(words, "run.yaml:")...)
	}
	if len(documents) < 5 {
		t.Errorf("%d documents", len(documents))
	}
}

// Reread writes the effective parameters of a maker and reads them again.
func Reread(t testing.TB, k agents.Kind, m agents.Maker) any {
	t.Helper()
	written, err := configs.Marshal(m.Config())
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(t, k, string(written))
	if err != nil {
		t.Fatalf("%s is written as\n%s\n%v", k.Name, written, err)
	}
	return again.Config()
}

// Misuse requires errors for callers that do not keep to the order or to the number of
// environments. name is the algorithm's.
func Misuse(t *testing.T, name string, x Variant) {
	t.Helper()
	r, v := x.training(t, testengines.Fastest(t))
	_, err := r.Agent.Learner().Step(t.Context())
	Has(t, err, name+": learn", "0 of ", " rounds are recorded")
	_, err = r.Agent.NewActor(agents.Greedy, 0)
	Has(t, err, name+": an actor for 0 environments")
	for _, mode := range []agents.Mode{agents.Explore, agents.Greedy} {
		_, err = Actor(t, r.Agent, mode, 3).Act(t.Context(), rng.New(1), v.Batch())
		Has(t, err, name+": act", "batch of 2 environments, expected 3")
	}
}
