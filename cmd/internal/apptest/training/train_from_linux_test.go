package training

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// A run goes on from any of its checkpoints exactly as it went on then: in a directory of its own,
// which leaves the run as it is, or by going back.
func TestTrainResumesFromACheckpoint(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	for _, when := range []string{"end", "improvements"} {
		config, ref := apptest.TrainYAML(t, "seed: 1", "seed: 2", "every_steps: 100}", "every_steps: 100, keep_last: 99}", "publish: {", "publish: {when: "+when+", "), filepath.Join(t.TempDir(), "ref")
		apptest.TrainRuns(t, config, "--out", ref)
		was, metrics, versions := apptest.CheckpointPaths(t, ref), apptest.ReadBytes(t, filepath.Join(ref, run.MetricsFile)), apptest.VersionsIn(t, ref)
		at := was[len(was)/2]

		other := filepath.Join(t.TempDir(), "other")
		sum := apptest.TrainRuns(t, "--resume", at, "--out", other)
		if sum.Dir != other || sum.Runs[0].EnvSteps != 1200 {
			t.Errorf("%s: %+v", when, sum)
		}
		sameTraining(t, when+", another directory", other, ref)
		if !slices.Equal(apptest.CheckpointPaths(t, ref), was) || !bytes.Equal(apptest.ReadBytes(t, filepath.Join(ref, run.MetricsFile)), metrics) {
			t.Errorf("%s: the run itself has changed", when)
		}
		if got := apptest.CheckpointPaths(t, other); filepath.Base(got[0]) != filepath.Base(at) || len(got) != len(was)-len(was)/2 {
			t.Errorf("%s: checkpoints %q", when, got)
		}
		if got := apptest.VersionsIn(t, other); len(got) != len(versions) {
			t.Errorf("%s: %d versions, expected %d", when, len(got), len(versions))
		} else if when == "improvements" && len(versions) < 2 {
			t.Errorf("only %d versions were published on the way", len(versions))
		}
		var l run.Lineage
		if err := run.ReadJSON(filepath.Join(other, run.LineageFile), &l); err != nil || l.Continues != at {
			t.Errorf("%s: it continues %q, %v", when, l.Continues, err)
		}

		if when == "end" {
			edited := filepath.Join(t.TempDir(), "edited")
			apptest.Refuse(t, []string{"train", "--resume", at, "--out", edited, "--set", "agent.ent_koef=0.5"}, "agent.ent_koef")
			apptest.Refuse(t, []string{"train", "--resume", at, "--out", edited, "--set", "train.num_envs=3"}, "expected 3")
			apptest.TrainRuns(t, "--resume", at, "--out", edited, "--set", "agent.ent_coef=0.5")
			if err := run.ReadJSON(filepath.Join(edited, run.LineageFile), &l); err != nil || len(l.Changes) != 1 || !strings.HasPrefix(l.Changes[0], "agent.ent_coef: ") || !strings.HasSuffix(l.Changes[0], " -> 0.5") {
				t.Errorf("it continues with %q, %v", l.Changes, err)
			}
			if !strings.Contains(string(apptest.ReadBytes(t, filepath.Join(edited, run.ConfigFile))), "ent_coef: 0.5\n") || bytes.Equal(apptest.ReadBytes(t, filepath.Join(edited, run.MetricsFile)), metrics) {
				t.Error("the edited run is the one before")
			}
		}

		apptest.Refuse(t, []string{"train", "--resume", at}, "the run is finished", "--out")
		apptest.Refuse(t, []string{"train", "--resume", at, "--out", other}, other+" holds a run already")
		if !slices.Equal(apptest.CheckpointPaths(t, ref), was) {
			t.Errorf("%s: a refusal has removed checkpoints", when)
		}

		// A run that was stopped goes back.
		dir := filepath.Join(t.TempDir(), "run")
		if code, text := apptest.Interrupt(t, dir, 9, os.Interrupt, "train", "-q", config, "--out", dir); code != apptest.Interrupted {
			t.Fatalf("%s: exit status %d\n%s", when, code, text)
		}
		list := apptest.CheckpointPaths(t, dir)
		if len(list) < 6 {
			t.Fatalf("%s: %q", when, list)
		}
		// It is stopped at once, so that what it had later is seen to be gone.
		code, text := apptest.Interrupt(t, dir, 1, os.Interrupt, "train", "-q", "--resume", list[2])
		if code != apptest.Interrupted || !strings.Contains(text, "the run goes back to step") {
			t.Errorf("%s: exit status %d\n%s", when, code, text)
		}
		if got := apptest.CheckpointPaths(t, dir); len(got) >= len(list) || !slices.Equal(got[:3], list[:3]) {
			t.Errorf("%s: checkpoints %q, expected fewer than %q", when, got, list)
		}
		if steps, ok, err := publish.StepsOf(filepath.Join(dir, publish.BestFile)); err != nil || ok && steps > apptest.LatestStep(t, dir) {
			t.Errorf("%s: the best policy is that of env step %d, after the newest checkpoint, %v", when, steps, err)
		}
		apptest.TrainRuns(t, "--resume", dir)
		sameTraining(t, when+", gone back", dir, ref)
	}
}
