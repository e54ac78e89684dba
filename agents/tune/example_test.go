package tune_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// A search for a learning rate. The tuned document is ready to be trained.
func Example() {
	if err := search(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0 trials of 2 are done
	// 2 complete, 0 failed
	// chosen from 2 trials
}

func search() (err error) {
	dir, err := os.MkdirTemp("", "search")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	document := filepath.Join(dir, "corridor.yaml")
	err = os.WriteFile(document, []byte(`
env: {kind: corridor, cells: 5}
agent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 2, hidden: [8]}
train: {num_envs: 2, total_env_steps: 200, threads: 1, validation: {every_steps: 100}}
eval: {episodes: 2}
tune:
  trials: 2
  space:
    agent.learning_rate: {kind: loguniform, low: 1e-4, high: 1e-2}
`), 0o644)
	if err != nil {
		return err
	}
	engine := portable.New()
	defer engine.Close()

	s, err := tune.OpenSearch(context.Background(), kinds.All(), document, tune.SearchOptions{Engine: engine, Dir: filepath.Join(dir, "search")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	finished, err := s.Begin()
	if err != nil {
		return err
	}
	fmt.Printf("%d trials of %d are done\n", finished, s.Config().Trials)
	if err := s.Run(context.Background()); err != nil {
		return err
	}
	sum, err := s.Finish()
	if err != nil {
		return err
	}
	fmt.Printf("%d complete, %d failed\n", sum.Complete, sum.Failed)
	tuned, _, err := kinds.All().Load(filepath.Join(s.Dir(), tune.BestFile), nil)
	if err != nil {
		return err
	}
	fmt.Printf("chosen from %d trials\n", tuned.ChosenFrom.Trials)
	return nil
}
