package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/ablate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/fit"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// goldenDocuments are the shipped experiments, and the command that reads each. What another
// machine may lack is set to something that it has: a user's own bars, Gymnasium.
var goldenDocuments = []struct {
	command, name string
	set           []string
	// other says that the experiment has been given other settings on purpose, so that only what
	// was kept must still mean the same.
	other bool
}{
	{"train", "acrobot_ppo", nil, false},
	{"train", "cartpole_a2c", nil, false},
	{"train", "cartpole_dqn", nil, false},
	{"train", "cartpole_ppo", nil, false},
	{"train", "demo", nil, true},
	{"train", "halfcheetah_sac", []string{"env={kind: pendulum}"}, false},
	{"train", "invalid_maskable_ppo", nil, false},
	{"train", "mountaincar_continuous_a2c", nil, false},
	{"train", "mountaincar_continuous_sac", nil, false},
	{"train", "pendulum_a2c", nil, false},
	{"train", "pendulum_ddpg", nil, false},
	{"train", "pendulum_ppo", nil, false},
	{"train", "pendulum_sac", nil, false},
	{"train", "pendulum_td3", nil, false},
	{"train", "qtmrl", madeUpBars, false},
	{"train", "synthetic_leading", nil, false},
	{"train", "synthetic_noise", nil, false},
	{"tune", "cartpole_tune", nil, false},
	{"ablate", "demo_ablation", nil, false},
	{"ablate", "qtmrl_ablation", madeUpBars, false},
	{"fit", "fit_digits", nil, false},
	{"fit", "fit_digits_lora", nil, false},
	{"fit", "pretrain_encoder", nil, false},
}

var madeUpBars = []string{"env.data.assets=[]", "env.data.source={}", "env.data.synthetic={kind: noise, seed: 1, bars: 5700}"}

// TestGoldenDocuments reads the effective configurations of all shipped experiments that an older
// program wrote: each still means the same, key by key, and so do the experiments themselves,
// unless they were changed on purpose. Keys may have come since.
func TestGoldenDocuments(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	for _, c := range goldenDocuments {
		t.Run(c.name, func(t *testing.T) {
			kept := filepath.Join("testdata", "documents", c.name+".yaml")
			// Threads depend on the machine where a document leaves them open.
			set := c.set
			if c.command != "fit" {
				set = append(slices.Clone(set), "train.threads=1")
			}
			if *goldenFrom != "" {
				recordGoldenDocument(t, c.command, c.name, set, kept)
			}
			want := openDocument(t, kept)
			switch c.command {
			case "train", "tune":
				if !c.other {
					apptest.SameSettings(t, c.name, apptest.Settled(t, c.name, set...), want)
				}
				apptest.SameSettings(t, kept, apptest.Settled(t, kept), want)
			case "fit":
				// Values that it leaves open, which are 0, "" or null, follow from the model and the machine.
				shipped, err := configs.Diff(apptest.InKeysOfNow(t, want), settledFit(t, filepath.Join("..", "..", "..", "configs", "experiments", c.name+".yaml")))
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range shipped {
					if d.Old != "" && !slices.Contains([]string{"0", "0.0", `""`, "null"}, d.New) {
						t.Errorf("%s: %s", c.name, d)
					}
				}
				apptest.SameSettings(t, kept, settledFit(t, kept), want)
			case "ablate":
				plan := settledPlan(t, c.name, set)
				var cells []configs.Section
				section, ok := want.Lookup("cells")
				if !ok {
					t.Fatalf("%s has no cells", kept)
				}
				if err := section.Decode(&cells); err != nil || len(cells) != len(plan.Cells) || len(cells) < 8 {
					t.Fatalf("%s has %d cells, the study %d: %v", kept, len(cells), len(plan.Cells), err)
				}
				for i := range cells {
					run, ok := want.Lookup(fmt.Sprintf("cells[%d].run", i))
					if !ok {
						t.Fatalf("%s: cell %d has no document", kept, i)
					}
					apptest.SameSettings(t, fmt.Sprintf("%s: cell %s", c.name, plan.Cells[i].Name), plan.Cells[i].Config, run)
				}
			}
		})
	}
}

// recordGoldenDocument keeps the effective configuration that the older program trains with.
func recordGoldenDocument(t *testing.T, command, name string, set []string, kept string) {
	t.Helper()
	dir, file := filepath.Join(t.TempDir(), name), run.ConfigFile
	args := []string{command, name, "--engine", "portable", "-q"}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	in := here
	switch command {
	case "fit":
		// Its paths are relative to the folder that the command runs in.
		in = t.TempDir()
		if err := os.Symlink(filepath.Join(here, "..", "..", "..", "configs"), filepath.Join(in, "configs")); err != nil {
			t.Fatal(err)
		}
		older(t, "data", "windows", "demo", "-q", "--out", filepath.Join(in, "windows.parquet"))
		args[1] = filepath.Join("configs", "experiments", name+".yaml")
		args = append(args, "--shards", "1", "--dir", dir)
	case "ablate":
		file = "plan.yaml"
		args = append(args, "--calibrate", "0", "--out", dir)
	default:
		args = append(args, "--out", dir)
	}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	stopOlder(t, in, func() bool {
		_, err := os.Stat(filepath.Join(dir, file))
		return err == nil
	}, args...)
	write(t, kept, []byte(strings.ReplaceAll(apptest.ReadText(t, filepath.Join(dir, file)), in+"/", "")))
}

// openDocument reads a document as it stands.
func openDocument(t *testing.T, path string) *configs.Document {
	t.Helper()
	doc, err := configs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func settledFit(t *testing.T, path string) fit.Config {
	t.Helper()
	c := fit.Defaults()
	if err := openDocument(t, path).Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func settledPlan(t *testing.T, name string, set []string) *ablate.Plan {
	t.Helper()
	c, base, err := ablate.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ablate.NewPlan(t.Context(), c, base, ablate.Options{Sets: set, Edit: experiment.Absolute, Effective: ablate.Opened(kinds.All())})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
