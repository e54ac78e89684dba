package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestConfigNewTrain: for every environment and algorithm there is a document, or they do not fit.
// What is wrong with it is what is marked as required, and decoding it gives the defaults. It takes a
// third of the pairs, in which each environment and each algorithm is.
func TestConfigNewTrain(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	configNewTrain(t, 3)
}

// TestConfigNewTrainOfEveryPair takes them all.
func TestConfigNewTrainOfEveryPair(t *testing.T) {
	longtest.Nightly(t)
	configNewTrain(t, 1)
}

// configNewTrain takes one of so many pairs.
func configNewTrain(t *testing.T, every int) {
	a := &app{kinds: kinds.All()}
	continuous := []string{"pendulum", "mountaincar_continuous", "scml_goals", "scml_threads"}
	masked := []string{"connect_four", "corridor", "cover", "invalid_action"}
	written := 0
	for i, e := range a.kinds.Envs {
		for k, g := range a.kinds.Agents {
			if (i+k)%every != 0 {
				continue
			}
			r := apptest.Run(t, "config", "new", "train", "--env", e.Name, "--algo", g.Name)
			fit := true
			switch box := slices.Contains(continuous, e.Name); {
			case e.Needs != "":
			case g.Name == "dqn" || g.Name == "discrete_cql" || g.Name == "qrdqn":
				fit = !box
			case g.Name == "td3" || g.Name == "ddpg" || g.Name == "td3_bc":
				fit = box
			case g.Name == "maskable_ppo":
				fit = slices.Contains(masked, e.Name)
			case g.Name == "mappo":
				// Something must be central.
				fit = e.Name == "cover" || strings.HasPrefix(e.Name, "scml_")
			case g.Name == "openai_es" || g.Name == "cma_es":
				// A member is measured by whole episodes, which a wrapper alone may limit.
				fit = e.Name != "corridor" && e.Name != "scml_threads"
				// CMA-ES takes few parameters.
				fit = fit && (g.Name == "openai_es" || e.Name != "scml_goals")
			}
			if (r.Code == 0) != fit {
				t.Errorf("%s with %s: exit status %d, fit: %t\n%s", e.Name, g.Name, r.Code, fit, r.Err)
			}
			if r.Code != 0 {
				if !strings.Contains(r.Err, g.Name+" does not fit "+e.Name) {
					t.Errorf("%s with %s: %s", e.Name, g.Name, r.Err)
				}
				continue
			}
			written++
			doc, err := configs.Parse("new.yaml", []byte(r.Out))
			if err != nil {
				t.Fatal(err)
			}
			problems := a.book().Check(doc.Section(), experiment.Defaults())
			if n := strings.Count(r.Out, "# REQUIRED: "); n != len(problems) || (n > 0) != (e.Needs != "" || g.Offline) || strings.Contains(r.Out, "\ndataset:\n") != g.Offline {
				t.Errorf("%s with %s: %d keys are required, but there are %d problems\n%v", e.Name, g.Name, n, len(problems), problems)
			}
			for _, section := range []struct {
				name string
				want any
			}{{"env", e.Defaults()}, {"agent", g.Defaults()}} {
				var have map[string]any
				s, _ := doc.Lookup(section.name)
				if err := s.Decode(&have); err != nil {
					t.Fatal(err)
				}
				delete(have, "kind")
				for _, k := range configs.Keys(section.want) {
					if _, there := have[k.Name]; !there && !strings.Contains(r.Out, "#"+k.Name+": ") {
						t.Errorf("%s with %s: %s.%s is not written", e.Name, g.Name, section.name, k.Name)
					}
				}
			}
			c := experiment.Defaults()
			if g.Offline {
				err = doc.Set("dataset.path=data/medium")
			}
			if err := errors.Join(err, doc.Decode(&c)); err != nil {
				t.Error(err)
			}
			maker, err := g.Parse(c.Agent.Section)
			if err != nil {
				t.Errorf("%s: %v", g.Name, err)
			} else if changes, err := configs.Diff(g.Defaults(), maker.Config()); err != nil || len(changes) > 0 {
				t.Errorf("%s: the document changes the defaults: %v %v", g.Name, changes, err)
			}
		}
	}
	if written < 120/every {
		t.Errorf("%d documents", written)
	}
}

