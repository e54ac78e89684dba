package kinds_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The outcomes of an edit: the learner takes it, a new agent of the edited document takes over the
// state, that cannot, or it is no document.
const (
	taken = iota
	rebuilt
	refused
	invalid
)

// edited is a value of a key, in documents that say from besides, separated by semicolons.
type edited struct {
	from, value string
	want        int
}

// schedules are those of the keys of a schedule, whose own key stands for @.
var schedules = map[string][]edited{
	"kind":        {{"", "linear", taken}, {"@={kind: cosine}", "linear", taken}},
	"initial":     {{"", "0.5", invalid}},
	"final":       {{"@={kind: linear}", "0.001", taken}},
	"relative":    {{"@={kind: linear, final: 0.5, relative: false}", "true", taken}},
	"steps":       {{"@={kind: linear}", "200", taken}},
	"gamma":       {{"@={kind: exponential, gamma: 0.9, every: 20}", "0.8", taken}},
	"every":       {{"@={kind: exponential, gamma: 0.9, every: 20}", "10", taken}},
	"points":      {{"@={kind: piecewise, points: [{at: 20, value: 0.05}]}", "[{at: 30, value: 0.04}]", taken}},
	"interpolate": {{"@={kind: piecewise, points: [{at: 20, value: 0.05}]}", "true", taken}},
	"warmup":      {{"@={kind: linear, warmup: 40, warmup_from: 0.5}", "60", taken}},
	"warmup_from": {{"@={kind: linear, warmup: 80, warmup_from: 0.5}", "0.25", taken}},
}

// common are those of keys that several algorithms have.
var common = map[string][]edited{
	// The normalisation of rewards discounts as the agent does unless it says otherwise.
	"gamma": {{"", "0.9", rebuilt}, {"wrappers.normalize.gamma=0.95", "0.9", taken}}, "learning_rate": {{"", "0.005", taken}}, "critic_learning_rate": {{"", "0.002", taken}, {"critic_learning_rate=0.003", "0.004", taken}},
	"max_grad_norm": {{"", "0.01", taken}, {"", "0", taken}},

	"optimizer.kind": {{"", "adamw", taken}, {"optimizer={kind: rmsprop}", "adam", refused}}, "optimizer.lr": {{"", "0.1", invalid}},
	"optimizer.decay": {{"", "0.1", taken}}, "optimizer.no_decay": {{"optimizer.decay=0.1", `["*.bias"]`, taken}, {"", "[nothing]", refused}},
	"optimizer.overrides": {{"", `[{params: ["*.bias"], lr_scale: 0.5}]`, taken}},
	"optimizer.momentum":  {{"optimizer={kind: sgd, eps: 0, momentum: 0.9, dampening: 0.1}", "0.8", taken}, {"optimizer={kind: sgd, eps: 0}", "0.8", refused}},
	"optimizer.dampening": {{"optimizer={kind: sgd, eps: 0, momentum: 0.9, dampening: 0.1}", "0.2", taken}},
	"optimizer.nesterov":  {{"optimizer={kind: sgd, eps: 0, momentum: 0.9}", "true", taken}},
	"optimizer.beta1":     {{"", "0.8", taken}}, "optimizer.beta2": {{"", "0.9", taken}}, "optimizer.eps": {{"", "0.001", taken}}, "optimizer.amsgrad": {{"", "true", refused}},
	"optimizer.alpha": {{"optimizer={kind: rmsprop}", "0.9", taken}}, "optimizer.eps_inside": {{"optimizer={kind: rmsprop}", "true", taken}},
	"optimizer.centred": {{"optimizer={kind: rmsprop}", "true", refused}}, "optimizer.ones": {{"optimizer={kind: rmsprop}", "true", taken}}, "optimizer.workers": {{"", "1", taken}},

	"hidden": {{"", "[5]", refused}}, "activation": {{"", "elu", rebuilt}}, "encoder": {{"", "{kind: mlp}", refused}}, "policy": {{"", "{kind: file, path: missing.onnx}", refused}},
	// Neither environment has costs.
	"constraints": {{"", "[{cost: fuel, limit: 1}]", refused}},
	"train":       {{"", `["*.weight"]`, refused}}, "freeze": {{"", `["*.bias"]`, refused}},
	// There are no windows of assets.
	"encoder_cache_mib": {{"", "-1", rebuilt}},
	"cross_asset.mix":   {{"", "none", rebuilt}}, "cross_asset.d_model": {{"", "8", rebuilt}}, "cross_asset.n_layers": {{"", "2", rebuilt}}, "cross_asset.n_heads": {{"", "2", rebuilt}},
	"cross_asset.ff_mult": {{"", "1", rebuilt}}, "cross_asset.activation": {{"", "relu", rebuilt}}, "cross_asset.dropout": {{"", "0.1", rebuilt}},
	// CartPole and the others have one field, which the policy needs.
	"privileged": {{"", "[observation]", refused}},
	"use_sde":    {{"", "true", refused}}, "log_std_init": {{"use_sde=true", "-1", rebuilt}}, "sde_sample_freq": {{"use_sde=true", "3", taken}},

	"buffer_size": {{"", "70", refused}}, "learning_starts": {{"", "0", taken}, {"", "60", taken}}, "batch_size": {{"", "8", rebuilt}}, "n_steps": {{"", "3", taken}},
	"tau": {{"", "0.5", taken}}, "train_freq": {{"", "3", taken}, {"wrappers.time_limit=5", "episode", taken}}, "gradient_steps": {{"", "2", taken}, {"", "-1", taken}}, "target_update_interval": {{"", "6", taken}},
	"n_critics": {{"", "3", refused}}, "critic_hidden": {{"", "[6]", refused}},

	"lora.rank": {{adapted, "2", refused}}, "lora.alpha": {{adapted, "3", rebuilt}}, "lora.target": {{adapted, "[encoder.first]", refused}}, "lora.seed": {{adapted, "5", rebuilt}},
	"diversity.kind": {{skilled, "infonce", refused}}, "diversity.beta": {{skilled, "2", taken}}, "diversity.learning_rate": {{skilled, "0.01", taken}}, "diversity.normalize": {{skilled, "false", taken}},
	"diversity.features": {{skilled, "[observation]", refused}}, "diversity.hidden": {{skilled, "[5]", refused}}, "diversity.embedding": {{skilled + "; diversity.kind=infonce", "3", refused}},
	"diversity.batch_size":    {{skilled + "; diversity.kind=infonce", "2", rebuilt}, {skilled, "2", invalid}},
	"diversity.concentration": {{skilled + "; wrappers.skill.kind=sphere", "5", rebuilt}},

	"train.total_env_steps": {{"", "600", taken}}, "train.log_interval_steps": {{"", "4", taken}}, "train.threads": {{"", "2", rebuilt}}, "train.num_envs": {{"", "3", refused}},
	"wrappers.normalize.gamma": {{"", "0.5", rebuilt}}, "wrappers.normalize.clip_reward": {{"", "0.1", rebuilt}}, "wrappers.normalize.reward": {{"wrappers.normalize.obs=false", "false", refused}},
}

