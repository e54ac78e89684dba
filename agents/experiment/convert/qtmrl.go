package convert

import (
	"strings"

	"github.com/onnxrl/onnxrl/configs"
)

// qtmrl is the default.yaml that the specification of QTMRL gives.
var qtmrl = form{
	from:  "qtmrl",
	marks: []string{"assets", "fee_rate", "buy_pct", "sell_pct"},
	base:  "qtmrl.yaml",
	rules: table{
		"seed":                     to("seed"),
		"assets":                   to("env.data.assets"),
		"window":                   to("env.window"),
		"fee_rate":                 to("env.fee_rate"),
		"buy_pct":                  to("env.buy_pct"),
		"sell_pct":                 to("env.sell_pct"),
		"split":                    to("env.data.split"),
		"features":                 to("env.data.features"),
		"normalization":            to("env.data.normalization"),
		"state.include_pos":        to("env.state.include_pos"),
		"state.include_cash":       to("env.state.include_cash"),
		"model.encoder":            (*translation).qtmrlEncoder,
		"model.d_model":            to("agent.encoder.d_model"),
		"model.n_layers":           to("agent.encoder.n_layers"),
		"model.dropout":            to("agent.encoder.dropout"),
		"train.algo":               words("agent.kind", map[string]string{"A2C": "a2c"}),
		"train.gamma":              to("agent.gamma"),
		"train.entropy_coef":       to("agent.ent_coef"),
		"train.value_coef":         to("agent.vf_coef"),
		"train.lr_actor":           to("agent.learning_rate"),
		"train.lr_critic":          to("agent.critic_learning_rate"),
		"train.grad_clip":          to("agent.max_grad_norm"),
		"train.rollout_steps":      to("agent.n_steps"),
		"train.total_env_steps":    to("train.total_env_steps"),
		"train.log_interval_steps": to("train.log_interval_steps"),
		"eval.deterministic":       to("eval.deterministic"),
		"eval.use_fee":             to("eval.use_fee"),
		"eval.metrics":             to("eval.metrics"),
		"logging.use_wandb": func(t *translation, s configs.Section) {
			var on bool
			if err := s.Decode(&on); err != nil {
				t.add(err)
			} else if on {
				t.did = append(t.did, "nothing is sent while training: wandb sync --sync-tensorboard RUN/tensorboard uploads a run's metrics")
			} else {
				t.did = append(t.did, "not needed: runs have their metrics as JSON lines and as TensorBoard's event files")
			}
		},
		"logging.output_dir": func(t *translation, s configs.Section) {
			var dir string
			if err := s.Decode(&dir); err != nil {
				t.add(err)
			} else if strings.Trim(dir, "./") != "runs" {
				t.fail(s, "expected ./runs, where run directories are made; the flag --out names another")
			} else {
				t.did = append(t.did, "not needed: run directories are made there unless --out names another")
			}
		},
	},
	// The specification says these in its text, or leaves them open.
	absent: []absent{
		{"env.data.source.path", "data/raw", "where the specification keeps daily bars, a file per stock"},
		{"env.data.source.anchor", "first", "the specification wants back-adjusted closes, which are as quoted on a stock's first day; the file's own are so on its last, and know the dividends and splits until then"},
		{"env.execution.fill", "same_close", "the specification trades and values at the close that was observed; next_open, this program's default, fills at a price that nobody has seen yet"},
		{"env.execution.cash_split", "owner", "the specification buys one after another out of one pool, each for its share of the cash that is left; fair, this program's default, gives all buyers the same"},
		{"env.initial_cash", 10000, "the specification names no sum"},
		{"env.reward", "simple", "P_t / P_{t-1} - 1, as the specification has it"},
		{"env.state.scale", "weight", "the specification names a normalised cash and not by what; here positions and cash are shares of the portfolio's value"},
		{"agent.reduction", "sum", "the specification's loss is a sum over the steps of a rollout"},
		{"agent.encoders", "shared", "the specification allows one encoder for actor and critic, or two"},
		{"agent.optimizer.kind", "adam", "the specification names none"},
		{"train.num_envs", 1, "the specification collects from one environment"},
	},
}

func (t *translation) qtmrlEncoder(s configs.Section) {
	var encoder string
	if s.Decode(&encoder) == nil && strings.HasSuffix(encoder, ".onnx") {
		t.set("agent.encoder", map[string]any{"kind": "file", "path": encoder}, s)
		return
	}
	words("agent.encoder.kind", map[string]string{"TimeCNN": "timecnn", "Transformer": "transformer"})(t, s)
}