// TestConfigNew: a new document trains, and what the others lack is marked.
func TestConfigNew(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "new.yaml")
	if r := apptest.Run(t, "config", "new", "train", "--env", "cartpole", "--algo", "ppo", "--encoder", "mlp", "-o", file); r.Code != 0 || r.Out != "" {
		t.Fatalf("%+v", r)
	}
	if r := apptest.Run(t, "train", file, "--quiet", "--out", filepath.Join(dir, "run"), "--set", "train.total_env_steps=256", "--set", "train.validation.every_steps=0", "--set", "agent.n_steps=32", "--no-publish", "--engine", "portable"); r.Code != 0 {
		t.Errorf("train: %s", r.Err)
	}
	for _, name := range documentNames() {
		r := apptest.Run(t, "config", "new", name, "-o", file)
		if r.Code != 0 {
			t.Errorf("%s: %s", name, r.Err)
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		as := name
		var report configReport
		r = apptest.Run(t, "config", "check", file, "--as", as, "--json")
		if err := json.Unmarshal([]byte(r.Out), &report); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "# REQUIRED: "); n != len(report.Problems) || (r.Code == 0) != (n == 0) {
			t.Errorf("%s: %d keys are required, exit status %d\n%s", name, n, r.Code, r.Out)
		}
		if name == "tune" && !strings.Contains(string(text), "  trials: 50\n") {
			t.Errorf("tune has no section tune:\n%s", text)
		}
	}
	for id, want := range sorted.All(map[string]string{"LunarLander-v3": "\n  kind: gymnasium\n", "CartPole-v0": "\n  max_steps: 200\n", "Acrobot-v1": "\n  kind: acrobot\n"}) {
		r := apptest.Run(t, "config", "new", "train", "--env", id, "--algo", "ppo")
		if r.Code != 0 || !strings.Contains(r.Out, want) || strings.Contains(r.Out, "# REQUIRED: ") || strings.Contains(r.Out, "\n  id: ") != (id == "LunarLander-v3") {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

// TestConfigCheck: the problems of all sections are reported at once, those that lie in kinds
// included, and that an algorithm does not fit.
func TestConfigCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check := func(text string, args ...string) (report configReport, code int) {
		t.Helper()
		file := filepath.Join(dir, "c.yaml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		r := apptest.Run(t, append([]string{"config", "check", file, "--json"}, args...)...)
		if err := json.Unmarshal([]byte(r.Out), &report); err != nil {
			t.Fatalf("%v\n%s%s", err, r.Out, r.Err)
		}
		return report, r.Code
	}
	bad := `env: {kind: cartpole, max_step: 3}
agent:
  kind: ppo
  gamma: 2
  encoder: {kind: mlp, hidden: none}
train: {num_envs: many}
tune: {trials: 0}
eval: {episodes: 5}
`
	r, code := check(bad)
	var paths []string
	for _, p := range r.Problems {
		paths = append(paths, p.Path)
	}
	for _, want := range []string{"env.max_step", "agent.gamma", "agent.encoder.hidden", "train.num_envs", "tune.trials"} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is not reported: %v", want, paths)
		}
	}
	if code != 1 || r.OK || len(r.Problems) != 5 || r.Problems[0].Line == 0 {
		t.Errorf("exit status %d, %+v", code, r)
	}
	r, code = check("env: {kind: pendulum}\nagent: {kind: ppo}\n", "--set", "agent.kind=dqn")
	if code != 1 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, "dqn does not fit pendulum") {
		t.Errorf("dqn with pendulum: exit status %d, %+v", code, r)
	}
	r, code = check("http: 127.0.0.1:0\nmodels: [{name: a, path: a.onnx, max_batsh: 3}]\n")
	if code != 1 || r.Document != "serve" || len(r.Problems) != 1 || r.Problems[0].Path != "models[0].max_batsh" {
		t.Errorf("serve: exit status %d, %+v", code, r)
	}
	if r := apptest.Run(t, "config", "check", "qtmrl"); r.Code != 0 || !strings.Contains(r.Out, "not checked: whether trading and a2c fit") {
		t.Errorf("qtmrl: %+v", r)
	}
	if r := apptest.Run(t, "config", "check", "demo_ablation"); r.Code != 0 {
		t.Errorf("demo_ablation: %+v", r)
	}
}

