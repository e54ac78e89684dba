package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// fitted trains, writes the model and returns the summary and the trained model's path.
func fitted(t *testing.T, args []string) (fitSummary, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.onnx")
	return apptest.Decode[fitSummary](t, apptest.Succeed(t, append(args, "--out", out, "--json")...)), out
}

// metricsOf reads metrics.jsonl: one map of values per line, without the wall clock.
func metricsOf(t *testing.T, dir string) []map[string]float64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, run.MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	var lines []map[string]float64
	for l := range bytes.Lines(data) {
		var raw map[string]any
		if err := json.Unmarshal(l, &raw); err != nil {
			t.Fatalf("%v in %s", err, l)
		}
		values := map[string]float64{}
		for k, v := range sorted.All(raw) {
			if x, ok := v.(float64); ok && k != "time" {
				values[k] = x
			}
		}
		lines = append(lines, values)
	}
	return lines
}

func TestFitLearns(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	model, rows := apptest.MLPModel(t), apptest.Table(500)
	var trained []map[string][]float32
	for name, data := range sorted.All(map[string]string{"csv": apptest.CSVFile(t, rows), "parquet": apptest.ParquetFile(t, rows)}) {
		dir := filepath.Join(t.TempDir(), "run")
		sum, out := fitted(t, apptest.FitArgs(model, data, "--epochs", "30", "--validation", "0.2", "--dir", dir))
		if sum.TrainRows+sum.ValidRows != 500 || sum.ValidRows < 90 || sum.ValidRows > 110 || sum.Epochs != 30 || sum.Trainable != 3*16+16+16+1 || sum.Loss == nil || sum.Validation == nil {
			t.Fatalf("%s: %+v", name, sum)
		}
		first := metricsOf(t, dir)[0]["train/loss"]
		if !(*sum.Loss < 0.15*first) || !(*sum.Validation < 0.15*first) {
			t.Errorf("%s: loss %g at first, %g at last, validation %g", name, first, *sum.Loss, *sum.Validation)
		}
		if sum.Parity == nil || sum.Parity.Values == 0 || sum.Parity.MaxError > 1e-5 {
			t.Errorf("%s: parity %+v", name, sum.Parity)
		}
		m, err := loadModel(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"config_sha256", "model_sha256", "data_sha256", "seed"} {
			if !slices.ContainsFunc(m.MetadataProps, func(p *onnx.MetadataProp) bool { return strings.Contains(p.Key, want) && p.Value != "" }) {
				t.Errorf("%s: the model's metadata does not tell %s: %v", name, want, m.MetadataProps)
			}
		}
		events, err := filepath.Glob(filepath.Join(dir, run.TensorBoardDir, "events.out.tfevents.*"))
		if err != nil || len(events) != 1 {
			t.Errorf("%s: TensorBoard files %v, %v", name, events, err)
		}
		apptest.Succeed(t, "compare", out, "--bind", "batch=7", "--engines", enginePair())
		// The effective configuration is the recipe: running it again gives the same weights.
		_, again := fitted(t, []string{"fit", filepath.Join(dir, run.ConfigFile), "-q"})
		trained = append(trained, apptest.Weights(t, out), apptest.Weights(t, again))
	}
	for i, w := range trained[1:] {
		if !maps.EqualFunc(trained[0], w, slices.Equal) {
			t.Errorf("run %d has other weights than run 0", i+1)
		}
	}
}

