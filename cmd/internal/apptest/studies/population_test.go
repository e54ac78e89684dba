package studies

import (
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// TestTrainPopulation trains the shipped population in a small form: it ends as one model, which is
// evaluated as any policy is, and a population that has ended is told again.
func TestTrainPopulation(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "population")
	apptest.Succeed(t, "train", "population", "population_demo", "--engine", portable.Name, "-q", "--out", dir,
		"--set", "experts.population=2", "--set", "experts.generations=2", "--set", "experts.interval_steps=60", "--set", "router.every=2", "--set", "router.interval_steps=32",
		"--set", "experts.set={agent.learning_starts: 20, agent.batch_size: 8, agent.encoder.hidden: [8], agent.hidden: [8], publish.observations: 64}",
		"--set", "router.experiment.agent.n_steps=16", "--set", "router.experiment.agent.batch_size=16", "--set", "router.experiment.publish.observations=128", "--set", "router.experiment.eval.episodes=1",
		"--set", "pretrain.stride=50", "--set", "walkforward.variants={}")
	whole := filepath.Join(dir, "router", "generation-0000", "member-000", "whole")
	apptest.Says(t, apptest.Succeed(t, "evaluate", filepath.Join(whole, "best.onnx"), "--engine", portable.Name, "--no-report", "-q"), "equal-weight buy-and-hold", "after 3 trials")
	apptest.Says(t, apptest.Succeed(t, "models", "verify", "--store", filepath.Join(whole, "artifacts"), "--engine", portable.Name), "ok")
	apptest.Says(t, apptest.Succeed(t, "evolve", "tree", filepath.Join(dir, "experts")), "MAPD")
	apptest.Says(t, apptest.Succeed(t, "evolve", "tree", filepath.Join(dir, "router")), "1 of 1 generations")
	apptest.Says(t, apptest.Succeed(t, "train", "population", "--resume", dir, "--engine", portable.Name, "-q", "--json"), `"generations": 2`, `"published": "`+filepath.Join(whole, "best.onnx"))
	owners := apptest.Write(t, "owner.yaml", "experts: {n_experts: 3}\ntrainer: {training_schedule: {router: {lr_range: [1.0e-4, 1.0e-3]}}}\n")
	apptest.Says(t, apptest.Succeed(t, "config", "convert", owners), "population: 3", "evolve_every: 2")
	apptest.Refuse(t, []string{"train", "population", "population_demo", "--out", dir}, "holds a population already")
	apptest.Refuse(t, []string{"train", "population"}, "the document of a population is needed")
	apptest.Refuse(t, []string{"train", "population", "demo", "--out", dir + "-2"}, "it has no experts")
}