// outside are keys of other sections that [common] has.
var outside = []string{"train.total_env_steps", "train.log_interval_steps", "train.threads", "train.num_envs", "wrappers.normalize.gamma", "wrappers.normalize.clip_reward", "wrappers.normalize.reward"}

// own are those of an algorithm where they are other than the common ones.
var own = map[string]map[string][]edited{
	"dqn": {
		"train.total_env_steps": {{"learning_rate_schedule={kind: linear}", "600", taken}},
		"exploration_fraction":  {{"", "0.5", taken}}, "exploration_initial_eps": {{"", "0.9", taken}}, "exploration_final_eps": {{"", "0.2", taken}},
		"privileged": {{"", "[observation]", invalid}}, "double": {{"", "true", rebuilt}}, "duelling": {{"", "true", refused}}, "prioritised.enabled": {{"", "true", refused}},
		"prioritised.alpha": {{"prioritised.enabled=true", "0.4", taken}, {"prioritised.enabled=true; prioritised.alpha=0", "0.4", taken}},
		"prioritised.eps":   {{"prioritised.enabled=true", "0.01", taken}},
		"prioritised.beta":  {{"prioritised.enabled=true", "0.6", taken}}, "prioritised.beta_final": {{"prioritised.enabled=true", "0.7", taken}},
		// Targets are computed for as many batches at once as a learner step has.
		"gradient_steps":      {{"", "2", rebuilt}, {"double=true", "2", taken}},
		"conservative_weight": {{"", "2", rebuilt}},
	},
	"sac": {
		"train.total_env_steps": {{"learning_rate_schedule={kind: linear}", "600", taken}},
		"ent_coef":              {{"ent_coef=0", "0.01", taken}, {"", "0.01", taken}, {"ent_coef=0.1", "auto_0.2", taken}, {"", "auto_0.3", taken}},
		"target_entropy":        {{"", "-2", taken}, {"target_entropy=-3", "auto", taken}},
		"vtrace.length":         {{"", "2", refused}, {"vtrace.length=4", "2", rebuilt}},
		"vtrace.lambda":         {{"vtrace.length=4", "0.5", taken}}, "vtrace.clip_rho": {{"vtrace.length=4", "0.6", taken}}, "vtrace.clip_c": {{"vtrace.length=4", "0.6", taken}},
		// Where there are no other policies it makes no difference.
		"sharing.clip_rho": {{"sharing={}", "0.6", taken}},
		"log_std.bound":    {{"", "tanh", rebuilt}}, "log_std.low": {{"", "-3", rebuilt}}, "log_std.high": {{"", "-0.5", rebuilt}},
		"action_noise.kind":  {{"action_noise={sigma: 0.3}", "ou", taken}, {"", "normal", taken}, {"action_noise={kind: ou}", "none", taken}},
		"action_noise.sigma": {{"", "0.3", taken}}, "action_noise.theta": {{"action_noise={kind: ou}", "0.5", taken}}, "action_noise.dt": {{"action_noise={kind: ou}", "0.1", taken}},
		"use_sde_at_warmup": {{"use_sde=true; learning_starts=70", "true", taken}}, "clip_mean": {{"use_sde=true", "0.1", rebuilt}},
		"bc.alpha":            {{"bc={}", "1", taken}},
		"conservative.weight": {{few, "1", taken}}, "conservative.n_action_samples": {{few, "3", rebuilt}}, "conservative.soft_q_backup": {{few, "true", rebuilt}},
		"conservative.alpha_learning_rate": {{few, "0.02", taken}}, "conservative.alpha_threshold": {{few, "0.5", taken}}, "conservative.initial_alpha": {{few, "2", rebuilt}},
	},
	"td3": {
		"train.total_env_steps": {{"learning_rate_schedule={kind: linear}", "600", taken}},
		"policy_delay":          {{"", "3", taken}}, "target_policy_noise": {{"target_policy_noise=0.3", "0.1", taken}, {"target_policy_noise=0", "0.1", rebuilt}},
		"target_noise_clip":  {{"target_policy_noise=0.3", "0.05", taken}},
		"action_noise.kind":  {{"", "normal", taken}, {"", "ou", taken}, {"action_noise.kind=ou", "none", taken}, {"action_noise.kind=ou", "normal", taken}},
		"action_noise.sigma": {{"action_noise.kind=normal", "0.3", taken}, {"action_noise.kind=ou", "0.3", taken}},
		"action_noise.theta": {{"action_noise.kind=ou", "0.5", taken}}, "action_noise.dt": {{"action_noise.kind=ou", "0.1", taken}},
		"bc.alpha": {{"bc={}", "1", taken}},
	},
	"iql": {
		"train.total_env_steps": {{"learning_rate_schedule={kind: linear}", "600", taken}},
		"advantage":             {{"", "policy", refused}}, "n_action_samples": {{"", "3", rebuilt}}, "expectile": {{"", "0.9", rebuilt}}, "weight_temp": {{"", "2", rebuilt}}, "max_weight": {{"", "0.5", rebuilt}},
	},
	"a2c": {
		"train.total_env_steps": {{"learning_rate_schedule={kind: linear}", "600", taken}},
		"ent_coef":              {{"ent_coef=0", "0.01", taken}}, "vf_coef": {{"", "0.7", taken}}, "gae_lambda": {{"", "0.8", taken}}, "normalize_advantage": {{"", "true", taken}},
		"correction": {{"", "vtrace", rebuilt}}, "vtrace.clip_rho": {{"correction=vtrace", "0.9", taken}}, "vtrace.clip_c": {{"correction=vtrace", "0.9", taken}},
		"vtrace.clip_pg_rho": {{"correction=vtrace", "0.9", taken}}, "n_steps": {{"", "3", rebuilt}}, "reduction": {{"", "sum", taken}},
		"encoders": {{"", "shared", refused}}, "hidden_gain": {{"", "1", rebuilt}}, "ortho_init": {{"", "false", rebuilt}}, "share_windows": {{"", "off", rebuilt}},
		"use_sde": {{box, "true", refused}}, "log_std_init": {{box, "-1", rebuilt}}, "sde_sample_freq": {{box + "; use_sde=true", "3", taken}},
	},
	"impala": {
		"train.total_env_steps": {{"learning_rate_schedule={kind: linear}", "600", taken}},
		"n_steps":               {{"", "3", rebuilt}}, "n_epochs": {{"", "3", taken}}, "gae_lambda": {{"", "0.8", taken}}, "normalize_advantage": {{"", "true", taken}},
		"vtrace.clip_rho": {{"", "0.9", taken}}, "vtrace.clip_c": {{"", "0.9", taken}}, "vtrace.clip_pg_rho": {{"", "0.9", taken}}, "clip_range": {{"", "0.2", rebuilt}},
		"ent_coef": {{"ent_coef=0", "0.01", taken}}, "vf_coef": {{"", "0.7", taken}}, "encoders": {{"", "shared", refused}}, "ortho_init": {{"", "false", rebuilt}},
		"use_sde": {{box, "true", refused}}, "log_std_init": {{box, "-1", rebuilt}}, "sde_sample_freq": {{box + "; use_sde=true", "3", taken}},
	},
	"ppo": {
		"train.total_env_steps": {{"learning_rate_schedule={kind: linear}", "600", taken}},
		"ent_coef":              {{"ent_coef=0", "0.01", rebuilt}, {"ent_coef=0.01", "0.02", taken}, {lstm + "; ent_coef=0", "0.01", rebuilt}}, "vf_coef": {{"", "0.7", taken}}, "gae_lambda": {{"", "0.8", taken}}, "normalize_advantage": {{"", "false", taken}},
		"n_steps": {{"", "6", rebuilt}}, "batch_size": {{"", "8", rebuilt}}, "n_epochs": {{"", "3", taken}}, "correction": {{"", "vtrace", rebuilt}},
		"vtrace.clip_rho": {{"correction=vtrace", "0.9", taken}}, "vtrace.clip_c": {{"correction=vtrace", "0.9", taken}},
		"clip_range": {{"", "0.1", taken}, {lstm, "0.1", taken}, {"correction=vtrace; " + lstm, "0.1", taken}}, "clip_range_vf": {{"", "0.2", rebuilt}, {"clip_range_vf=0.1", "0.2", taken}}, "target_kl": {{"", "0.0001", taken}, {"target_kl=0.01", "0.0001", taken}},
		"encoders": {{"", "shared", refused}}, "ortho_init": {{"", "false", rebuilt}},
		"use_sde": {{box, "true", refused}}, "log_std_init": {{box, "-1", rebuilt}}, "sde_sample_freq": {{box + "; use_sde=true", "3", taken}, {lstm, "3", taken}},
		"recurrent.kind": {{"", "lstm", refused}}, "recurrent.hidden": {{lstm, "3", refused}}, "recurrent.layers": {{lstm, "2", refused}},
		"recurrent.critic": {{lstm, "shared", refused}}, "recurrent.length": {{lstm, "2", rebuilt}},
		"vf_clip": {{"clip_range_vf=0.1", "larger", rebuilt}}, "vf_loss": {{"", "huber", rebuilt}}, "huber_delta": {{"vf_loss=huber", "0.01", rebuilt}},
		"normalize_value": {{"", "running", refused}, {"normalize_value=running", "none", refused}, {"normalize_value=running", "popart", rebuilt}},
		// CartPole has nothing central.
		"central": {{"", "true", refused}}, "layer_norm": {{"", "true", refused}}, "policies_by": {{"", "observation", refused}},
	},
}

