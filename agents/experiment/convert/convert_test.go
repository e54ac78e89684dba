package convert

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestLiteral(t *testing.T) {
	good := []struct {
		text string
		want any
	}{
		{"3", 3.0}, {"-3.29", -3.29}, {"+1_000", 1000.0}, {"1e-5", 1e-5}, {"True", true}, {"None", nil}, {"nn.Tanh", name("nn.Tanh")},
		{"[]", []any{}}, {"[64, 64,]", []any{64.0, 64.0}}, {"(1, 'a')", []any{1.0, "a"}}, {`"b c"`, "b c"}, {"dict()", []argument{}},
		{"dict(a=-2, b=dict(c=[1],), d=False )", []argument{{"a", -2.0}, {"b", []argument{{"c", []any{1.0}}}}, {"d", false}}},
		{"{'norm_obs': True, \"norm_reward\": nn.ReLU}", []argument{{"norm_obs", true}, {"norm_reward", name("nn.ReLU")}}},
	}
	for _, c := range good {
		if v, err := literal(c.text); err != nil || !reflect.DeepEqual(v, c.want) {
			t.Errorf("%s: %#v, %v", c.text, v, err)
		}
	}
	bad := []string{"", "[1", "[1 2]", "dict(1)", "dict(a)", "dict(a=)", "{a: 1}", "{'a' 1}", "1 2", "lambda: 1", "f(x)", "1+", "-a", "'a", `'\n'`, "dict(a=1))", "[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]", "**x", "@"}
	for _, text := range bad {
		if v, err := literal(text); err == nil {
			t.Errorf("%s is read as %#v", text, v)
		}
	}
	if len(good) != 14 || len(bad) != 19 {
		t.Errorf("%d and %d cases", len(good), len(bad))
	}
}