// TestConfigCheckShipped: every shipped configuration is read as the document that it is, and nothing
// is wrong with it.
func TestConfigCheckShipped(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	names, err := fs.Glob(configs.Shipped(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]int{}
	for _, name := range names {
		r := apptest.Run(t, "config", "check", strings.TrimSuffix(name, ".yaml"), "--json")
		var report configReport
		if err := json.Unmarshal([]byte(r.Out), &report); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, r.Err)
		}
		if r.Code != 0 || !report.OK || len(report.Problems) != 0 {
			t.Errorf("%s: exit status %d, %+v", name, r.Code, report.Problems)
		}
		have[report.Document]++
	}
	// A file that is added is counted here.
	want := map[string]int{"train": 39, "ablate": 2, "walkforward": 3, "evolve": 2, "population": 3, "scml": 3, "league": 2, "fit": 4}
	if !maps.Equal(have, want) {
		t.Errorf("%d configurations are %v, expected %v", len(names), have, want)
	}
}

// TestConfigSchema: the shipped experiments and new documents are of the schema, and a mistake is
// not.
func TestConfigSchema(t *testing.T) {
	t.Parallel()
	r := apptest.Run(t, "config", "schema")
	var schema map[string]any
	if err := json.Unmarshal([]byte(r.Out), &schema); err != nil {
		t.Fatal(err)
	}
	violations := func(text string) string {
		t.Helper()
		doc, err := configs.Parse("c.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := doc.Decode(&v); err != nil {
			t.Fatal(err)
		}
		return violation(schema, schema, v, "")
	}
	names, err := fs.Glob(configs.Shipped(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range names {
		text, err := fs.ReadFile(configs.Shipped(), name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "\nagent:") {
			continue
		}
		checked++
		if why := violations(string(text)); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
	if checked < 10 {
		t.Errorf("%d experiments", checked)
	}
	if why := violations(apptest.Run(t, "config", "new", "train", "--env", "cartpole", "--algo", "sac").Out); why != "" {
		t.Error(why)
	}
	for _, bad := range []string{"env: {kind: cartpole, decoy: 1}", "env: {kind: cartpol}", "agent: {kind: ppo, n_epochs: many}", "sed: 3", "agent: {kind: dqn, encoder: {kind: mlp, x: 1}}"} {
		if violations(bad) == "" {
			t.Errorf("the schema accepts %s", bad)
		}
	}
}

// violation says where a value is not of a schema, as far as schemas of documents go.
func violation(root, s map[string]any, v any, path string) string {
	if ref, ok := s["$ref"].(string); ok {
		defs := root["$defs"].(map[string]any)
		return violation(root, defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), v, path)
	}
	if forms, ok := s["oneOf"].([]any); ok {
		var why []string
		for _, f := range forms {
			why = append(why, violation(root, f.(map[string]any), v, path))
		}
		if n := len(slices.DeleteFunc(slices.Clone(why), func(w string) bool { return w != "" })); n != 1 {
			return fmt.Sprintf("%s is of %d of the forms: %s", path, n, strings.Join(why, "; "))
		}
	}
	if want, ok := s["const"]; ok && v != want {
		return fmt.Sprintf("%s: expected %v", path, want)
	}
	if types := s["type"]; types != nil {
		kind := map[bool]string{v == nil: "null"}[true]
		switch n := v.(type) {
		case map[string]any:
			kind = "object"
		case []any:
			kind = "array"
		case string:
			kind = "string"
		case bool:
			kind = "boolean"
		case float64:
			if kind = "number"; n == float64(int64(n)) {
				kind = "integer"
			}
		case int, int64, uint64:
			kind = "integer"
		}
		list, _ := types.([]any)
		if one, ok := types.(string); ok {
			list = []any{one}
		}
		if !slices.Contains(list, any(kind)) && !(kind == "integer" && slices.Contains(list, any("number"))) {
			return fmt.Sprintf("%s: %v (%T), expected %v", path, v, v, list)
		}
	}
	if m, ok := v.(map[string]any); ok {
		properties, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for _, k := range required {
			if _, there := m[k.(string)]; !there {
				return fmt.Sprintf("%s.%v is missing", path, k)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(m)) {
			inner, ok := properties[key].(map[string]any)
			if !ok {
				if inner, ok = s["additionalProperties"].(map[string]any); !ok {
					if s["additionalProperties"] == false {
						return fmt.Sprintf("%s.%s is no key", path, key)
					}
					continue
				}
			}
			if why := violation(root, inner, m[key], path+"."+key); why != "" {
				return why
			}
		}
	}
	if list, ok := v.([]any); ok {
		items, _ := s["items"].(map[string]any)
		for i, item := range list {
			if why := violation(root, items, item, fmt.Sprintf("%s[%d]", path, i)); why != "" {
				return why
			}
		}
	}
	return ""
}