func TestFitFreeze(t *testing.T) {
	t.Parallel()
	model, data := apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(100))
	before := apptest.Weights(t, model)
	for _, c := range []struct {
		args      []string
		changed   []string
		trainable int
	}{
		{nil, []string{"fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight"}, 81},
		{[]string{"--freeze", "fc1.*"}, []string{"fc2.bias", "fc2.weight"}, 17},
		{[]string{"--train", "*.bias"}, []string{"fc1.bias", "fc2.bias"}, 17},
		{[]string{"--train", "fc2.*", "--freeze", "*.bias"}, []string{"fc2.weight"}, 16},
	} {
		sum, out := fitted(t, apptest.FitArgs(model, data, c.args...))
		var changed []string
		after := apptest.Weights(t, out)
		for _, name := range slices.Sorted(maps.Keys(before)) {
			if !slices.Equal(before[name], after[name]) {
				changed = append(changed, name)
			}
		}
		if !slices.Equal(changed, c.changed) || sum.Trainable != c.trainable || sum.Trainable+sum.Frozen != 81 {
			t.Errorf("%v: %v changed, expected %v; %d trained, %d frozen", c.args, changed, c.changed, sum.Trainable, sum.Frozen)
		}
	}
	apptest.Refuse(t, apptest.FitArgs(model, data, "--freeze", "fc9.*"), `"fc9.*"`)
	apptest.Refuse(t, apptest.FitArgs(model, data, "--freeze", "*"), "train")
}

// lastWeights trains with plain SGD, whose step is linear in the gradient, and returns the weights.
func sgdWeights(t *testing.T, model, data string, more ...string) map[string][]float32 {
	t.Helper()
	_, out := fitted(t, apptest.FitArgs(model, data, append([]string{"--optimizer", "sgd", "--lr", "0.05"}, more...)...))
	return apptest.Weights(t, out)
}

func close32(t *testing.T, what string, got, want map[string][]float32) {
	t.Helper()
	for name, w := range sorted.All(want) {
		if len(got[name]) != len(w) {
			t.Errorf("%s: %s has %d elements, expected %d", what, name, len(got[name]), len(w))
			continue
		}
		for i := range w {
			if d := math.Abs(float64(got[name][i] - w[i])); !(d <= 2e-6*(1+math.Abs(float64(w[i])))) {
				t.Errorf("%s: %s[%d] is %v, expected %v", what, name, i, got[name][i], w[i])
				break
			}
		}
	}
}

func TestFitAccumulationIsABigBatch(t *testing.T) {
	t.Parallel()
	// 100 rows are three steps of 32 and one of 4 per epoch, however the 32 are cut up; the last
	// one is a partial batch of a partial group.
	model, data := apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(100))
	big := sgdWeights(t, model, data, "--batch", "32")
	close32(t, "4 batches of 8", sgdWeights(t, model, data, "--batch", "8", "--accumulate", "4"), big)
	close32(t, "batches of 5 and less", sgdWeights(t, model, data, "--batch", "16", "--accumulate", "2"), big)
	if maps.EqualFunc(sgdWeights(t, model, data, "--batch", "8"), big, slices.Equal) {
		t.Error("small batches without accumulation gave the same weights")
	}
}

func TestFitLastPartialBatch(t *testing.T) {
	t.Parallel()
	// One epoch of 50 rows in one step is the plain mean gradient; batches of 16, 16, 16 and 2 must
	// weigh rows, not batches, equally.
	model, data := apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(50))
	whole := sgdWeights(t, model, data, "--epochs", "1", "--batch", "50")
	close32(t, "a batch larger than the data", sgdWeights(t, model, data, "--epochs", "1", "--batch", "64"), whole)
	close32(t, "16, 16, 16 and 2", sgdWeights(t, model, data, "--epochs", "1", "--batch", "16", "--accumulate", "4"), whole)
	// The reported loss is the mean over rows as well, before any step has moved the weights: with
	// a vanishing step all splits agree.
	var losses []float64
	for _, batch := range []string{"50", "16", "7"} {
		sum, _ := fitted(t, apptest.FitArgs(model, data, "--epochs", "1", "--batch", batch, "--optimizer", "sgd", "--lr", "1e-30"))
		losses = append(losses, *sum.Loss)
	}
	for _, l := range losses[1:] {
		if math.Abs(l-losses[0]) > 1e-6*losses[0] {
			t.Errorf("the mean loss depends on the batch: %v", losses)
		}
	}
}