// TestZoo: documents of the shape of RL-Zoo's, and what becomes of them.
func TestZoo(t *testing.T) {
	cases := []struct {
		algo, env string
		want      map[string]any
	}{
		{"ppo", "CartPole-v1", map[string]any{
			"env": map[string]any{"kind": "cartpole"}, "train": map[string]any{"num_envs": 4, "total_env_steps": 50000},
			"agent": map[string]any{"kind": "ppo", "n_steps": 16, "batch_size": 64, "learning_rate": 0.002, "learning_rate_schedule": map[string]any{"kind": "linear"}, "clip_range": 0.25, "clip_range_schedule": map[string]any{"kind": "linear"}},
		}},
		// A router of a population, by the entry for all others.
		{"ppo_mask", "meta", map[string]any{
			"env": map[string]any{"kind": "meta"}, "train": map[string]any{"num_envs": 1, "total_env_steps": 40000},
			"agent": map[string]any{"kind": "maskable_ppo", "n_steps": 32, "batch_size": 32, "n_epochs": 4, "gae_lambda": 0.95, "ent_coef": 0.01},
		}},
		{"ppo", "Walker-v0", map[string]any{
			"env": map[string]any{"kind": "gymnasium", "id": "Walker-v0"}, "train": map[string]any{"num_envs": 2, "total_env_steps": 3000000},
			"wrappers": map[string]any{"normalize": map[string]any{"obs": true, "reward": true}},
			"agent":    map[string]any{"kind": "ppo", "use_sde": true, "log_std_init": -1.5, "ortho_init": false, "activation": "relu", "hidden": []any{32, 16}, "n_steps": 2048, "clip_range": 0.4},
		}},
		{"ppo", "Walker-v1", map[string]any{
			"env": map[string]any{"kind": "gymnasium", "id": "Walker-v1"}, "train": map[string]any{"num_envs": 2, "total_env_steps": 3000000},
			"wrappers": map[string]any{"normalize": map[string]any{"obs": true, "reward": false}},
			"agent":    map[string]any{"kind": "ppo", "use_sde": true, "log_std_init": -1.5, "ortho_init": false, "activation": "relu", "hidden": []any{32, 16}, "n_steps": 8, "batch_size": 16, "clip_range": 0.4},
		}},
		{"ppo", "Unlisted-v3", map[string]any{
			"env": map[string]any{"kind": "gymnasium", "id": "Unlisted-v3"}, "train": map[string]any{"num_envs": 1, "total_env_steps": 1000}, "agent": map[string]any{"kind": "ppo"},
		}},
		{"td3", "Pendulum-v1", map[string]any{
			"env": map[string]any{"kind": "pendulum"}, "train": map[string]any{"num_envs": 1, "total_env_steps": 20000},
			"agent": map[string]any{"kind": "td3", "learning_starts": 100, "action_noise": map[string]any{"kind": "ou", "sigma": 0.5}, "hidden": []any{40, 30}, "critic_hidden": []any{50, 30}, "gradient_steps": -1, "train_freq": "episode", "n_critics": 3},
		}},
		{"a2c", "Pong-v9", map[string]any{
			"env": map[string]any{"kind": "gymnasium", "id": "Pong-v9", "kwargs": map[string]any{"mode": 1}}, "train": map[string]any{"num_envs": 1, "total_env_steps": 10},
			"wrappers": map[string]any{"frame_stack": map[string]any{"frames": 4, "initial": "zero"}},
			"agent":    map[string]any{"kind": "a2c", "optimizer": map[string]any{"kind": "rmsprop", "alpha": 0.99, "eps": 1e-5, "eps_inside": true, "ones": true}},
		}},
		{"a2c", "Adam-v0", map[string]any{
			"env": map[string]any{"kind": "gymnasium", "id": "Adam-v0"}, "train": map[string]any{"num_envs": 1, "total_env_steps": 10},
			"agent": map[string]any{"kind": "a2c", "optimizer": map[string]any{"kind": "adam", "eps": 1e-5}, "ent_coef": 0.0},
		}},
	}
	for _, c := range cases {
		doc, err := Zoo(filepath.Join("testdata", c.algo+".yml"), "", c.env)
		if err != nil {
			t.Errorf("%s, %s: %v", c.algo, c.env, err)
			continue
		}
		have := map[string]any{}
		if err := doc.Section().Decode(&have); err != nil {
			t.Fatal(err)
		}
		want, err := configs.Marshal(c.want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := configs.Marshal(have); err != nil || string(got) != string(want) {
			t.Errorf("%s, %s: %v\n%s\nexpected\n%s", c.algo, c.env, err, got, want)
		}
		source, err := configs.Open(filepath.Join("testdata", c.algo+".yml"))
		if err != nil {
			t.Fatal(err)
		}
		entry, ok := source.Lookup(c.env)
		if !ok {
			entry, _ = source.Lookup("default")
		}
		notes := strings.Join(doc.Section().Notes(), "\n")
		for _, key := range append(entry.Keys(), "env id", c.algo+".yml") {
			if !strings.Contains(notes, "zoo: "+key) {
				t.Errorf("%s, %s: nothing is said of %s:\n%s", c.algo, c.env, key, notes)
			}
		}
	}
	if len(cases) != 8 {
		t.Errorf("%d cases", len(cases))
	}
}

// TestZooErrors: what has no equal is an error with its place.
func TestZooErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dqn.yml")
	cases := []struct{ key, says string }{
		{"policy: CnnPolicy", "there is no network for images"},
		{"policy: Mine", `"Mine" has no equal here`},
		{"env_wrapper: [a.B]", "wrappers of Python are not applied"},
		{"replay_buffer_class: HerReplayBuffer", "no other replay"},
		{"replay_buffer_kwargs: 'dict(a=1)'", "the argument a has no equal"},
		{"train_freq: [2, episode]", "or after each episode"},
		{"noise_type: pink", `"pink" has no equal here: expected normal, ornstein-uhlenbeck`},
		{"learning_rate: cos_0.1", "expected a number, or lin_ and a number"},
		{"policy_kwargs: 'net_arch=[1]'", "expected dict(name=value, …)"},
		{"policy_kwargs: 'dict(net_arch=[0])'", "expected a list of widths"},
		{"policy_kwargs: 'dict(net_arch=dict(pi=[1], vf=[2]))'", "equal layers here"},
		{"policy_kwargs: 'dict(activation_fn=nn.Softsign)'", "activation_fn=nn.Softsign has no equal"},
		{"policy_kwargs: 'dict(optimizer_class=Lion)'", "optimizer_class=Lion has no equal"},
		{"policy_kwargs: 'dict(features_extractor_class=X)'", "the argument features_extractor_class has no equal"},
		{"normalize: \"{'training': True}\"", "the argument training has no equal"},
		{"something: 3", "zoo has no such key"},
	}
	for _, c := range cases {
		if err := os.WriteFile(file, []byte("A-v0:\n  n_envs: 1\n  "+c.key+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Zoo(file, "", "A-v0"); err == nil || !strings.HasPrefix(err.Error(), file+":3:") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.key, err)
		}
	}
	if len(cases) != 16 {
		t.Errorf("%d cases", len(cases))
	}
	if _, err := Zoo(file, "", "B-v0"); err == nil || !strings.Contains(err.Error(), "no entry for the environment B-v0") {
		t.Error(err)
	}
	if _, err := Zoo(file, "tqc", "A-v0"); err == nil || !strings.Contains(err.Error(), "RL-Zoo's tqc: expected") {
		t.Error(err)
	}
}

