package studies

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// TestTrainPopulation trains the shipped population in a small form: it ends as one model, which is
// evaluated as any policy is, and a population that has ended only prints its results again. By day
// TestPopulationWalkedForward does so with a market of its own.
func TestTrainPopulation(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "population")
	apptest.Succeed(t, "train", "population", "population_demo", "--engine", portable.Name, "-q", "--out", dir,
		"--set", "experts.population=2", "--set", "experts.generations=2", "--set", "experts.interval_steps=60", "--set", "router.every=2", "--set", "router.interval_steps=32",
		"--set", "experts.set={agent.learning_starts: 20, agent.batch_size: 8, agent.encoder.hidden: [8], agent.hidden: [8], publish.observations: 64}",
		"--set", "router.experiment.agent.n_steps=16", "--set", "router.experiment.agent.batch_size=16", "--set", "router.experiment.publish.observations=128", "--set", "router.experiment.eval.episodes=1",
		"--set", "pretrain.stride=50", "--set", "walkforward.variants={}")
	whole := filepath.Join(dir, "router", "generation-0000", "member-000", "whole")
	for _, target := range []string{filepath.Join(whole, "best.onnx"), whole} {
		apptest.Says(t, apptest.Succeed(t, "evaluate", target, "--engine", portable.Name, "--no-report", "-q"), "equal-weight buy-and-hold", "after 3 trials")
	}
	apptest.Says(t, apptest.Succeed(t, "models", "verify", "--store", filepath.Join(whole, "artifacts"), "--engine", portable.Name), "ok")
	apptest.Says(t, apptest.Succeed(t, "evolve", "tree", filepath.Join(dir, "experts")), "MAPD")
	apptest.Says(t, apptest.Succeed(t, "evolve", "tree", filepath.Join(dir, "router")), "1 of 1 generations")
	apptest.Says(t, apptest.Succeed(t, "train", "population", "--resume", dir, "--engine", portable.Name, "-q", "--json"), `"generations": 2`, `"published": "`+filepath.Join(whole, "best.onnx"))
}

// TestOwnersPopulation trains the document of the page in a small form to its end, with all that the
// owner's description asks for.
func TestOwnersPopulation(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/population.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(experts: \\{n_experts.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page has no document of the owner's")
	}
	ownersPopulation(t, apptest.Write(t, "page.yaml", string(block[1])))
}

// TestOwnersDocument does so with the owner's document as it is.
func TestOwnersDocument(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	ownersPopulation(t, "../../../../agents/experiment/convert/testdata/owner.yaml")
}

// ownersPopulation trains a document of the owner's. What memory it takes is said before.
func ownersPopulation(t *testing.T, path string) {
	t.Helper()
	small := []string{"--engine", portable.Name, "-q"}
	for _, set := range []string{
		"experts.population=2", "experts.generations=2", "experts.every=1", "router.every=1", "router.evolve_every=1", "experts.interval_steps=60", "router.interval_steps=16", "experts.probe=8",
		"agent.learning_starts=20", "agent.batch_size=8", "agent.hidden=[8]", "agent.diversity.hidden=[8]", "agent.lora.rank=2", "env.episode.length=20", "publish.observations=64", "eval.bootstrap.samples=20",
		"router.experiment.agent.n_steps=8", "router.experiment.agent.batch_size=8", "router.experiment.agent.n_epochs=2", "router.experiment.publish.observations=64", "router.experiment.eval.episodes=1",
		"pretrain.stride=200", "pretrain.fit.epochs=1", "pretrain.fit.network.encoder={kind: timesnet, d_model: 4, d_ff: 4, n_layers: 1, n_kernels: 2, period_choice: frozen, periods: [5], adapt: true}",
	} {
		small = append(small, "--set", set)
	}
	dir := filepath.Join(t.TempDir(), "population")
	r := apptest.Run(t, slices.Concat([]string{"train", "population", path, "--out", dir}, small)...)
	if r.Code != 0 {
		t.Errorf("%s: exit status %d\n%s", path, r.Code, r.Err)
	}
	apptest.Says(t, r.Err, "replay of 2000000 transitions 2", "; together ")
	apptest.Says(t, r.Out, "2 of 2 generations", "router, turn 2 of 2", filepath.Join(dir, "router", "generation-0001"))
}
