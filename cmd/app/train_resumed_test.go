package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

// A run that was stopped between its last env step and its summary has learnt, whoever goes on with
// it: the summary is that of the process that trained it.
func TestResumedAtItsEnd(t *testing.T) {
	t.Parallel()
	dir := apptest.Trained(t, tinyCartPole)
	file := filepath.Join(dir, run.FinishedFile)
	var before, after run.RunSummary
	apptest.ReadJSON(t, file, &before)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if text := apptest.Succeed(t, "train", "--resume", dir, "-q"); strings.Contains(text, "learnt nothing") {
		t.Errorf("%s", text)
	}
	apptest.ReadJSON(t, file, &after)
	if after.StepsPerSec != before.StepsPerSec || len(after.Train) != len(before.Train) || after.Train["train/loss"] != before.Train["train/loss"] || after.Seconds <= 0 || after.EnvSteps != before.EnvSteps {
		t.Errorf("%+v, and before %+v", after, before)
	}
}