// perturbed are those of the evolution strategies.
var perturbed = map[string][]edited{
	"population": {{"", "6", refused}}, "n_eval_episodes": {{"n_eval_episodes=2", "1", rebuilt}},
	// There is no critic.
	"privileged": {{"", "[observation]", invalid}},
}

const (
	lstm = "recurrent={kind: lstm, hidden: 2, length: 4}"
	box  = "env={kind: pendulum}"
	few  = "conservative={n_action_samples: 2, alpha_learning_rate: 0.01}"
	// skilled pays for skills that can be told from actions.
	// adapted has adapters over baseFile, which is the same for all seeds.
	adapted = "encoder={kind: file, path: BASE}; lora={rank: 1}"
	skilled = "wrappers.skill={dim: 3}; diversity={features: [action], hidden: [3], embedding: 2}"
)

// begin is what the document of an algorithm says.
var begin = map[string]string{
	"dqn": "env={kind: cartpole}; agent={kind: dqn, hidden: [3], buffer_size: 40, learning_starts: 8, batch_size: 4, target_update_interval: 4}",
	"sac": "env={kind: pendulum}; agent={kind: sac, hidden: [3], buffer_size: 40, learning_starts: 8, batch_size: 4, train_freq: 2}",
	"td3": "env={kind: pendulum}; agent={kind: td3, hidden: [3], buffer_size: 40, learning_starts: 8, batch_size: 4, train_freq: 2}",
	"a2c": "env={kind: cartpole}; agent={kind: a2c, hidden: [3], n_steps: 4, optimizer: {kind: adam}}",
	"ppo": "env={kind: cartpole}; agent={kind: ppo, hidden: [3], n_steps: 4, batch_size: 4, n_epochs: 2}",

	"impala": "env={kind: cartpole}; agent={kind: impala, hidden: [3], n_steps: 4, n_epochs: 2}",
	"appo":   "env={kind: cartpole}; agent={kind: appo, hidden: [3], n_steps: 4, n_epochs: 2}",

	"openai_es": "env={kind: pendulum}; agent={kind: openai_es, hidden: [3], population: 4}; wrappers.time_limit=5",
	"cma_es":    "env={kind: pendulum}; agent={kind: cma_es, hidden: [3], population: 4}; wrappers.time_limit=5",
}

