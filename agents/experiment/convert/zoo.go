package convert

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// natives are the environments that need no Python, by Gymnasium's id.
var natives = map[string]map[string]any{
	"CartPole-v0":              {"kind": "cartpole", "max_steps": 200},
	"CartPole-v1":              {"kind": "cartpole"},
	"Pendulum-v1":              {"kind": "pendulum"},
	"MountainCar-v0":           {"kind": "mountaincar"},
	"MountainCarContinuous-v0": {"kind": "mountaincar_continuous"},
	"Acrobot-v1":               {"kind": "acrobot"},
	// Not Gymnasium's: what a router decides in, for the section router.experiment of a population.
	"meta": {"kind": "meta"},
}

// algorithms are the kinds of agents by the names of RL-Zoo's files; ppo_mask and qrdqn are
// sb3-contrib's.
var algorithms = map[string]string{"a2c": "a2c", "ddpg": "ddpg", "dqn": "dqn", "ppo": "ppo", "ppo_mask": "maskable_ppo", "qrdqn": "qrdqn", "sac": "sac", "td3": "td3"}

// Environment returns the section env for an environment of Gymnasium's, by its id: a kind of ours
// where there is one that computes the same.
func Environment(id string) map[string]any {
	if native, ok := natives[id]; ok {
		return maps.Clone(native)
	}
	return map[string]any{"kind": "gymnasium", "id": id}
}

