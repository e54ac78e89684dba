package app

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/fit"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

const fitFixtures = "../../models/fit/testdata/torch"

// fixture returns the arguments that train a PyTorch export of package fit's fixtures.
func fixture(t *testing.T, name string, more ...string) []string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(fitFixtures, name))
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"fit", filepath.Join(dir, "fit.yaml"), "--model", filepath.Join(dir, "model.onnx"), "--data", filepath.Join(dir, "data.csv")}, more...)
}

// Every shipped experiment of this command trains from the repository's folder and gives a model.
func TestFitShippedExperiments(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	files, err := fs.Glob(configs.Shipped(), "fit_*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("experiments %v, %v", files, err)
	}
	for _, name := range files {
		out := filepath.Join(t.TempDir(), "out.onnx")
		cmd := apptest.Program(t, "fit", filepath.Join("configs", "experiments", name), "--epochs", "2", "--out", out, "-q")
		cmd.Dir = filepath.Join("..", "..")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		if m, err := loadModel(out); err != nil || len(m.Graph.Node) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Off a terminal, progress is whole lines; the summary goes to the standard output alone, as a
// table or as JSON with stable keys.
func TestFitOutput(t *testing.T) {
	t.Parallel()
	args := apptest.FitArgs(apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(100)), "--validation", "0.2")
	r := apptest.Run(t, slices.DeleteFunc(slices.Clone(args), func(s string) bool { return s == "-q" })...)
	if r.Code != 0 || strings.ContainsAny(r.Err, "\r\x1b") || !strings.Contains(r.Err, "fit 100% 9/9 steps") || !strings.Contains(r.Err, "epoch=3/3") {
		t.Errorf("exit status %d, standard error\n%s", r.Code, r.Err)
	}
	if !strings.Contains(r.Err, "neither --out nor --dir was given") {
		t.Errorf("nothing is kept and nobody says so:\n%s", r.Err)
	}
	for _, row := range []string{"steps", "rows", "parameters", "loss", "validation", "engine"} {
		if !strings.Contains(r.Out, "\n"+row+" ") && !strings.HasPrefix(r.Out, row+" ") {
			t.Errorf("the table has no row %s:\n%s", row, r.Out)
		}
	}
	dir := t.TempDir()
	text := apptest.Succeed(t, append(args, "--json", "--out", filepath.Join(dir, "o.onnx"), "--dir", filepath.Join(dir, "run"))...)
	want := []string{"best_epoch", "dir", "engine", "epochs", "frozen_parameters", "loss", "out", "parity", "rows_per_second", "seconds", "shards", "steps", "train_rows",
		"trainable_parameters", "validation_loss", "validation_metrics", "validation_rows"}
	if got := apptest.Keys(t, text); !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
}

// Both engines walk the same loss curve.
func TestFitEnginesAgree(t *testing.T) {
	t.Parallel()
	var curves [][]map[string]float64
	for _, e := range apptest.Engines() {
		dir := filepath.Join(t.TempDir(), "run")
		apptest.Succeed(t, fixture(t, "encoder", "--engine", e, "--dir", dir, "-q")...)
		curves = append(curves, metricsOf(t, dir))
	}
	if len(curves) != len(apptest.Engines()) || len(curves[0]) != 20+2 {
		t.Fatalf("%d curves, the first of %d lines", len(curves), len(curves[0]))
	}
	for _, c := range curves[1:] {
		for i, want := range curves[0] {
			if a, b := c[i]["train/loss"], want["train/loss"]; math.Abs(a-b) > 1e-4*math.Abs(b) {
				t.Errorf("line %d: losses %g and %g", i+1, a, b)
			}
		}
	}
}

// A model in evaluation form stays in it unless it is asked otherwise, and what happens is said by
// name.
func TestFitHonestLayers(t *testing.T) {
	t.Parallel()
	statistics := func(path string) []float32 {
		m, err := loadModel(path)
		if err != nil {
			t.Fatal(err)
		}
		var all []float32
		for _, n := range m.Graph.Node {
			if n.OpType == "BatchNormalization" {
				if n.Int("training_mode", 0) != 0 || len(n.Output) != 1 {
					t.Errorf("%s: %s is in training form", path, n.Describe())
				}
				for _, in := range n.Input[3:] {
					x, err := onnx.TensorOf(m.Graph.FindInitializer(in))
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, x.Float32s()...)
				}
			}
		}
		return all
	}
	old := statistics(filepath.Join(fitFixtures, "cnn_eval", "model.onnx"))
	if len(old) != 2*(4+8) {
		t.Fatalf("%d running statistics", len(old))
	}
	for _, c := range []struct {
		flag string
		says []string
		same bool
	}{
		{"--train-mode=false", []string{"layer kept in evaluation form", "op=BatchNormalization"}, true},
		{"--train-mode", []string{"layer trained in training form", "op=BatchNormalization"}, false},
	} {
		out := filepath.Join(t.TempDir(), "out.onnx")
		r := apptest.Run(t, fixture(t, "cnn_eval", c.flag, "--out", out)...)
		if r.Code != 0 {
			t.Fatalf("%s: exit status %d\n%s", c.flag, r.Code, r.Err)
		}
		for _, s := range c.says {
			if !strings.Contains(r.Err, s) {
				t.Errorf("%s: it does not say %q:\n%s", c.flag, s, r.Err)
			}
		}
		if got := slices.Equal(statistics(out), old); got != c.same {
			t.Errorf("%s: running statistics unchanged is %v", c.flag, got)
		}
	}
	if r := apptest.Run(t, fixture(t, "mlp")...); strings.Contains(r.Err, "BatchNormalization") || strings.Contains(r.Err, "Dropout") {
		t.Errorf("layers that were never there are spoken of:\n%s", r.Err)
	}
}

