package app

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

// TestAllProblems: every command that reads a document reports the problems of all of its sections
// at once, each with file, line, column and key path.
func TestAllProblems(t *testing.T) {
	t.Parallel()
	experiment := `env: {kind: cartpole, max_steps: none}
wrappers: {frame_stack: many}
agent:
  kind: ppo
  gama: 0.9
  encoder: {kind: mlp, hidden: none}
train: {num_envs: -1}
eval: {deterministic: 7}
publish: {when: sometimes}
`
	want := []string{":1:34: env.max_steps: ", ":2:25: wrappers.frame_stack: ", ":5:3: agent.gama: ", ":6:32: agent.encoder.hidden: ", ":7:19: train.num_envs: ", ":8:23: eval.deterministic: ", ":9:17: publish.when: "}
	bad := apptest.Write(t, "bad.yaml", experiment)
	tuned := apptest.Write(t, "tuned.yaml", experiment+"tune: {trials: 0, space: {seed: {kind: int, low: 3, high: 2}}}\n")
	model := apptest.Write(t, "model.onnx", "")
	study := apptest.Write(t, "study.yaml", "base: "+bad+"\nfactors: {gamma: {low: {agent.gamma: 0.9}, high: {agent.gamma: 0.99}}}\n")
	fit := apptest.Write(t, "fit.yaml", "model: a.onnx\ndata: {path: a.csv, inputs: 3}\nbatch: -1\noptimizer: {kind: adm}\nloss: [{kind: msee}]\ncheckpoint: {keep: none}\n")
	served := apptest.Write(t, "serve.yaml", "http: nowhere\nmodels:\n  - {name: a, path: a.onnx, threads: -1}\n  - {name: b, pth: b.onnx}\ntrace: {ratio: 2}\n")
	tune := []string{":10:16: tune.trials: ", ":10:33: tune.space.seed: ", ":10:59: tune.space.seed.high: "}
	fitted := []string{":2:29: data.inputs: ", ":3:8: batch: ", ":4:12: optimizer: kind: ", ":5:15: loss[0].kind: ", ":6:20: checkpoint.keep: "}
	cases := []struct {
		args []string
		file string
		want []string
	}{
		{[]string{"config", "check", bad}, bad, want},
		{[]string{"train", bad}, bad, want},
		{[]string{"evaluate", model, "--config", bad}, bad, want},
		{[]string{"ablate", study}, bad, want},
		{[]string{"config", "check", study}, bad, want},
		{[]string{"tune", tuned}, tuned, append(want, tune...)},
		{[]string{"config", "check", tuned}, tuned, append(want, tune...)},
		{[]string{"fit", fit}, fit, fitted},
		{[]string{"config", "check", fit}, fit, fitted},
		{[]string{"serve", served}, served, []string{":1:7: http: ", ":3:5: models[0]: threads ", ":4:15: models[1].pth: ", ":5:16: trace.ratio: "}},
		{[]string{"config", "check", served}, served, []string{":1:7: http: ", ":3:5: models[0]: threads ", ":4:15: models[1].pth: ", ":5:16: trace.ratio: "}},
	}
	for _, c := range cases {
		r := apptest.Run(t, c.args...)
		text := r.Out + r.Err
		if n := strings.Count(text, filepath.Base(c.file)+":"); r.Code != 1 || n != len(c.want) {
			t.Errorf("%v: status %d, %d problems, expected %d\n%s", c.args, r.Code, n, len(c.want), text)
		}
		for _, w := range c.want {
			if !strings.Contains(text, c.file+w) {
				t.Errorf("%v: %s is not in\n%s", c.args, w, text)
			}
		}
	}
	if len(cases) != 11 {
		t.Errorf("%d commands", len(cases))
	}
}