// Zoo returns the experiment that RL-Zoo (rl-baselines3-zoo) has for an environment, by Gymnasium's
// id, in a file such as hyperparams/ppo.yml. The algorithm is the file's name unless it is given.
// As RL-Zoo does, it takes the section atari or default for an environment that has none.
//
// Source: https://github.com/DLR-RM/rl-baselines3-zoo, rl_zoo3/exp_manager.py.
func Zoo(file, algo, env string) (*configs.Document, error) {
	source, err := configs.Open(file)
	if err != nil {
		return nil, err
	}
	algo = cmp.Or(algo, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
	kind, ok := algorithms[algo]
	if !ok {
		return nil, fmt.Errorf("RL-Zoo's %s: expected an algorithm among %s, as the file's name or given", algo, strings.Join(slices.Sorted(maps.Keys(algorithms)), ", "))
	}
	s, ok := source.Lookup(quoted(env))
	for _, other := range []string{"atari", "default"} {
		if !ok && (other != "atari" || isAtari(env)) {
			s, ok = source.Lookup(other)
		}
	}
	if !ok {
		return nil, fmt.Errorf("%s has no entry for the environment %s, and none for all others; it has %s", file, env, strings.Join(source.Section().Keys(), ", "))
	}
	doc, err := configs.Parse(file, nil)
	if err != nil {
		return nil, err
	}
	t := &translation{from: "zoo", doc: doc}
	for key, value := range sorted.All(Environment(env)) {
		t.set("env."+key, value, s)
	}
	t.say("env id "+env, t.did...)
	t.did = nil
	t.set("agent.kind", kind, s)
	t.say(filepath.Base(file), t.did...)
	t.walk(s, zooTable(), "")
	if _, ok := s.Lookup("n_envs"); !ok { // one environment, as RL-Zoo takes it
		t.did = nil
		t.set("train.num_envs", 1, s)
		t.say("n_envs, absent", t.did...)
	}
	if strings.HasPrefix(algo, "ppo") {
		t.fitBatch(s)
	}
	return t.end()
}

// isAtari reports whether RL-Zoo takes an environment for a game of Atari.
func isAtari(env string) bool {
	return strings.Contains(env, "NoFrameskip") || strings.HasPrefix(env, "ALE/")
}

// zooTable has the keys of RL-Zoo's files, which are Stable-Baselines3's but for a few.
func zooTable() table {
	rules := table{
		"policy":        (*translation).zooPolicy,
		"policy_kwargs": (*translation).zooPolicyArguments,
		"n_timesteps":   integer("train.total_env_steps"),
		"n_envs":        integer("train.num_envs"),
		"normalize":     (*translation).zooNormalize,
		"learning_rate": rate("agent.learning_rate", "agent.learning_rate_schedule"),
		"clip_range":    rate("agent.clip_range", "agent.clip_range_schedule"),
		"frame_stack": func(t *translation, s configs.Section) {
			t.set("wrappers.frame_stack.frames", s, s)
			t.set("wrappers.frame_stack.initial", "zero", s)
		},
		"noise_type":             words("agent.action_noise.kind", map[string]string{"normal": "normal", "ornstein-uhlenbeck": "ou"}),
		"noise_std":              to("agent.action_noise.sigma"),
		"use_rms_prop":           (*translation).zooRMSProp,
		"rms_prop_eps":           to("agent.optimizer.eps"),
		"env_kwargs":             to("env.kwargs"),
		"optimize_memory_usage":  unused("it changes how a replay is laid out, and nothing that is computed"),
		"replay_buffer_kwargs":   (*translation).zooReplayArguments,
		"replay_buffer_class":    refused("there is no other replay than the algorithm's"),
		"env_wrapper":            refused("wrappers of Python are not applied: there are those of the section wrappers, and what a Gymnasium environment registers itself"),
		"vec_env_wrapper":        refused("wrappers of Python are not applied: there are those of the section wrappers"),
		"callback":               refused("callbacks of Python are not called"),
		"monitor_kwargs":         refused("there is no Monitor; info of Gymnasium's environments is recorded with env.info"),
		"target_update_interval": to("agent.target_update_interval"),
		"train_freq": func(t *translation, s configs.Section) {
			var pair []any
			switch {
			case s.IsScalar():
				t.set("agent.train_freq", s, s)
			case s.Decode(&pair) == nil && len(pair) == 2 && pair[1] == "step":
				t.set("agent.train_freq", pair[0], s)
			case len(pair) == 2 && fmt.Sprint(pair[0]) == "1" && pair[1] == "episode":
				t.set("agent.train_freq", "episode", s)
			default:
				t.fail(s, "updates are taken after a number of steps, or after each episode: expected an integer, [N, step] or [1, episode]")
			}
		},
	}
	for _, same := range []string{
		"n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "normalize_advantage", "clip_range_vf", "target_kl", "ent_coef", "vf_coef", "max_grad_norm",
		"use_sde", "sde_sample_freq", "use_sde_at_warmup", "target_entropy", "buffer_size", "learning_starts", "gradient_steps", "tau",
		"exploration_fraction", "exploration_initial_eps", "exploration_final_eps", "policy_delay", "target_policy_noise", "target_noise_clip",
	} {
		rules[same] = to("agent." + same)
	}
	return rules
}

// rate is a number, or lin_ and the number that falls straight to 0 over the run.
func rate(path, schedule string) rule {
	return func(t *translation, s configs.Section) {
		var text string
		if err := s.Decode(&text); err != nil {
			t.set(path, s, s)
			return
		}
		number, ok := strings.CutPrefix(text, "lin_")
		first, err := parseNumber(number)
		if !ok || err != nil {
			t.fail(s, "expected a number, or lin_ and a number, found %q", text)
			return
		}
		t.set(path, first, s)
		t.set(schedule+".kind", "linear", s)
	}
}

func (t *translation) zooPolicy(s configs.Section) {
	var policy string
	switch err := s.Decode(&policy); {
	case err != nil:
		t.add(err)
	case policy == "CnnPolicy":
		t.fail(s, "there is no network for images; an ONNX file may be one: agent.encoder")
	case policy != "MlpPolicy" && policy != "MultiInputPolicy" && policy != "MaskableActorCriticPolicy":
		t.fail(s, "%q has no equal here: expected MlpPolicy or MultiInputPolicy", policy)
	default:
		t.did = append(t.did, "the algorithm's own network")
	}
}

// zooNormalize is VecNormalize: of both, or as the arguments say.
func (t *translation) zooNormalize(s configs.Section) {
	var on bool
	if s.Decode(&on) == nil {
		t.set("wrappers.normalize.obs", on, s)
		t.set("wrappers.normalize.reward", on, s)
		return
	}
	given := map[string]any{"norm_obs": true, "norm_reward": true}
	for _, a := range t.arguments(s) {
		given[a.name] = a.value
	}
	for _, k := range slices.Sorted(maps.Keys(given)) {
		path, ok := map[string]string{"norm_obs": "obs", "norm_reward": "reward", "clip_obs": "clip_obs", "clip_reward": "clip_reward", "gamma": "gamma", "epsilon": "epsilon"}[k]
		if !ok {
			t.fail(s, "the argument %s has no equal here", k)
			continue
		}
		t.set("wrappers.normalize."+path, given[k], s)
	}
}

// zooRMSProp is A2C's optimiser: RMSprop, or PyTorch's Adam.
func (t *translation) zooRMSProp(s configs.Section) {
	var on bool
	if err := s.Decode(&on); err != nil {
		t.add(err)
	} else if !on {
		t.set("agent.optimizer", map[string]any{"kind": "adam", "eps": 1e-5}, s)
	} else {
		t.did = append(t.did, "agent.optimizer as it is by default")
	}
}

func (t *translation) zooReplayArguments(s configs.Section) {
	for _, a := range t.arguments(s) {
		if a.name != "handle_timeout_termination" || a.value != true {
			t.fail(s, "the argument %s has no equal here", a.name)
			continue
		}
		t.did = append(t.did, "not needed: ends by time limits are always told from others")
	}
}

// arguments reads a dict of Python's in a string, or a mapping of YAML's.
func (t *translation) arguments(s configs.Section) []argument {
	var text string
	if err := s.Decode(&text); err != nil {
		t.add(err)
		return nil
	}
	v, err := literal(text)
	list, ok := v.([]argument)
	if err != nil || !ok {
		t.fail(s, "expected dict(name=value, …) or {'name': value, …} of numbers, lists and names: %v", cmp.Or(err, fmt.Errorf("found %T", v)))
	}
	return list
}

// fitBatch makes minibatches no larger than a rollout, which Stable-Baselines3 does with a warning.
func (t *translation) fitBatch(s configs.Section) {
	samples, batch := 1, 64
	for _, k := range []struct {
		path string
		or   int
	}{{"agent.n_steps", 2048}, {"train.num_envs", 1}} {
		n := k.or
		if v, ok := t.doc.Lookup(k.path); ok && v.Decode(&n) != nil {
			return // which is reported as a problem of the document
		}
		samples *= n
	}
	if v, ok := t.doc.Lookup("agent.batch_size"); ok && v.Decode(&batch) != nil {
		return
	}
	if batch > samples && samples > 0 {
		t.did = nil
		t.set("agent.batch_size", samples, s)
		t.say(fmt.Sprintf("batch_size: %d, more than a rollout has", batch), t.did...)
	}
}
