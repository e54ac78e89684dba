package app

import (
	"encoding/csv"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// foreign is where cmd/peers/foreign_models.py wrote models of other programs than PyTorch, with
// what they give for rows.csv.
var foreign = filepath.Join("testdata", "foreign")

// foreignRows reads columns of rows.csv: every row's inputs, and those named.
func foreignRows(t *testing.T, column string) (x, y []float32) {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(apptest.ReadText(t, foreign, "rows.csv"))).ReadAll()
	if err != nil || len(lines) != 65 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	at := slices.Index(lines[0], column)
	for _, line := range lines[1:] {
		for _, k := range []int{0, 1, 2, at} {
			v, err := strconv.ParseFloat(line[k], 32)
			if err != nil {
				t.Fatal(err)
			}
			if k == at {
				y = append(y, float32(v))
			} else {
				x = append(x, float32(v))
			}
		}
	}
	return x, y
}

// TestForeignModels takes models that JAX (jax2onnx), scikit-learn (skl2onnx) and Keras have
// written: they compute what they did there, their gradients are those of differences, fit trains
// them on the data, and on what LightGBM's trees say of it.
func TestForeignModels(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	cases := 0
	for _, k := range []struct{ name, input, output string }{{"jax_mlp", "in_0", "add_out_1"}, {"sklearn_mlp", "X", "variable"}, {"keras_mlp", "keras_tensor", "Identity:0"}} {
		path := filepath.Join(foreign, k.name+".onnx")
		m, err := loadModel(path)
		if err != nil {
			t.Fatal(err)
		}
		x, want := foreignRows(t, k.name)
		in := map[string]*tensor.Tensor{k.input: tensor.Of(x, 64, 3)}
		wrt := []string{k.input}
		for _, p := range m.Graph.Initializer {
			if tensor.DType(p.DataType) == tensor.Float32 {
				wrt = append(wrt, p.Name)
			}
		}
		if len(wrt) < 5 {
			t.Errorf("%s: parameters %q", k.name, wrt[1:])
		}
		for _, c := range testengines.All(t) {
			out, err := gradcheck.Run(t.Context(), c, m, in)
			if err != nil {
				t.Fatal(err)
			}
			for i, have := range out[k.output].Float32s() {
				if math.Abs(float64(have-want[i])) > 1e-5 {
					t.Fatalf("%s, %s: row %d is %g, expected %g", k.name, c.Name(), i, have, want[i])
				}
			}
			r, err := gradcheck.Check(t.Context(), c, gradcheck.Problem{Model: m, Inputs: in, Wrt: wrt}, gradcheck.Options{})
			if err != nil {
				t.Errorf("%s, %s: %v, %+v", k.name, c.Name(), err, r)
			}
			cases++
		}
		for _, target := range []string{"y", "lightgbm_trees"} {
			loss := func(epochs string) float64 {
				r := apptest.Decoded[struct {
					Loss float64 `json:"loss"`
				}](t, apptest.Succeed(t, "fit", "--json", "--model", path, "--data", filepath.Join(foreign, "rows.csv"), "--loss", "mse", "--lr", "0.01", "--seed", "1",
					"--epochs", epochs, "--input", k.input+"=x0,x1,x2", "--target", k.output+"="+target, "--out", filepath.Join(t.TempDir(), "trained.onnx")))
				return r.Loss
			}
			if first, last := loss("1"), loss("60"); !(last < first/2) {
				t.Errorf("%s on %s: loss %g after an epoch, %g after 60", k.name, target, first, last)
			}
			cases++
		}
	}
	if cases != 3*(len(testengines.All(t))+2) {
		t.Errorf("%d cases", cases)
	}
}

// TestForeignTreesAreRefused names the operator and its domain: trees have no gradient, and what
// they say teaches a network as a column of its data.
func TestForeignTreesAreRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(foreign, "lightgbm_trees.onnx")
	const says = `operator TreeEnsembleRegressor of domain "ai.onnx.ml" is not known`
	apptest.Refuse(t, []string{"fit", "--model", path, "--data", filepath.Join(foreign, "rows.csv"), "--loss", "mse", "--input", "input=x0,x1,x2", "--target", "variable=y", "--out", filepath.Join(t.TempDir(), "x.onnx")}, says)
	apptest.Refuse(t, []string{"graph", "explain", path}, says)
}
