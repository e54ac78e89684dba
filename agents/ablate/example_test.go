package ablate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/onnxrl/onnxrl/agents/ablate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// A study of one factor over two seeds. What is finished is not trained again.
func Example() {
	if err := ablation(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// base, seed 1: done
	// entropy=high, seed 1: done
	// base, seed 2: done
	// entropy=high, seed 2: done
	// 4 of 4 runs are in the tables
}

func ablation() (err error) {
	dir, err := os.MkdirTemp("", "study")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, text := range sorted.All(map[string]string{
		"base.yaml": `
env: {kind: corridor, cells: 5}
agent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 2, hidden: [8]}
train: {num_envs: 2, total_env_steps: 100, threads: 1, validation: {every_steps: 0}}
eval: {episodes: 2}
`,
		"study.yaml": `
base: base.yaml
seeds: [1, 2]
metrics: [mean_reward]
factors:
  entropy: {none: {agent.ent_coef: 0}, high: {agent.ent_coef: 0.1}}
`,
	}) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	engine := portable.New()
	defer engine.Close()

	ctx, all := context.Background(), kinds.All()
	config, base, err := ablate.Open(filepath.Join(dir, "study.yaml"))
	if err != nil {
		return err
	}
	plan, err := ablate.NewPlan(ctx, config, base, ablate.Options{Edit: experiment.Absolute, Decode: all.Decode, Effective: ablate.Opened(all)})
	if err != nil {
		return err
	}
	s := &ablate.Study{Plan: plan, Runner: ablate.Experiments{Trainer: study.Trainer{Kinds: all, Options: run.Options{Engine: engine}}}, Now: time.Now}
	s.Dir, s.Parallel = filepath.Join(dir, "out"), 1
	if err := s.Open(); err != nil {
		return err
	}
	if err := s.Begin(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Execute(ctx); err != nil {
		return err
	}
	for _, r := range s.Runs() {
		fmt.Printf("%s, seed %d: %s\n", r.Cell, r.Seed, r.State)
	}
	report := s.Report()
	if err := s.Write(report); err != nil {
		return err
	}
	fmt.Printf("%d of %d runs are in the tables\n", report.Summary.Done, len(s.Runs()))
	return nil
}