func init() {
	own["appo"] = maps.Clone(own["impala"])
	own["appo"]["clip_range"], own["appo"]["normalize_advantage"] = []edited{{"", "0.3", taken}, {"", "0", rebuilt}}, []edited{{"", "false", taken}}
	own["openai_es"], own["cma_es"] = maps.Clone(perturbed), maps.Clone(perturbed)
	own["openai_es"]["sigma"], own["cma_es"]["sigma"] = []edited{{"", "0.3", taken}}, []edited{{"", "0.3", rebuilt}}
	own["openai_es"]["train.total_env_steps"] = []edited{{"learning_rate_schedule={kind: linear}", "600", taken}}
	begin["ddpg"], own["ddpg"] = strings.Replace(begin["td3"], "kind: td3", "kind: ddpg", 1), own["td3"]
	begin["maskable_ppo"], own["maskable_ppo"] = strings.NewReplacer("kind: ppo", "kind: maskable_ppo", "cartpole", "invalid_action").Replace(begin["ppo"])+"; wrappers.normalize.obs=false", maps.Clone(own["ppo"])
	begin["td3_bc"], own["td3_bc"] = strings.Replace(begin["td3"], "kind: td3", "kind: td3_bc", 1), own["td3"]
	begin["iql"] = strings.Replace(begin["td3"], "kind: td3", "kind: iql", 1)
	for _, kind := range []string{"awac", "awr"} {
		begin[kind], own[kind] = strings.Replace(begin["td3"], "kind: td3", "kind: "+kind, 1), maps.Clone(own["iql"])
	}
	own["awac"]["advantage"], own["awr"]["n_steps"] = []edited{{"", "return", refused}}, []edited{{"", "3", taken}}
	// It has none.
	own["awr"]["n_critics"] = []edited{{"", "3", rebuilt}}
	begin["discrete_cql"], own["discrete_cql"] = strings.Replace(begin["dqn"], "kind: dqn", "kind: discrete_cql", 1), maps.Clone(own["dqn"])
	begin["qrdqn"], own["qrdqn"] = strings.Replace(begin["dqn"], "kind: dqn", "kind: qrdqn, n_quantiles: 3", 1), maps.Clone(own["dqn"])
	delete(own["qrdqn"], "conservative_weight")
	own["qrdqn"]["n_quantiles"] = []edited{{"", "2", refused}}
	own["discrete_cql"]["double"], own["discrete_cql"]["gradient_steps"] = []edited{{"", "false", rebuilt}}, []edited{{"", "2", taken}}
	begin["cql"], own["cql"] = strings.Replace(begin["sac"], "kind: sac", "kind: cql", 1)+"; "+few, maps.Clone(own["sac"])
	// The regulariser goes neither with sequences nor with gSDE.
	maps.Copy(own["cql"], map[string][]edited{
		"vtrace.length": {{"", "2", invalid}}, "vtrace.lambda": {{"", "0.5", taken}}, "vtrace.clip_rho": {{"", "0.6", taken}}, "vtrace.clip_c": {{"", "0.6", taken}},
		"use_sde": {{"", "true", invalid}}, "use_sde_at_warmup": {{"", "true", invalid}}, "log_std_init": {{"", "-1", rebuilt}}, "sde_sample_freq": {{"", "3", taken}}, "clip_mean": {{"", "0.1", rebuilt}},
	})
	// Its actions are never in a box.
	own["maskable_ppo"]["use_sde"], own["maskable_ppo"]["log_std_init"], own["maskable_ppo"]["sde_sample_freq"] = []edited{{"", "true", refused}}, []edited{{"", "-1", rebuilt}}, []edited{{"", "3", taken}}
	// Their worlds have central fields, masks, and values that are normalised.
	for _, kind := range []string{"mappo", "ippo"} {
		begin[kind] = strings.NewReplacer("kind: ppo", "kind: "+kind, "cartpole", "cover").Replace(begin["ppo"])
		edits := maps.Clone(own["maskable_ppo"])
		edits["clip_range"], edits["clip_range_vf"], edits["correction"] = edits["clip_range"][:2], []edited{{"", "0.1", taken}, {"", "0", rebuilt}}, []edited{{"", "vtrace", invalid}}
		for _, key := range []string{"vtrace.clip_rho", "vtrace.clip_c"} {
			edits[key] = []edited{{"normalize_value=none; correction=vtrace", "0.9", taken}}
		}
		edits["vf_clip"], edits["vf_loss"], edits["huber_delta"] = []edited{{"", "clipped", rebuilt}}, []edited{{"", "squared", rebuilt}}, []edited{{"", "0.01", rebuilt}}
		edits["normalize_value"], edits["layer_norm"] = []edited{{"", "none", refused}, {"", "popart", rebuilt}}, []edited{{"", "false", refused}}
		edits["max_grad_norm"] = common["max_grad_norm"]
		if edits["central"] = []edited{{"", "true", refused}}; kind == "mappo" {
			edits["central"], edits["encoders"], edits["recurrent.critic"] = []edited{{"", "false", refused}}, []edited{{"", "shared", invalid}}, []edited{{lstm, "shared", invalid}}
		}
		own[kind] = edits
	}
}

