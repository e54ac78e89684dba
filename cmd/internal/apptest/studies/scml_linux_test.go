package studies

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/scml/curriculum"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// scmlKills is how often TestTrainSCMLKilledOften kills the program.
const scmlKills = 4

// TestTrainSCMLKilled kills train scml at a random moment and goes on: rounds, states and the agent
// end with the bits of a training that nobody killed. One that has ended before it is killed gives
// way to another, until so many are.
func TestTrainSCMLKilled(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	scmlKilled(t, longtest.Times(t, scmlKills))
}

func scmlKilled(t *testing.T, kills int) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "small.yaml")
	if err := os.WriteFile(path, []byte(smallCurriculum), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func(to string) []string {
		return []string{"train", "scml", path, "--engine", portable.Name, "-q", "--out", to}
	}
	// All are in the same place: worlds that are saved name the agents in them by their
	// directories.
	to := filepath.Join(dir, "training")
	at := time.Now()
	if text, err := apptest.Program(t, begin(to)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	took := time.Since(at)
	want := curriculumBits(t, to)
	k, runs := killing{t: t, left: kills, took: took, moments: rng.New(1).Stream()}, 0
	for ; k.left > 0; runs++ {
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		k.run(func() []string {
			if study.Holds(to, curriculum.ConfigFile) {
				return []string{"train", "scml", "--resume", to, "--engine", portable.Name, "-q"}
			}
			return begin(to)
		})
		for i, got := range curriculumBits(t, to) {
			if got != want[i] {
				t.Fatalf("training %d is another:\n%s\nexpected\n%s", runs, got, want[i])
			}
		}
	}
	t.Logf("%d kills of %d trainings, one of which takes %v", kills, runs, took.Round(time.Millisecond))
}

// curriculumBits are the logs of a training, the digests of the states of its layers and what its
// agent is made of: the files of this say when they were made.
func curriculumBits(t *testing.T, dir string) (list []string) {
	t.Helper()
	states, err := filepath.Glob(filepath.Join(dir, "rounds", "*", "*", run.CheckpointDir, "*", "arrays.safetensors"))
	pretrained, e := filepath.Glob(filepath.Join(dir, "pretrain", "*", run.CheckpointDir, "*", "arrays.safetensors"))
	if err != nil || e != nil || len(states) < 3 || len(pretrained) < 1 {
		t.Fatal(states, pretrained, err, e)
	}
	for _, path := range slices.Concat(pretrained, states) {
		list = append(list, fmt.Sprintf("%s %x", filepath.Base(filepath.Dir(path)), sha256.Sum256(apptest.ReadBytes(t, path))))
	}
	for _, name := range []string{curriculum.RoundsFile, curriculum.EvaluationFile, curriculum.AgentDir + "/agent.json"} {
		list = append(list, string(apptest.ReadBytes(t, filepath.Join(dir, name))))
	}
	return list
}
