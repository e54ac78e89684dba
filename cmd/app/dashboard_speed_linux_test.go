package app

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/dashboard"
	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// serveBoard runs a dashboard in the process of the tests, as long as the test, and returns its
// address.
func serveBoard(t *testing.T, o dashboard.Options) string {
	t.Helper()
	b := dashboard.New(o)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.Run(ctx) // It ends with its context.
	}()
	s := httptest.NewServer(b.Handler(nil))
	t.Cleanup(func() {
		stop()
		<-done
		s.Close()
	})
	return s.URL + "/"
}

// speedBoard is what a dashboard of a folder says once it has read everything.
func speedBoard(t *testing.T, dir string) dashboard.Overview {
	t.Helper()
	return overviewOf(t, serveBoard(t, dashboard.Options{Paths: []string{dir}}))
}

// The speed of a run is one number in the bar, the metrics, the summary and the dashboard. What it
// is is tested in agents/train.
func TestSpeedIsOneNumber(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "run")
	r := apptest.Run(t, "train", apptest.Write(t, "tiny.yaml", tinyCartPole), "--out", out, "--json", "--no-publish", "--set", "train.log_interval_steps=64")
	if r.Code != 0 {
		t.Fatal(r.Err)
	}
	s := apptest.Decode[run.Summary](t, r.Out).Runs[0]
	var kept run.RunSummary
	apptest.ReadJSON(t, filepath.Join(out, run.FinishedFile), &kept)
	shown := regexp.MustCompile(` env steps (\d+)/s in `).FindStringSubmatch(r.Err)
	if shown == nil {
		t.Fatalf("the bar has no speed:\n%s", r.Err)
	}
	if want := strconv.FormatFloat(s.StepsPerSec, 'f', 0, 64); kept.StepsPerSec != s.StepsPerSec || shown[1] != want {
		t.Errorf("the summary says %v env steps/s, its file %v, the bar %s", s.StepsPerSec, kept.StepsPerSec, shown[1])
	}
	records, err := metrics.ReadJSONLines(filepath.Join(out, run.MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	told, last := 0, 0.0
	for _, x := range records {
		if v, ok := x.Values["time/fps"]; ok {
			told, last = told+1, v
		}
	}
	if told != 4 || last != s.StepsPerSec {
		t.Errorf("%d metrics of speed, the last %v, expected %v", told, last, s.StepsPerSec)
	}
	if runs := speedBoard(t, dir).Runs; len(runs) != 1 || runs[0].FPS == nil || *runs[0].FPS != s.StepsPerSec {
		t.Errorf("the dashboard has %+v, expected %v", runs, s.StepsPerSec)
	}
}

// A fit that has ended is finished, also when it was continued, and until then it is not.
func TestDashboardOfFits(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "fit")
	state := func(want string) {
		t.Helper()
		if runs := speedBoard(t, root).Runs; len(runs) != 1 || runs[0].State != want {
			t.Errorf("the dashboard has %+v, expected one that is %s", runs, want)
		}
	}
	apptest.Succeed(t, fixture(t, "mlp", "--dir", dir, "--epochs", "2", "-q")...)
	state("finished")
	file := filepath.Join(dir, run.FinishedFile)
	before := apptest.ReadText(t, file)
	apptest.Succeed(t, "fit", "--resume", dir, "-q")
	if after := apptest.ReadText(t, file); after != before {
		t.Errorf("a fit that has nothing left to do is now\n%s\nand was\n%s", after, before)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	state("running")
	apptest.Succeed(t, "fit", "--resume", dir, "-q")
	state("finished")
}