// steps lists the algorithms that learn from env steps: bc learns from data sets alone, which its
// own tests and those of agents/run have.
func steps() []agents.Kind {
	return slices.DeleteFunc(kinds.All().Agents, func(k agents.Kind) bool { return k.Name == "bc" })
}

// editsOf returns those of a key.
func editsOf(algorithm, path string) []edited {
	if list, ok := own[algorithm][path]; ok {
		return list
	}
	if owner, key, ok := strings.Cut(path, "schedule."); ok {
		list := slices.Clone(schedules[key])
		for i := range list {
			list[i].from = strings.ReplaceAll(list[i].from, "@", owner+"schedule")
			if owner == "target_kl_" {
				list[i].from = strings.TrimSuffix("target_kl=0.01; "+list[i].from, "; ")
			} else if owner == "diversity.beta_" {
				list[i].from = strings.TrimSuffix(skilled+"; "+list[i].from, "; ")
			}
		}
		return list
	}
	return common[path]
}

// leaves lists the paths of keys that have none below them.
func leaves(keys []configs.Key) (list []string) {
	for _, k := range keys {
		switch {
		case len(k.Keys) > 0:
			list = append(list, leaves(k.Keys)...)
		case k.Path == "optimizer":
			// It reads its own part of a document, with the same keys.
			for _, key := range leaves(configs.Keys(optim.Config{})) {
				list = append(list, "optimizer."+key)
			}
		default:
			list = append(list, k.Path)
		}
	}
	return list
}

