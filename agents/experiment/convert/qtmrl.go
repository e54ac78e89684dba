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
				t.fail(s, "nothing is sent to W&B: expected false; runs have their metrics as JSON lines and as TensorBoard's event files")
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
	// Where the specification keeps daily bars, one file per stock.
	absent: map[string]string{"env.data.source.path": "data/raw"},
}

func (t *translation) qtmrlEncoder(s configs.Section) {
	var encoder string
	if s.Decode(&encoder) == nil && strings.HasSuffix(encoder, ".onnx") {
		t.set("agent.encoder", map[string]any{"kind": "file", "path": encoder}, s)
		return
	}
	words("agent.encoder.kind", map[string]string{"TimeCNN": "timecnn", "Transformer": "transformer"})(t, s)
}
