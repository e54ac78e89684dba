package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/optim/fullbatch"
)

// fullBatchArgs is a fit of 200 rows with a full-batch method, which takes neither epochs nor a
// learning rate.
func fullBatchArgs(t *testing.T, method string, more ...string) []string {
	t.Helper()
	args := apptest.FitArgs(apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(200)), append([]string{"--optimizer", method}, more...)...)
	for _, flag := range []string{"--epochs", "--lr"} {
		i := slices.Index(args, flag)
		args = slices.Delete(args, i, i+2)
	}
	return args
}

// Each method converges, validates, writes a checked model and says how it ended; its
// effective configuration is the recipe.
func TestFitFullBatchConverges(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	ran := 0
	for _, k := range []struct {
		method string
		// part of the first loss is left at the end, at most; cmaes has 81 dimensions to learn.
		part float64
		more []string
	}{
		{"lbfgs", 0.2, []string{"--set", "full_batch.grad_tol=1e-3"}},
		{"cg", 0.2, []string{"--set", "full_batch.grad_tol=1e-3"}},
		{"cmaes", 0.6, []string{"--set", "full_batch.func_iterations=30", "--set", "full_batch.func_tol=1e-3"}},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		sum, out := fitted(t, append(fullBatchArgs(t, k.method, k.more...), "--validation", "0.2", "--dir", dir))
		r := sum.FullBatch
		if r == nil || r.Method != k.method || !r.Converged || r.Stalled || r.Status == "" || r.Iterations == 0 || r.Evaluations < r.Iterations || int64(r.Iterations) != sum.Steps || sum.Validation == nil || sum.Parity == nil {
			t.Errorf("%s: %+v, %+v", k.method, sum, r)
			continue
		}
		lines := metricsOf(t, dir)
		first, last := lines[0], lines[len(lines)-2]
		if len(lines) != r.Iterations+1 || !(*sum.Loss < k.part*first["train/loss"]) || last["train/evaluations"] != float64(r.Evaluations) {
			t.Errorf("%s: %d lines of metrics, from %v to %v; %+v with loss %g", k.method, len(lines), first, last, r, *sum.Loss)
		}
		if k.method != "cmaes" && !(last["train/grad_max"] < 1e-3) {
			t.Errorf("%s: the gradient is %g at the end", k.method, last["train/grad_max"])
		}
		again, second := fitted(t, []string{"fit", filepath.Join(dir, run.ConfigFile), "-q"})
		if *again.FullBatch != *r || !slices.Equal(apptest.Weights(t, out)["fc1.weight"], apptest.Weights(t, second)["fc1.weight"]) {
			t.Errorf("%s: the effective configuration gives %+v, want %+v", k.method, again.FullBatch, r)
		}
		ran++
	}
	if ran != len(fullbatch.Methods) {
		t.Fatalf("%d methods ran", ran)
	}
}

// A run that is interrupted and killed ends as one that never stopped.
func TestFitFullBatchResumeIsExact(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	resumesFullBatch(t, "lbfgs")
}

// TestFitFullBatchResumes does so with every method.
func TestFitFullBatchResumes(t *testing.T) {
	longtest.Nightly(t)
	resumesFullBatch(t, fullbatch.Methods...)
}

func resumesFullBatch(t *testing.T, methods ...string) {
	t.Helper()
	for _, method := range methods {
		// The tolerances are out of reach, so that the run is long.
		more := []string{"--set", "full_batch.max_iterations=60", "--set", "checkpoint.every=2"}
		if method != "cmaes" {
			more = append(more, "--set", "full_batch.restart=25", "--set", "full_batch.grad_tol=1e-12")
		}
		args := fullBatchArgs(t, method, more...)
		refDir, dir := filepath.Join(t.TempDir(), "ref"), filepath.Join(t.TempDir(), "run")
		sum, refOut := fitted(t, append(slices.Clone(args), "--dir", refDir))
		if sum.Steps != 60 {
			t.Fatalf("%s: %d iterations, %+v", method, sum.Steps, sum.FullBatch)
		}
		code, text := apptest.Interrupt(t, dir, 3, os.Interrupt, append(slices.Clone(args), "--dir", dir)...)
		if code != apptest.Interrupted || !strings.Contains(text, "--resume") {
			t.Fatalf("%s: SIGINT: exit status %d\n%s", method, code, text)
		}
		if code, text = apptest.Interrupt(t, dir, 2, os.Kill, "fit", "--resume", dir, "-q"); code != -1 {
			t.Fatalf("%s: killed: exit status %d\n%s", method, code, text)
		}
		resumed, out := fitted(t, []string{"fit", "--resume", dir, "-q"})
		sameRun(t, method, out, dir, refOut, refDir)
		if *resumed.FullBatch != *sum.FullBatch {
			t.Errorf("%s: %+v, want %+v", method, resumed.FullBatch, sum.FullBatch)
		}
	}
}

func TestFitFullBatchRefusals(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ more, says []string }{
		{[]string{"--lr", "0.1"}, []string{"optimizer.lr", "not used by lbfgs"}},
		{[]string{"--epochs", "4"}, []string{"epochs", "full_batch.max_iterations"}},
		{[]string{"--shuffle"}, []string{"--shuffle", "not used by lbfgs"}},
		{[]string{"--weight-decay", "0.1", "--schedule", "cosine", "--clip-norm", "1", "--train-mode"}, []string{"optimizer: not used", "learning_rate_schedule: not used", "clip_norm: not used", "train_mode: not used"}},
		{[]string{"--optimizer", "adam", "--set", "optimizer.kind=cg"}, []string{"set full_batch.method"}},
		{[]string{"--set", "full_batch.sigma=1"}, []string{"sigma: not used by lbfgs"}},
	} {
		r := apptest.Run(t, append(fullBatchArgs(t, "lbfgs"), k.more...)...)
		if r.Code != 1 {
			t.Errorf("%v: exit status %d", k.more, r.Code)
		}
		for _, want := range k.says {
			if !strings.Contains(r.Err, want) {
				t.Errorf("%v: it does not say %q:\n%s", k.more, want, r.Err)
			}
		}
	}
}