func TestFitEarlyStop(t *testing.T) {
	t.Parallel()
	model, data := apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(100))
	// Steps too small to change a float32 cannot improve the validation loss after the first epoch.
	sum, _ := fitted(t, apptest.FitArgs(model, data, "--epochs", "50", "--validation", "0.25", "--patience", "2", "--optimizer", "sgd", "--lr", "1e-30"))
	if sum.Stopped != "early stop" || sum.Epochs != 3 || sum.BestEpoch != 1 {
		t.Errorf("got %+v", sum)
	}
	if sum, _ = fitted(t, apptest.FitArgs(model, data, "--epochs", "4", "--validation", "0.25", "--patience", "4")); sum.Stopped != "" || sum.Epochs != 4 {
		t.Errorf("got %+v", sum)
	}
	apptest.Refuse(t, apptest.FitArgs(model, data, "--patience", "2"), "early_stop.patience", "validation")
}

// mixed is x float32[batch,1,8] -> Conv -> Relu -> Flatten -> Gemm -> MatMul -> y float32[batch,1].
func mixed(t *testing.T) string {
	t.Helper()
	s := rng.New(6).Split("weights").Stream()
	b := onnx.NewBuilder("mixed", 18)
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(1), onnx.Known(3)}})
	param := func(name string, shape ...int) onnx.Value {
		w := tensor.New(tensor.Float32, shape...)
		s.FillNormal32(w.Float32s(), 0, 0.5)
		return b.Initializer(name, w)
	}
	h := b.Op("Relu", []onnx.Value{b.Op("Conv", []onnx.Value{x, param("conv.weight", 4, 1, 2), param("conv.bias", 4)})})
	h = b.Op("Flatten", []onnx.Value{h})
	h = b.Op("Gemm", []onnx.Value{h, param("fc.weight", 6, 8), param("fc.bias", 6)}, onnx.AttrInt("transB", 1))
	y := b.Rename(b.Op("MatMul", []onnx.Value{b.Op("Tanh", []onnx.Value{h}), param("out.weight", 6, 1)}), "y")
	b.Output(y, onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(1)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return apptest.Save(t, m)
}

func TestFitLoRA(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	model, data := mixed(t), apptest.CSVFile(t, apptest.Table(200))
	before, err := loadModel(model)
	if err != nil {
		t.Fatal(err)
	}
	old := apptest.Weights(t, model)
	dir := filepath.Join(t.TempDir(), "run")
	sum, out := fitted(t, apptest.FitArgs(model, data, "--lora", "rank=2", "--epochs", "15", "--dir", dir))
	// Conv [4,1,2]: 2·2 + 4·2; Gemm [6,8]: 2·(6+8); MatMul [6,1]: 2·(6+1).
	if want := 2*(4+2) + 2*(6+8) + 2*(6+1); sum.Trainable != want {
		t.Errorf("%d parameters are trained, expected %d", sum.Trainable, want)
	}
	if sum.Parity == nil || sum.Parity.Values == 0 || sum.Parity.MaxError > 1e-4 {
		t.Errorf("parity of the merged model: %+v", sum.Parity)
	}
	lines := metricsOf(t, dir)
	if first := lines[0]["train/loss"]; !(*sum.Loss < 0.6*first) {
		t.Errorf("loss %g at first, %g at last", first, *sum.Loss)
	}
	after, err := loadModel(out)
	if err != nil {
		t.Fatal(err)
	}
	// The merged model has the nodes and the parameters of the original and nothing else.
	if len(after.Graph.Node) != len(before.Graph.Node) || len(after.Graph.Initializer) != len(before.Graph.Initializer) {
		t.Errorf("%d nodes and %d initializers, expected %d and %d", len(after.Graph.Node), len(after.Graph.Initializer), len(before.Graph.Node), len(before.Graph.Initializer))
	}
	for name, w := range sorted.All(apptest.Weights(t, out)) {
		if same := slices.Equal(w, old[name]); same != strings.HasSuffix(name, ".bias") {
			t.Errorf("%s: unchanged is %v", name, same)
		}
	}
	sum, out = fitted(t, apptest.FitArgs(model, data, "--lora", "rank=1,alpha=2,target=fc.*", "--train", "*.bias"))
	if sum.Trainable != 6+8+4+6 {
		t.Errorf("%d parameters are trained, expected %d", sum.Trainable, 6+8+4+6)
	}
	for name, w := range sorted.All(apptest.Weights(t, out)) {
		if same := slices.Equal(w, old[name]); same != (name == "conv.weight" || name == "out.weight") {
			t.Errorf("%s: unchanged is %v", name, same)
		}
	}
	apptest.Refuse(t, apptest.FitArgs(model, data, "--lora", "rank=2,target=nope"), "nope")
	apptest.Refuse(t, apptest.FitArgs(model, data, "--lora", "rank=0"), "rank")
	apptest.Refuse(t, apptest.FitArgs(model, data, "--lora", "size=2"), "size=2", "rank, alpha, target and seed")
}

