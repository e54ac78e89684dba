package training

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestOwnersDefault: QTMRL's default.yaml means what the shipped experiment does, each of its keys
// is said, and it trains as it is.
func TestOwnersDefault(t *testing.T) {
	longtest.Slow(t)
	t.Chdir(t.TempDir())
	// The shipped document is the owner's.
	text, err := fs.ReadFile(configs.Shipped(), "qtmrl_owner.yaml")
	if err == nil {
		err = os.WriteFile("default.yaml", text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := apptest.Run(t, "config", "convert", "default.yaml", "-o", "qtmrl.yaml")
	if r.Code != 0 || said(r, "qtmrl: ") != 41 {
		t.Errorf("status %d, %d notes\n%s", r.Code, said(r, "qtmrl: "), r.Err)
	}
	for _, want := range []string{"train.entropy_coef: 0.05 -> agent.ent_coef: 0.05", "logging.use_wandb: false -> not needed", "model.encoder: TimeCNN -> agent.encoder.kind: timecnn", "features -> env.data.features",
		"no key -> env.data.source.anchor: first", "no key -> env.execution.fill: same_close", "no key -> env.execution.cash_split: owner", "no key -> env.initial_cash: 10000", "no key -> agent.reduction: sum"} {
		if said(r, want) != 1 {
			t.Errorf("%q is not said:\n%s", want, r.Err)
		}
	}
	sets := []string{"env.data.assets=[]", "env.data.source={}", "env.data.synthetic={kind: noise, seed: 1, bars: 5700}"}
	apptest.SameSettings(t, "default.yaml", apptest.Settled(t, "qtmrl.yaml", sets...), apptest.Settled(t, "qtmrl", append(sets, "env.execution={fill: same_close, cash_split: owner}")...))
	apptest.SameSettings(t, "default.yaml", apptest.Settled(t, "qtmrl.yaml", sets...), apptest.Settled(t, "qtmrl_owner", sets...))
	// W&B reads the event files of a run, so to ask for it is no error.
	if err := os.WriteFile("wandb.yaml", bytes.Replace(text, []byte("use_wandb: false"), []byte("use_wandb: true"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := apptest.Run(t, "config", "convert", "wandb.yaml"); r.Code != 0 || said(r, "logging.use_wandb: true -> nothing is sent while training: wandb sync --sync-tensorboard RUN/tensorboard") != 1 {
		t.Errorf("status %d\n%s", r.Code, r.Err)
	}

	// Daily bars lie in data/raw, one file per stock; of a year at both ends of each range, to be
	// quick.
	if err := os.MkdirAll(filepath.Join("data", "raw"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, symbol := range strings.Fields("AAPL MSFT NVDA CVX OXY AAL UAL DAL CCL RCL WYNN LVS AXP BAC JNJ GOOGL") {
		text := "date,symbol,open,high,low,close,volume\n"
		day := 0
		for _, year := range []int{2000, 2001, 2002, 2011, 2012, 2019, 2020} {
			for month := 1; month <= 12; month++ {
				for d := 1; d <= 28; d += 3 {
					day++
					price := 50 + 10*float64((day*(i+3))%17)/17
					text += fmt.Sprintf("%d-%02d-%02d,%s,%g,%g,%g,%g,%d\n", year, month, d, symbol, price, price+1, price-1, price+0.5, 1000+day)
				}
			}
		}
		if err := os.WriteFile(filepath.Join("data", "raw", symbol+".csv"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r = apptest.Run(t, "train", "default.yaml", "-q", "--engine", portable.Name, "--no-publish", "--set", "train.total_env_steps=100", "--set", "train.validation.every_steps=0")
	if r.Code != 0 || !apptest.IsFile(filepath.Join("runs", "default-1", run.FinishedFile)) {
		t.Errorf("status %d\n%s", r.Code, r.Err)
	}
	// So it does with dropout.
	if err := os.WriteFile("dropout.yaml", bytes.Replace(text, []byte("dropout: 0.0"), []byte("dropout: 0.1"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	r = apptest.Run(t, "train", "dropout.yaml", "-q", "--engine", portable.Name, "--no-publish", "--set", "train.total_env_steps=50", "--set", "train.validation.every_steps=0")
	if r.Code != 0 || said(r, "qtmrl: model.dropout: 0.1 -> agent.encoder.dropout: 0.1") != 1 || !apptest.IsFile(filepath.Join("runs", "dropout-1", run.FinishedFile)) {
		t.Errorf("status %d\n%s", r.Code, r.Err)
	}
}

// TestTrainZoo trains from a file of the form of RL-Zoo's, and converts it.
func TestTrainZoo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "ppo.yml")
	if err := os.WriteFile(file, []byte("CartPole-v1:\n  n_envs: 8\n  n_timesteps: !!float 1e3\n  policy: 'MlpPolicy'\n  n_steps: 32\n  batch_size: 256\n  gae_lambda: 0.8\n  gamma: 0.98\n  n_epochs: 20\n  ent_coef: 0.0\n  learning_rate: lin_0.001\n  clip_range: lin_0.2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "run")
	r := apptest.Run(t, "train", "--zoo", file, "--env-id", "CartPole-v1", "-q", "--engine", portable.Name, "--out", out, "--no-publish", "--set", "train.validation.every_steps=0")
	if r.Code != 0 || said(r, "zoo: ") != 13 || said(r, "zoo: n_timesteps: 1e3 -> train.total_env_steps: 1000") != 1 {
		t.Errorf("status %d, %d notes\n%s", r.Code, said(r, "zoo: "), r.Err)
	}
	text := apptest.ReadText(t, filepath.Join(out, run.ConfigFile))
	for _, want := range []string{"\n  kind: cartpole\n", "\n  kind: ppo\n", "\n  n_steps: 32\n", "\n  total_env_steps: 1000\n", "\n    kind: linear\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	converted := filepath.Join(dir, "cartpole.yaml")
	if r := apptest.Run(t, "config", "convert", file, "--env-id", "CartPole-v1", "-o", converted); r.Code != 0 {
		t.Fatal(r.Err)
	}
	apptest.SameSettings(t, converted, apptest.Settled(t, converted, "publish.when=never", "train.validation.every_steps=0", "train.threads=1"), apptest.Settled(t, filepath.Join(out, run.ConfigFile), "train.threads=1"))
	apptest.Refuse(t, []string{"train", "--zoo", file}, "--env-id is missing")
	apptest.Refuse(t, []string{"train", "--env-id", "CartPole-v1", converted}, "--env-id and --algo belong to --zoo")
	apptest.Refuse(t, []string{"train", "--zoo", file, converted}, "--zoo has the configuration")
	for says, args := range sorted.All(map[string][]string{
		"--set agent.n_steps=none: agent.n_steps: expected an integer":                          {"--zoo", file, "--env-id", "CartPole-v1", "--set", "agent.n_steps=none"},
		file + ":2:3: CartPole-v1: these are RL-Zoo's hyper-parameters of an environment: onnx": {file},
	}) {
		if r := apptest.Run(t, append([]string{"train"}, args...)...); r.Code != 1 || !strings.Contains(r.Err, says) {
			t.Errorf("%v: status %d, expected %q in\n%s", args, r.Code, says, r.Err)
		}
	}
}