// Every flag ends up in the effective configuration, at the key it is a short cut for.
func TestFitFlags(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	apptest.Succeed(t, apptest.FitArgs(apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(100)), "--sample-weight", "f.a", "--train", "fc1.*", "--freeze", "*.bias", "--lora", "rank=2,alpha=3,target=fc2.*", "--train-mode",
		"--optimizer", "adamw", "--lr", "0.02", "--weight-decay", "0.1", "--schedule", "cosine", "--warmup", "2", "--clip-norm", "0.5", "--epochs", "2", "--batch", "20",
		"--accumulate", "2", "--shards", "2", "--shuffle=false", "--window", "50", "--validation", "0.25", "--patience", "7", "--checkpoint-every", "3", "--seed", "9",
		"--set", "log_every=2", "--dir", dir)...)
	var got fit.Config
	if _, err := configs.Load(filepath.Join(dir, run.ConfigFile), nil, &got); err != nil {
		t.Fatal(err)
	}
	for what, pair := range sorted.All(map[string][2]any{
		"sample-weight": {got.Data.Weight, "f.a"}, "train": {got.Train, []string{"fc1.*"}}, "freeze": {got.Freeze, []string{"*.bias"}}, "train-mode": {*got.TrainMode, true},
		"lora": {fmt.Sprintf("%+v", *got.LoRA), "{Rank:2 Alpha:3 Target:[fc2.*] Seed:9}"}, "optimizer": {got.Optimizer.Kind, "adamw"}, "lr": {got.Optimizer.LR, 0.02},
		"weight-decay": {got.Optimizer.Decay, 0.1}, "schedule": {got.LearningRateSchedule.Kind, "cosine"}, "warmup": {got.LearningRateSchedule.Warmup, 2}, "clip-norm": {got.ClipNorm, 0.5},
		"epochs": {got.Epochs, 2}, "batch": {got.Batch, 20}, "accumulate": {got.Accumulate, 2}, "shards": {got.Shards, 2}, "shuffle": {got.Data.Shuffle, false},
		"window": {got.Data.Window, 50}, "validation": {got.Data.Validation.Fraction, 0.25}, "patience": {got.EarlyStop.Patience, 7},
		"checkpoint-every": {got.Checkpoint.Every, 3}, "seed": {got.Seed, 9}, "set": {got.LogEvery, 2}, "loss": {got.Loss[0].Kind, "mse"},
		"input": {got.Data.Inputs, map[string][]string{"x": {"f.*"}}}, "target": {got.Data.Targets, map[string][]string{"y": {"label"}}}, "defaults": {got.Optimizer.Beta2, 0.999},
	}) {
		if fmt.Sprint(pair[0]) != fmt.Sprint(pair[1]) {
			t.Errorf("--%s: %v, want %v", what, pair[0], pair[1])
		}
	}
	if !filepath.IsAbs(got.Model) || !filepath.IsAbs(got.Data.Path) {
		t.Errorf("paths %s and %s depend on the folder", got.Model, got.Data.Path)
	}
	apptest.Refuse(t, []string{"fit", "--resume", dir, "--set", "optimizer.lr=0.5", "--epochs", "9"}, "configuration has changed", "optimizer.lr: 0.02 -> 0.5", "epochs: 2 -> 9")
	apptest.Refuse(t, []string{"fit", "--resume", dir, "--dir", dir}, "leave --dir out")
	apptest.Refuse(t, apptest.FitArgs(apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(10)), "--input", "x"), `--input: "x": expected NAME=COLUMN`)
}