func TestFitBadInput(t *testing.T) {
	t.Parallel()
	model, rows := apptest.MLPModel(t), apptest.Table(40)
	data := apptest.CSVFile(t, rows)
	nan := slices.Clone(rows)
	nan[17] = []float32{1, float32(math.NaN()), 0, 0}
	holes := apptest.CSVFile(t, nan)
	yaml := func(lines ...string) string { return apptest.Write(t, "fit.yaml", strings.Join(lines, "\n")+"\n") }
	whole := []string{"model: " + model, "data: {path: " + data + ", inputs: {x: [f.*]}, targets: {y: [label]}}", "loss: [{kind: mse}]"}
	apptest.Succeed(t, "fit", yaml(whole...), "-q", "--epochs", "1")

	ragged := apptest.Write(t, "ragged.csv", "f.a,f.b,f.c,label\n1,2,3,4\n1,2,3\n")
	words := apptest.Write(t, "words.csv", "f.a,f.b,f.c,label\n1,2,3,4\n1,2,three,4\n")
	bad := build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
		return []onnx.Value{b.Rename(b.Op("MatMul", []onnx.Value{x, w}), "y")}
	})
	v := tensor.New(tensor.Float32, 4, 4)
	v.Float32s()[2] = float32(math.NaN())
	bad.Graph.Initializer[0] = onnx.ProtoOf("w", v)

	misfit := build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
		return []onnx.Value{b.Rename(b.Op("MatMul", []onnx.Value{x, w}), "y")}
	})
	misfit.Graph.Initializer[0] = onnx.ProtoOf("w", tensor.New(tensor.Float32, 5, 4))
	misfitting := apptest.Save(t, misfit)

	tests := []struct {
		name string
		args []string
		says []string
	}{
		{"a misspelt key", []string{"fit", yaml(append(whole, "epoch: 3")...)}, []string{"fit.yaml:4", "epoch"}},
		{"a misspelt key further down", []string{"fit", yaml(append(whole, "optimizer:", "  kind: adam", "  learning_rate: 0.1")...)}, []string{"fit.yaml:6", "learning_rate"}},
		{"a key given twice", []string{"fit", yaml(append(whole, "seed: 1", "seed: 2")...)}, []string{"fit.yaml:5", "seed"}},
		{"a fraction for a count", []string{"fit", yaml(append(whole, "epochs: 1.5")...)}, []string{"fit.yaml:4", "epochs"}},
		{"a misspelt edit", append(apptest.FitArgs(model, data), "--set", "optimizer.rate=1"), []string{"optimizer.rate"}},
		{"an unknown optimiser", apptest.FitArgs(model, data, "--optimizer", "adamm"), []string{"adamm"}},
		{"an unknown loss", apptest.FitArgs(model, data, "--loss", "msee"), []string{"msee"}},
		{"no epochs", apptest.FitArgs(model, data, "--epochs", "0"), []string{"epochs"}},
		{"a missing model", apptest.FitArgs(filepath.Join(t.TempDir(), "absent.onnx"), data), []string{"absent.onnx"}},
		{"a missing table", apptest.FitArgs(model, filepath.Join(t.TempDir(), "absent.csv")), []string{"absent.csv"}},
		{"an unknown format", apptest.FitArgs(model, apptest.Write(t, "table.xls", "x")), []string{"table.xls"}},
		{"a missing column", apptest.FitArgs(model, data, "--target", "y=lable"), []string{"lable", "f.a, f.b, f.c, label"}},
		{"a missing glob", apptest.FitArgs(model, data, "--input", "x=g.*"), []string{"g.*"}},
		{"an unknown input", apptest.FitArgs(model, data, "--input", "z=f.*"), []string{`"z"`}},
		{"too few columns", apptest.FitArgs(model, data, "--input", "x=f.a"), []string{`"x"`, "3 values", "hold 1"}},
		{"too many targets", apptest.FitArgs(model, data, "--target", "y=f.a,label"), []string{"y", "hold 2"}},
		{"an unknown output", apptest.FitArgs(model, data, "--target", "q=label"), []string{`"q"`}},
		{"no columns", []string{"fit", "--model", model, "--data", data, "--loss", "mse"}, []string{"inputs"}},
		{"NaN in a row", apptest.FitArgs(model, holes), []string{"table.csv", "f.b", "18"}},
		{"a short line", apptest.FitArgs(model, ragged), []string{"ragged.csv", "3"}},
		{"a word for a number", apptest.FitArgs(model, words), []string{"words.csv", "three"}},
		{"NaN weights", []string{"fit", "--model", apptest.Save(t, bad), "--data", data, "--input", "x=*", "--target", "y=*", "--loss", "mse"}, []string{"w is NaN at element 2"}},
		{"weights of another shape", []string{"fit", "--model", misfitting, "--data", data, "--input", "x=*", "--target", "y=*", "--loss", "mse"}, []string{misfitting + ": ", "MatMul"}},
		{"a run directory in use", apptest.FitArgs(model, data, "--dir", usedDir(t, model, data)), []string{"holds a run already", "--resume"}},
		{"nothing to resume", []string{"fit", "--resume", t.TempDir()}, []string{"config.yaml"}},
		{"an unwritable result", apptest.FitArgs(model, data, "--epochs", "1", "--out", filepath.Join(data, "out.onnx")), []string{"table.csv is not a folder"}},
	}
	for _, c := range tests {
		r := apptest.Run(t, append(c.args, "--log-level", "error")...)
		if r.Code != 1 || !strings.HasPrefix(r.Err, "onnxrl: ") {
			t.Errorf("%s: exit status %d, expected 1 and an error\n%s%s", c.name, r.Code, r.Out, r.Err)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(r.Err, s) {
				t.Errorf("%s: the error does not say %q:\n%s", c.name, s, r.Err)
			}
		}
	}
	sum, _ := fitted(t, apptest.FitArgs(model, holes, "--set", "data.missing=drop"))
	if sum.Loss == nil || math.IsNaN(*sum.Loss) {
		t.Errorf("rows with NaN were not dropped: %+v", sum)
	}
}

