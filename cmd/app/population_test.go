package app

import (
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/portable"
)

// TestTrainPopulation trains the shipped population in a small form: it ends as one model, which is
// evaluated as any policy is, and a population that has ended is told again.
func TestTrainPopulation(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "population")
	succeed(t, "train", "population", "population_demo", "--engine", portable.Name, "-q", "--out", dir,
		"--set", "experts.population=2", "--set", "experts.generations=2", "--set", "experts.interval_steps=60", "--set", "router.every=2", "--set", "router.interval_steps=32",
		"--set", "experts.set={agent.learning_starts: 20, agent.batch_size: 8, agent.encoder.hidden: [8], agent.hidden: [8], publish.observations: 64}",
		"--set", "router.experiment.agent.n_steps=16", "--set", "router.experiment.agent.batch_size=16", "--set", "router.experiment.publish.observations=128")
	whole := filepath.Join(dir, "router", "turn-0000", "whole")
	says(t, succeed(t, "evaluate", filepath.Join(whole, "best.onnx"), "--engine", portable.Name, "--no-report", "-q"), "equal-weight buy-and-hold", "after 2 trials")
	says(t, succeed(t, "models", "verify", "--store", filepath.Join(whole, "artifacts"), "--engine", portable.Name), "ok")
	says(t, succeed(t, "evolve", "tree", filepath.Join(dir, "experts")), "MAPD")
	says(t, succeed(t, "train", "population", "--resume", dir, "--engine", portable.Name, "-q", "--json"), `"generations": 2`, `"published": "`+filepath.Join(whole, "best.onnx"))
	refuse(t, []string{"train", "population", "population_demo", "--out", dir}, "holds a population already")
	refuse(t, []string{"train", "population"}, "the document of a population is needed")
	refuse(t, []string{"train", "population", "demo", "--out", dir + "-2"}, "it has no experts")
}
