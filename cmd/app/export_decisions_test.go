package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
	"github.com/onnxrl/onnxrl/runtime/tensor/npy"
)

// TestExportDecisions compares policies of lower precision with what was published: choices,
// continuous actions, and one that remembers, each with its returns.
func TestExportDecisions(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	testExportDecisions(t, "choices", "deterministic")
}

// TestExportDecisionsOfOthers is TestExportDecisions of policies that remember, and that draw.
func TestExportDecisionsOfOthers(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	testExportDecisions(t, "recurrent", "continuous")
}

func testExportDecisions(t *testing.T, names ...string) {
	t.Helper()
	const head = "seed: 5\ntrain: {num_envs: 2, total_env_steps: 200, threads: 1}\neval: {episodes: 3}\npublish: {observations: 300, allow_ties: true}\n"
	cases := 0
	for _, k := range []struct {
		name, document   string
		discrete, normal bool
	}{
		{"choices", "env: {kind: cartpole}\nagent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 1}\n", true, true},
		{"recurrent", "env: {kind: cartpole}\nagent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 1, recurrent: {kind: lstm, hidden: 32}}\n", true, true},
		{"continuous", "env: {kind: pendulum}\nagent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 1}\n", false, true},
		{"deterministic", "env: {kind: pendulum}\nagent: {kind: td3, learning_starts: 50, hidden: [64, 64]}\n", false, false},
	} {
		if !slices.Contains(names, k.name) {
			continue
		}
		dir := apptest.Trained(t, head+k.document)
		out, report := filepath.Join(t.TempDir(), "x.onnx"), filepath.Join(t.TempDir(), "report")
		r := exported(t, dir, "--precision", "int8", "--rows", "64", "--episodes", "4", "--report", report, "--max-return-drop", "1e6", "--out", out)
		l, p := r.Loss, r.Return
		if l == nil || p == nil || r.Precision != "int8" || r.Compared != "recorded" || l.Rows < 64 || l.MaxDelta == 0 || (l.Choices > 0) != k.discrete || (l.MaxAction != nil) == k.discrete || (l.KL != nil) != k.normal || len(r.Exceeded) != 0 {
			t.Fatalf("%s: %+v, loss %+v, return %+v", k.name, r, l, p)
		}
		if k.normal && *l.KL <= 0 || !k.discrete && (*l.MaxAction <= 0 || *l.MaxAction > 0.5) {
			t.Errorf("%s: loss %+v", k.name, l)
		}
		if p.Episodes != 4 || p.Low == nil || *p.Low > p.Difference || *p.High < p.Difference {
			t.Errorf("%s: return %+v", k.name, p)
		}
		m, err := loadModel(out)
		if err != nil {
			t.Fatal(err)
		}
		if parent, _ := m.Meta(metaParent); parent != apptest.VersionsIn(t, dir)[0].Digest {
			t.Errorf("%s: made of %q", k.name, parent)
		}
		var written exportResult
		apptest.ReadJSON(t, filepath.Join(report, decisionsJSON), &written)
		if written.Return == nil || *written.Return.Low != *p.Low || written.Loss.MaxDelta != l.MaxDelta {
			t.Errorf("%s: report %+v", k.name, written)
		}
		apptest.Says(t, apptest.ReadText(t, report, decisionsMarkdown), "in int8", "| exported |", "return ", "4 episodes")
		cases++
		// A bound that cannot hold, and one that means nothing here: nothing is exported.
		bad := []string{"--max-action-delta", "0"}
		if k.discrete {
			bad = []string{"--max-kl", "0", "--max-action-delta", "0.5"}
		}
		out, report = filepath.Join(t.TempDir(), "y.onnx"), filepath.Join(t.TempDir(), "report")
		failed := apptest.Run(t, append([]string{"export", dir, "--json", "--precision", "int8", "--rows", "64", "--allow-ties", "--episodes", "1", "--report", report, "--out", out}, bad...)...)
		if r := apptest.Decode[exportResult](t, failed.Out); failed.Code != 1 || len(r.Files) != 0 || len(r.Exceeded) != len(bad)/2 || !strings.HasPrefix(r.Exceeded[0], bad[0]+" 0: it is ") {
			t.Errorf("%s: status %d, %+v", k.name, failed.Code, r)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: the model is there", k.name)
		}
		text := apptest.ReadText(t, report, decisionsMarkdown)
		if !strings.Contains(text, "Nothing was exported") || k.discrete != strings.Contains(text, "no continuous action with bounds") {
			t.Errorf("%s: report\n%s", k.name, text)
		}
		cases++
	}
	if cases != 2*len(names) {
		t.Errorf("%d cases", cases)
	}
}

// TestExportObservations compares on the rows of files, right and wrong ones.
func TestExportObservations(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := apptest.Trained(t, "seed: 5\nenv: {kind: cartpole}\nagent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 1}\ntrain: {num_envs: 2, total_env_steps: 200, threads: 1}\neval: {episodes: 2}\npublish: {observations: 300, allow_ties: true}\n")
	file := func(name string, x *tensor.Tensor) string {
		b, err := npy.Encode(x)
		if err != nil {
			t.Fatal(err)
		}
		return apptest.Write(t, name, string(b))
	}
	args := []string{dir, "--precision", "fp16", "--rows", "64", "--out", filepath.Join(t.TempDir(), "x.onnx"), "--observations"}
	rows := file("rows.npy", tensor.New(tensor.Float32, 1500, 4))
	if r := exported(t, append(args, rows)...); r.Loss.Rows != 1500 || r.Compared != rows || r.Rows != 64 {
		t.Errorf("%+v, loss %+v", r, r.Loss)
	}
	folder := filepath.Join(t.TempDir(), "python")
	exported(t, dir, "--format", "python", "--rows", "64", "--out", folder)
	if r := exported(t, append(args, filepath.Join(folder, "recorded.npz"))...); r.Loss.Rows < 8 || r.Loss.Rows > recordedRows {
		t.Errorf("%+v", r.Loss)
	}
	refused := 0
	for path, want := range sorted.All(map[string]string{
		file("wide.npy", tensor.New(tensor.Float32, 3, 5)): `array "observation" is float32[3 5], expected at least one row of the input`,
		file("none.npy", tensor.New(tensor.Float32, 0, 4)): `array "observation" is float32[0 4]`,
		apptest.Write(t, "rows.csv", "1,2,3,4\n"):          "expected a .npy or .npz file",
		filepath.Join(t.TempDir(), "absent.npy"):           "absent.npy",
	}) {
		apptest.Refuse(t, append([]string{"export", "--allow-ties"}, append(args, path)...), "--observations", want)
		refused++
	}
	if refused != 4 {
		t.Errorf("%d refused", refused)
	}
}