// open opens a document of assignments; those that begin with no section are the agent's.
func open(t testing.TB, sets ...string) (experiment.Config, envs.Factory, agents.Maker, error) {
	t.Helper()
	doc, err := configs.Parse("test.yaml", []byte("wrappers: {normalize: {obs: true, reward: true}}\ntrain: {num_envs: 2, total_env_steps: 300, log_interval_steps: 10, threads: 1, validation: {every_steps: 0}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range sets {
		for set := range strings.SplitSeq(list, "; ") {
			if set == "" {
				continue
			}
			if !slices.ContainsFunc([]string{"env=", "agent=", "train.", "wrappers."}, func(s string) bool { return strings.HasPrefix(set, s) }) {
				set = "agent." + set
			}
			if err := doc.Set(set); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := experiment.Defaults()
	if err := doc.Decode(&c); err != nil {
		return c, nil, nil, err
	}
	return kinds.All().Open(t.Context(), c)
}

// member is a trainer and the metrics that it gives.
type member struct {
	*train.Trainer
	trace []string
	// progress, unless nil, is called after every round and between gradient steps.
	progress func(p train.Progress)
}

// sessions are those of all members: most edits leave the graphs as they are.
var sessions = engine.Share(portable.New(), 256)

// start makes a member from documents. Its batches are split from so much arithmetic on, unless
// split is 0.
func start(t testing.TB, seed uint64, split float64, sets ...string) (*member, error) {
	t.Helper()
	c, f, m, err := open(t, sets...)
	if err != nil {
		t.Fatal(err)
	}
	x, now := &member{}, time.Unix(0, 0)
	c.Seed = seed
	s := kinds.All().Setup(c, sessions)
	s.SplitFLOPs = split
	x.Trainer, err = train.New(t.Context(), f, m, s, c.Train, train.Hooks{Metrics: func(at int64, values map[string]float64) {
		maps.DeleteFunc(values, func(tag string, _ float64) bool { return strings.HasPrefix(tag, "time/") })
		x.trace = append(x.trace, fmt.Sprint(at, values))
	}, Now: func() time.Time {
		now = now.Add(time.Second)
		return now
	}, Progress: func(p train.Progress) {
		if x.progress != nil {
			x.progress(p)
		}
	}})
	return x, err
}

// begun is start of a document that is right; the test closes the member.
func begun(t testing.TB, seed uint64, sets ...string) *member {
	t.Helper()
	x, err := start(t, seed, 0, sets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// to trains until so many env steps are taken.
func (x *member) to(t testing.TB, envSteps int64) {
	t.Helper()
	x.trace = nil
	res, err := x.RunTo(t.Context(), envSteps)
	if err != nil {
		t.Fatal(err)
	}
	if res.Stopped != train.Paused || res.EnvSteps < envSteps {
		t.Fatalf("%+v", res)
	}
}

// edit makes the member one of another document.
func (x *member) edit(t testing.TB, sets ...string) error {
	t.Helper()
	c, _, m, err := open(t, sets...)
	if err != nil {
		t.Fatal(err)
	}
	return x.Edit(t.Context(), m, c.Train)
}

// unsynced is the disk without waiting for it.
type unsynced struct{ atomicfile.Disk }

func (unsynced) SyncDir(string) error { return nil }

func (unsynced) Create(path string) (atomicfile.File, error) {
	f, err := os.Create(path)
	return unsyncedFile{f}, err
}

type unsyncedFile struct{ *os.File }

func (unsyncedFile) Sync() error { return nil }

// state is everything that the member would save, with the digests of arrays.
func (x *member) state(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	store, err := checkpoint.OpenStore(dir, checkpoint.Options{Disk: unsynced{atomicfile.OS}})
	if err != nil {
		t.Fatal(err)
	}
	path, err := store.Save(checkpoint.Meta{Kind: "test"}, x)
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(path, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// family is what is tried from one document: the member whose state is adopted, and the one that
// adopts it, which has had every edit before.
type family struct {
	document    string
	other, warm *member
}

// try edits and adopts, in either order, and compares with a cold start from the edited document
// and the adopted state.
func (f *family) try(t *testing.T, what string, e edited, set string, adoptFirst bool) {
	if _, _, _, err := open(t, f.document, set); e.want == invalid {
		if err == nil {
			t.Errorf("%s: it is a document", what)
		}
		return
	} else if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if err := f.warm.edit(t, f.document); err != nil {
		t.Fatalf("%s: back to the document: %v", what, err)
	}
	cold, err := start(t, 3, 0, f.document, set)
	if err == nil {
		defer cold.Close()
		err = checkpoint.Copy(cold, f.other)
	}
	if e.want == refused {
		before := f.warm.state(t)
		if err == nil {
			t.Errorf("%s: a cold start takes it", what)
		}
		if err := f.warm.edit(t, f.document, set); err == nil {
			t.Errorf("%s: it is taken", what)
		} else if f.warm.state(t) != before {
			t.Errorf("%s: refused with %v, and it has changed something", what, err)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: cold start: %v", what, err)
		return
	}
	learner := f.warm.Agent().Learner()
	steps := []func() error{func() error { return f.warm.edit(t, f.document, set) }, func() error { return checkpoint.Copy(f.warm, f.other) }}
	if adoptFirst {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	if same := f.warm.Agent().Learner() == learner; same != (e.want == taken) {
		t.Errorf("%s: the learner is the same: %t", what, same)
	}
	if f.warm.state(t) != cold.state(t) {
		t.Errorf("%s: other states to begin with", what)
	}
	end := f.other.EnvSteps() + 24
	f.warm.to(t, end)
	cold.to(t, end)
	if !slices.Equal(f.warm.trace, cold.trace) || len(cold.trace) < 2 {
		t.Errorf("%s: metrics %q, expected %q", what, f.warm.trace, cold.trace)
	}
	if f.warm.state(t) != cold.state(t) {
		t.Errorf("%s: another state than after a cold start", what)
	}
}

// TestEditAndAdopt edits keys of every algorithm while a learner lives, and lets it adopt another
// one's state: everything that follows has the bits of a cold start from the edited document and
// that state, or both are refused, and then nothing has changed. An algorithm has its own keys
// edited, and a sixth of those that it has in common with others, which have the rest.
func TestEditAndAdopt(t *testing.T) {
	longtest.Slow(t)
	testEditAndAdopt(t, 16, map[int]int{taken: 200, rebuilt: 90, refused: 55, invalid: 8})
}

// TestEditEverything is TestEditAndAdopt of every key of every algorithm.
func TestEditEverything(t *testing.T) {
	longtest.Nightly(t)
	testEditAndAdopt(t, 1, map[int]int{taken: 350, rebuilt: 110, refused: 110, invalid: 18})
}

// testEditAndAdopt edits one of every so many keys of all algorithms, and expects so many edits at
// least.
func testEditAndAdopt(t *testing.T, every int, least map[int]int) {
	var mu sync.Mutex
	n := map[int]int{}
	base := baseFile(t)
	t.Run("algorithms", func(t *testing.T) {
		for i, kind := range steps() {
			t.Run(kind.Name, func(t *testing.T) {
				t.Parallel()
				cases := edits(t, kind, base, every, i)
				mu.Lock()
				defer mu.Unlock()
				for want, k := range sorted.All(cases) {
					n[want] += k
				}
			})
		}
	})
	t.Logf("%d edits are taken, %d by a new agent, %d refused, %d invalid", n[taken], n[rebuilt], n[refused], n[invalid])
	for want, k := range sorted.All(least) {
		if n[want] < k {
			t.Errorf("%d edits have outcome %d, expected %d at least", n[want], want, k)
		}
	}
}

// baseFile writes an encoder of two layers over the squares of any number of features.
func baseFile(t testing.TB) string {
	t.Helper()
	b := onnx.NewBuilder("base", onnx.DefaultOpset)
	layer := func(name string, in, out int) onnx.Value {
		w := tensor.New(tensor.Float32, in, out)
		rng.New(8).Split(name).Stream().FillNormal32(w.Float32s(), 0, 1)
		return b.Initializer(name, w)
	}
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Symbol("features")}})
	x = b.Op("ReduceSumSquare", []onnx.Value{x, b.Ints(1)})
	x = b.Op("Tanh", []onnx.Value{b.Op("MatMul", []onnx.Value{x, layer("first", 1, 3)})})
	y := b.Rename(b.Op("MatMul", []onnx.Value{x, layer("second", 3, 2)}), "y")
	b.Output(y, onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(2)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "base.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// edits tries those of one algorithm, and counts them. Of the keys that have the edits of all it
// leaves out all but one of every so many, others for every algorithm.
func edits(t *testing.T, kind agents.Kind, base string, every, algorithm int) map[int]int {
	n, families, used := map[int]int{}, map[string]*family{}, map[string]bool{}
	for i, path := range append(leaves(configs.Keys(kind.Defaults())), outside...) {
		list := editsOf(kind.Name, path)
		used[path] = true
		if _, its := own[kind.Name][path]; !its && (i+algorithm)%every != 0 {
			continue
		}
		if len(list) == 0 {
			t.Errorf("%s has no edited value", path)
		}
		for _, e := range list {
			e.from = strings.ReplaceAll(e.from, "BASE", base)
			f := families[e.from]
			if f == nil {
				f = &family{document: begin[kind.Name] + "; " + e.from}
				f.other, f.warm = begun(t, 2, f.document), begun(t, 3, f.document)
				f.other.to(t, 48)
				f.warm.to(t, 56)
				families[e.from] = f
			}
			f.try(t, fmt.Sprintf("%q, %s=%s", e.from, path, e.value), e, path+"="+e.value, i%2 == 1)
			n[e.want]++
		}
	}
	for path := range sorted.All(own[kind.Name]) {
		if !used[path] {
			t.Errorf("there is no key agent.%s", path)
		}
	}
	return n
}

// stopped trains a member until it is stopped where at says so: between two rounds, or within a
// learner step.
func (x *member) stopped(t testing.TB, at func(p train.Progress) bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	x.progress = func(p train.Progress) {
		if at(p) {
			cancel()
		}
	}
	res, err := x.Run(ctx)
	if x.progress = nil; err != nil || res.Stopped != train.Interrupted {
		t.Fatalf("%+v, %v", res, err)
	}
}

// TestEditAndAdoptWithin adopts the state of a member that was stopped within a rollout, or within
// a learner step, and edits.
func TestEditAndAdoptWithin(t *testing.T) {
	longtest.Slow(t)
	n := 0
	for _, kind := range steps() {
		document := begin[kind.Name] + "; wrappers.normalize.gamma=0.95"
		switch kind.Name {
		case "dqn", "discrete_cql", "qrdqn", "sac", "cql", "iql", "awac", "awr", "td3", "td3_bc", "ddpg":
			document += "; train_freq=4; gradient_steps=3; double=true"
			if !slices.Contains([]string{"dqn", "discrete_cql", "qrdqn"}, kind.Name) {
				document = strings.ReplaceAll(document, "; double=true", "")
			}
		}
		for what, at := range sorted.All(map[string]func(p train.Progress) bool{
			"rollout": func(p train.Progress) bool { return p.EnvSteps == 54 },
			"step":    func(p train.Progress) bool { return p.EnvSteps > 48 && p.Update > 0 },
		}) {
			if what == "step" && (kind.Name == "a2c" || kind.Name == "cma_es") {
				continue // Its updates are one step.
			}
			f := &family{document: document, other: begun(t, 2, document), warm: begun(t, 3, document)}
			f.other.stopped(t, at)
			f.warm.to(t, 56)
			sets := []string{"learning_rate=0.005", "gamma=0.9", "max_grad_norm=0.01", "batch_size=2"}
			switch kind.Name {
			case "openai_es":
				sets = []string{"learning_rate=0.005", "sigma=0.3", "optimizer.beta1=0.8"}
			case "cma_es":
				sets = []string{"train.log_interval_steps=4"}
			}
			for i, set := range sets {
				e := edited{want: taken}
				if set == "batch_size=2" {
					// A learner step that has begun goes on in the batches that it has begun with.
					if slices.Contains([]string{"a2c", "impala"}, kind.Name) || strings.HasSuffix(kind.Name, "ppo") {
						continue
					}
					e.want = rebuilt
				}
				f.try(t, kind.Name+", stopped within a "+what+": "+set, e, set, i%2 == 1)
				n++
			}
		}
	}
	if n < 45 {
		t.Errorf("%d cases", n)
	}
}