// A loss graph is part of what a run is made from: when it changes, the run cannot be resumed.
func TestFitLossGraph(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder("loss", 18)
	batch := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(1)}}
	d := b.Op("Abs", []onnx.Value{b.Op("Sub", []onnx.Value{b.Input("prediction", batch), b.Input("target", batch)})})
	l := b.Op("ReduceMean", []onnx.Value{d}, onnx.AttrInt("keepdims", 0))
	b.Output(b.Rename(l, "loss"), onnx.TypeOf(tensor.Float32))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	loss := apptest.Save(t, m)
	model, data := apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(64))
	dir := filepath.Join(t.TempDir(), "run")
	own, ownOut := fitted(t, apptest.FitArgs(model, data, "--loss", loss, "--dir", dir))
	mae, maeOut := fitted(t, apptest.FitArgs(model, data, "--loss", "mae"))
	if math.Abs(*own.Loss-*mae.Loss) > 1e-5 {
		t.Errorf("loss %g with the graph, %g with mae", *own.Loss, *mae.Loss)
	}
	close32(t, "loss graph", apptest.Weights(t, ownOut), apptest.Weights(t, maeOut))
	m.SetMeta("changed", "yes")
	if err := onnx.Save(loss, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	apptest.Refuse(t, []string{"fit", "--resume", dir}, "the loss0 has changed since the run was started")
}

// Weights in external files are trained like others, belong to the model's digest, and are never
// written to.
func TestFitExternalData(t *testing.T) {
	t.Parallel()
	m, err := loadModel(apptest.MLPModel(t))
	if err != nil {
		t.Fatal(err)
	}
	inside, outside := apptest.Save(t, m), filepath.Join(t.TempDir(), "big.onnx")
	if err := onnx.Save(outside, m, onnx.SaveOptions{ExternalThreshold: 1}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(outside + ".data")
	if err != nil {
		t.Fatal(err)
	}
	data, dir := apptest.CSVFile(t, apptest.Table(64)), filepath.Join(t.TempDir(), "run")
	_, a := fitted(t, apptest.FitArgs(inside, data))
	_, b := fitted(t, apptest.FitArgs(outside, data, "--dir", dir))
	close32(t, "external data", apptest.Weights(t, b), apptest.Weights(t, a))
	after, err := os.ReadFile(outside + ".data")
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("the external data has changed: %v", err)
	}
	before[0] ^= 1
	if err := os.WriteFile(outside+".data", before, 0o644); err != nil {
		t.Fatal(err)
	}
	apptest.Refuse(t, []string{"fit", "--resume", dir}, "big.onnx")
	apptest.Refuse(t, apptest.FitArgs(inside, data, "--out", inside), "it is the model that is trained")
}