// usedDir is the directory of a finished run.
func usedDir(t *testing.T, model, data string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "used")
	apptest.Succeed(t, apptest.FitArgs(model, data, "--dir", dir)...)
	return dir
}

func TestFitResumeRefusesChanges(t *testing.T) {
	t.Parallel()
	model, data := apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(40))
	dir := usedDir(t, model, data)
	apptest.Refuse(t, []string{"fit", "--resume", dir, "--batch", "16"}, "configuration has changed", "batch")
	if err := os.WriteFile(data, []byte(strings.Join(apptest.TableColumns, ",")+"\n1,2,3,4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	apptest.Refuse(t, []string{"fit", "--resume", dir}, "data has changed")
}

// A finished run can be resumed for nothing: it only writes the result again.
func TestFitResumeFinished(t *testing.T) {
	t.Parallel()
	model, data := apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(64))
	dir := filepath.Join(t.TempDir(), "run")
	_, first := fitted(t, apptest.FitArgs(model, data, "--dir", dir))
	_, second := fitted(t, []string{"fit", "--resume", dir, "-q"})
	if a, b := apptest.Weights(t, first), apptest.Weights(t, second); !maps.EqualFunc(a, b, slices.Equal) {
		t.Error("resuming a finished run changed the weights")
	}
	if lines := metricsOf(t, dir); len(lines) != 2*3+3 {
		t.Errorf("%d lines of metrics, expected one per step and one per epoch", len(lines))
	}
	if fmt.Sprint(metricsOf(t, dir)[0]["step"]) != "1" {
		t.Errorf("the first line is %v", metricsOf(t, dir)[0])
	}
}