// TestKnown: keys identify documents, and a key without an equal is an error with its place.
func TestKnown(t *testing.T) {
	parse := func(text string) *configs.Document {
		t.Helper()
		doc, err := configs.Parse("a.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	for _, text := range []string{"env: {kind: cartpole}\nassets: [A]\n", "model: a.onnx\ndata: {path: x}\n", "base: x\nfactors: {}\n", "http: x\n", ""} {
		doc := parse(text)
		if got, err := Known(doc); got != doc || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, says := range sorted.All(map[string]string{
		"CartPole-v1: {n_timesteps: 100}\n":                                      "a.yaml:1:14: CartPole-v1: these are RL-Zoo's",
		"experts: {n_experts: 3, policy: SAC}\n":                                 "a.yaml:1:33: experts.policy: population has no such key",
		"trainer: {training_schedule: {router: {lr_range: [1]}}}\n":              "router.lr_range has 1 numbers, expected the least and the highest rate",
		"trainer: {training_schedule: {router: {freq: 15, lr_range: [1, 2]}}}\n": "population.freq is 20, expected a multiple of router.freq, 15",
		"trainer: {training_schedule: {router: {freq: 12}}}\n":                   "a.yaml:1:30: trainer.training_schedule: router.freq is 12, expected a multiple or a divisor of experts.freq, 5",
		"trainer: {training_schedule: {population: {freq: 12}}}\n":               "population.freq is 12, expected a multiple of experts.freq, 5",
		"assets: [A]\nlogging: {output_dir: /tmp/x}\n":                           "logging.output_dir: expected ./runs",
		"assets: [A]\nmodel: {encoder: LSTM}\n":                                  `"LSTM" has no equal here: expected TimeCNN, Transformer`,
		"assets: [A]\ntrain: {algo: PPO}\n":                                      "expected A2C",
		"fee_rate: 0\nsomething: {else: 1}\n":                                    "something.else: qtmrl has no such key",
	}) {
		if _, err := Known(parse(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestPopulation: the configuration of the population system becomes a document of one.
func TestPopulation(t *testing.T) {
	source, err := configs.Parse("a.yaml", []byte(`
experts: {n_experts: 6, skill_dim: 12, mi_reward_weight: 0.25}
meta_router: {kl_lambda: 0.15, ent_coef: 0.02}
trainer:
  diversity_threshold: 0.3
  training_schedule:
    router: {freq: 20, steps: 1000, lr_range: [1.0e-4, 1.0e-3]}
    experts: {freq: 5, steps: 500, lr_range: [2.0e-4, 3.0e-3]}
    population: {freq: 40, mutation_rate: 0.2}
`))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := Known(source)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for path, want := range sorted.All(map[string]float64{
		"experts.population": 6, `experts.set["wrappers.skill.dim"]`: 12, `experts.set["agent.diversity.beta"]`: 0.25, "router.experiment.env.diversity.kl_coef": 0.15, "router.experiment.agent.ent_coef": 0.02,
		"experts.diversity.threshold": 0.3, "router.every": 4, "experts.every": 8, "router.population": 2, "router.evolve_every": 2, "router.strategy.mutation": 0.2, "experts.generations": 16, "experts.replay.capacity": 2e6,
		`router.space["agent.learning_rate"].low`: 1e-4, `router.space["agent.learning_rate"].high`: 1e-3, `experts.space["agent.learning_rate"].low`: 2e-4, `experts.space["agent.learning_rate"].high`: 3e-3, "router.interval_steps": 1000, "experts.interval_steps": 500, "experts.strategy.mutation": 0.2,
	}) {
		s, ok := doc.Lookup(path)
		var x float64
		if !ok || s.Decode(&x) != nil || x != want {
			t.Errorf("%s is %g, expected %g", path, x, want)
		}
		n++
	}
	if n != 20 {
		t.Errorf("%d keys", n)
	}
}

// TestOwnersValues: docs/population.md lists every value that the owner's document does not say, as
// the conversion has it.
func TestOwnersValues(t *testing.T) {
	source, err := configs.Open("testdata/owner.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := Known(source)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/population.md")
	if err != nil {
		t.Fatal(err)
	}
	said := []string{
		"experts.population", `experts.set["wrappers.skill"].dim`, `experts.set["wrappers.skill.dim"]`, "experts.set.agent.diversity.beta", `experts.set["agent.diversity.beta"]`, "experts.interval_steps", "experts.every", "experts.strategy", "experts.diversity.threshold",
		"router.interval_steps", "router.every", "router.evolve_every", "router.strategy", "router.experiment.env.diversity.kl_coef", "router.experiment.agent.ent_coef",
	}
	keys := said
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:experts|router|pretrain)[^`]*)` \\| `([^`]*)` \\| (.+) \\|$").FindAllStringSubmatch(string(page), -1) {
		want, err := configs.Parse("row", []byte("v: "+row[2]))
		if err != nil {
			t.Fatalf("%s: %v", row[0], err)
		}
		keys = append(keys, row[1])
		have, ok := doc.Lookup(row[1])
		v, _ := want.Lookup("v")
		if !ok || values(t, have) != values(t, v) {
			t.Errorf("%s is %s, and the page says %s", row[1], values(t, have), row[2])
		}
	}
	leaves := 0
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if m, ok := v.(map[string]any); ok && !slices.Contains(keys, path) {
			for key, x := range sorted.All(m) {
				if strings.Contains(key, ".") {
					key = `["` + key + `"]`
				} else if path != "" {
					key = "." + key
				}
				walk(path+key, x)
			}
			return
		}
		if leaves++; !slices.Contains(keys, path) {
			t.Errorf("the page says nothing of %s", path)
		}
	}
	var all map[string]any
	if err := doc.Section().Decode(&all); err != nil {
		t.Fatal(err)
	}
	walk("", all)
	if leaves < 60 || len(keys)-len(said) < 55 {
		t.Errorf("%d values, %d on the page", leaves, len(keys)-len(said))
	}
}

// values writes a value with the keys of its mappings in order.
func values(t *testing.T, s configs.Section) string {
	t.Helper()
	var v any
	if err := s.Decode(&v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRouterOften: where the router trains in every outer step and experts in every fifth, as in the
// loop of the design note, five turns come after each generation.
func TestRouterOften(t *testing.T) {
	source, err := configs.Parse("a.yaml", []byte("trainer: {training_schedule: {router: {freq: 1, steps: 10000}, experts: {freq: 5, steps: 5000}, population: {freq: 20}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := Known(source)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for path, want := range sorted.All(map[string]int{"router.turns": 5, "router.every": 1, "router.evolve_every": 20, "experts.every": 4, "experts.generations": 8, "router.interval_steps": 10_000, "experts.interval_steps": 5000}) {
		s, ok := doc.Lookup(path)
		var x int
		if !ok || s.Decode(&x) != nil || x != want {
			t.Errorf("%s is %d, expected %d", path, x, want)
		}
		n++
	}
	if n != 7 {
		t.Errorf("%d keys", n)
	}
}
