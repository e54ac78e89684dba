package run_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// A whole experiment: its document is trained in a run directory, which is then resumed to go on
// for longer. Environments, algorithms and encoders of a user are appended to what kinds.All
// returns.
func Example() {
	if err := trainTwice(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 400 env steps of seed 7 with portable
	// has config.yaml, lineage.json, metrics.jsonl, best.onnx, finished.json
	// 600 env steps of seed 7 with portable
}

func trainTwice() error {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	document := filepath.Join(dir, "corridor.yaml")
	err = os.WriteFile(document, []byte(`
seed: 7
env: {kind: corridor, cells: 5}
agent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 2, hidden: [8]}
train: {num_envs: 2, total_env_steps: 400, threads: 1, validation: {every_steps: 200}}
eval: {episodes: 2}
publish: {observations: 32, allow_ties: true}
`), 0o644)
	if err != nil {
		return err
	}
	engine := portable.New()
	defer engine.Close()

	runDir := filepath.Join(dir, "first")
	train := func(path string, job run.Job) error {
		options := run.Options{Engine: engine}
		plan, err := run.Open(context.Background(), kinds.All(), path, job, options)
		if err != nil {
			return err
		}
		defer plan.Close()
		summary, err := plan.Train(context.Background())
		if err != nil {
			return err
		}
		r := summary.Runs[0]
		fmt.Printf("%d env steps of seed %d with %s\n", r.EnvSteps, r.Seed, r.Engine)
		return nil
	}
	if err := train(document, run.Job{Dir: runDir}); err != nil {
		return err
	}
	fmt.Print("has ")
	for i, name := range []string{run.ConfigFile, run.LineageFile, run.MetricsFile, "best.onnx", run.FinishedFile} {
		if _, err := os.Stat(filepath.Join(runDir, name)); err != nil {
			return err
		}
		if i > 0 {
			fmt.Print(", ")
		}
		fmt.Print(name)
	}
	fmt.Println()
	return train("", run.Job{Resume: runDir, Sets: []string{"train.total_env_steps=600"}})
}

// The best policy of a run, evaluated through the episodes that the section eval asks for. In
// trading environments it is Assess, whose result has the tables and makes the report.
func ExampleEvaluation() {
	if err := evaluateRun(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// PPO: mean reward 1.00 in 2.5 steps
}

func evaluateRun() error {
	dir, err := os.MkdirTemp("", "evaluation")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	document := filepath.Join(dir, "corridor.yaml")
	err = os.WriteFile(document, []byte(`
env: {kind: corridor, cells: 5}
agent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 4, hidden: [8], learning_rate: 0.01}
train: {num_envs: 2, total_env_steps: 1000, threads: 1, validation: {every_steps: 200}}
publish: {observations: 32, allow_ties: true}
`), 0o644)
	if err != nil {
		return err
	}
	engine := portable.New()
	defer engine.Close()
	ctx := context.Background()
	plan, err := run.Open(ctx, kinds.All(), document, run.Job{Dir: filepath.Join(dir, "run")}, run.Options{Engine: engine})
	if err != nil {
		return err
	}
	defer plan.Close()
	if _, err := plan.Train(ctx); err != nil {
		return err
	}

	evaluation, err := run.NewEvaluation(kinds.All(), plan.Dir(), run.EvaluationOptions{})
	if err != nil {
		return err
	}
	defer evaluation.Close()
	if err := evaluation.Open(ctx, engine); err != nil {
		return err
	}
	results, err := evaluation.Episodes(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s: mean reward %.2f in %.1f steps\n", evaluation.Policies()[0].Name, results[0].Return, results[0].Length)
	return nil
}

// A run in two intervals, of which the second has another entropy coefficient: what a member of a
// population does. Each has a directory of its own, and training it again returns what it gave.
func ExampleJob_Train() {
	if err := trainIntervals(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// paused after 200 env steps, with checkpoints/ckpt-000000200
	// ended after 400 env steps, with checkpoints/ckpt-000000400
	// agent.ent_coef: 0.0 -> 0.01
}

func trainIntervals() error {
	dir, err := os.MkdirTemp("", "intervals")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	document := filepath.Join(dir, "corridor.yaml")
	err = os.WriteFile(document, []byte(`
env: {kind: corridor, cells: 5}
agent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 2, hidden: [8]}
train: {num_envs: 2, total_env_steps: 400, threads: 1, validation: {every_steps: 0}}
publish: {when: never}
`), 0o644)
	if err != nil {
		return err
	}
	config, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	engine := portable.New()
	defer engine.Close()
	ctx, options := context.Background(), run.Options{Engine: engine}

	first := run.Job{Config: string(config), Dir: filepath.Join(dir, "first"), EnvSteps: 200}
	r, err := first.Train(ctx, kinds.All(), options)
	if err != nil {
		return err
	}
	fmt.Printf("%s after %d env steps, with %s\n", r.Stopped, r.EnvSteps, r.Checkpoint)
	// The document may change as far as its shapes stay.
	second := run.Job{Config: string(config), Sets: []string{"agent.ent_coef=0.01"}, Checkpoint: filepath.Join(first.Dir, r.Checkpoint), Dir: filepath.Join(dir, "second")}
	if r, err = second.Train(ctx, kinds.All(), options); err != nil {
		return err
	}
	fmt.Printf("ended after %d env steps, with %s\n", r.EnvSteps, r.Checkpoint)
	var l run.Lineage
	if err := run.ReadJSON(filepath.Join(second.Dir, run.LineageFile), &l); err != nil {
		return err
	}
	fmt.Println(l.Changes[0])
	return nil
}
