// Package workertest has what tests of executors train: a small experiment, a population of it, and
// intervals one by one.
package workertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// Base is the experiment: PPO in a corridor, 1,000 env steps, a checkpoint every 100.
const Base = `
seed: 4
env: {kind: corridor, cells: 5}
wrappers: {normalize: {obs: true}}
agent: {kind: ppo, n_steps: 25, batch_size: 50, n_epochs: 2, hidden: [8]}
train: {num_envs: 2, total_env_steps: 1000, threads: 1, log_interval_steps: 50, checkpoint: {every_steps: 100}}
eval: {episodes: 2}
`

// population is the document that evolves it.
const population = `
base: base.yaml
population: 4
interval_steps: 400
generations: 3
probe: 16
strategy: {kind: pbt}
space:
  agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-2}
`

// Write writes the experiment, base.yaml, and a document of that name beside it into a directory of
// the test's, and returns the document's path.
func Write(t testing.TB, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range [][2]string{{"base.yaml", Base}, {name, text}} {
		if err := os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, name)
}

// Population writes the population, 4 members that train 400 env steps in each of 3 generations, in
// which each of the edits' even texts is replaced by the one after it.
func Population(t testing.TB, edits ...string) string {
	t.Helper()
	return Write(t, "population.yaml", strings.NewReplacer(edits...).Replace(population))
}

// Document is the experiment with edits, each KEY=VALUE, as jobs have it.
func Document(t testing.TB, edits ...string) string {
	t.Helper()
	doc, err := configs.Parse("base.yaml", []byte(Base))
	if err == nil {
		err = doc.Set(edits...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(doc.Bytes())
}

// Evolve trains the population in a directory by an executor, nil for this process, or goes on with
// it, and returns its records: those of a generation have the digests of members' states. Env steps
// are reported as they are taken.
func Evolve(ctx context.Context, path, dir string, x run.Executor, steps func(n int64)) (string, error) {
	eng := portable.New()
	defer eng.Close()
	o := evolve.Options{Kinds: kinds.All(), Run: run.Options{Engine: eng, Executor: x}, Dir: dir, Steps: steps}
	if _, err := os.Stat(filepath.Join(dir, evolve.ConfigFile)); err == nil {
		path, o.Dir, o.Resume = "", "", dir
	}
	s, err := evolve.Open(ctx, path, o)
	if err != nil {
		return "", err
	}
	if _, err = s.Begin(); err == nil {
		err = s.Run(ctx)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(dir, evolve.LogFile))
	return string(text), err
}

// Intervals trains n of them of so many env steps by an executor, nil for this process, at of them
// at once, and returns how long that took. None saves before its end, which would measure the disk.
func Intervals(b *testing.B, x run.Executor, at, n int, steps int64) time.Duration {
	b.Helper()
	e := engine.Share(portable.New(), 8)
	defer e.Close()
	list := make([]string, n)
	for i := range list {
		list[i] = Document(b, fmt.Sprintf("train.total_env_steps=%d", steps), "train.checkpoint.every_steps=1000000", fmt.Sprintf("seed=%d", i))
	}
	dir := b.TempDir()
	began := time.Now()
	err := run.Each(b.Context(), at, n, func(ctx context.Context, i int) error {
		_, err := run.Job{Config: list[i], Name: "x", Dir: filepath.Join(dir, fmt.Sprint(i)), NoPublish: true}.Train(ctx, kinds.All(), run.Options{Engine: e, Executor: x})
		return err
	})
	took := time.Since(began)
	if err != nil {
		b.Fatal(err)
	}
	return took
}
