//go:build cgo

package app

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

func TestGradOpsVerify(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	args := []string{"grad", "ops", "--verify", "--json", "Relu", "MatMul", "LayerNormalization", "Softmax", "Conv", "Gather", "Hardmax"}
	got := apptest.Decode[gradOps](t, apptest.Succeed(t, args...))
	if !got.Verified || got.Covered != 6 || len(got.Beyond) != 1 || len(got.Failed) != 0 || !slices.Equal(got.Engines, engineNames()) {
		t.Errorf("got %+v", got)
	}
	sum := 0
	for _, g := range append(got.Operators, got.Beyond...) {
		if len(g.Checks) != 2 {
			t.Fatalf("%s was checked on %d engines", g.Op, len(g.Checks))
		}
		for _, k := range g.Checks {
			if k.Passed != g.Cases || k.Cases != g.Cases || k.Comparisons == 0 || k.Error != "" || k.MaxError == nil {
				t.Errorf("%s: %+v", g.Op, k)
			}
			sum += k.Comparisons
		}
	}
	if sum != got.Comparisons || sum < 500 {
		t.Errorf("%d comparisons in all, %d in the list", got.Comparisons, sum)
	}
	text := apptest.Succeed(t, "grad", "ops", "--verify", "Relu", "--engine", "portable")
	if !regexp.MustCompile(`1/1 differentiable operators covered .* verified with \d+ comparisons on portable\n$`).MatchString(text) {
		t.Errorf("one operator on one engine:\n%s", text)
	}
	apptest.Refuse(t, []string{"grad", "ops", "Foo"}, `"Foo"`)
}

func TestCompare(t *testing.T) {
	t.Parallel()
	args := []string{"compare", torchFixtures + "/timecnn_glu/model.onnx", torchFixtures + "/timecnn_glu", "--grad"}
	got := apptest.Decode[comparison](t, apptest.Succeed(t, append(args, "--json")...))
	if !got.OK || len(got.Outputs) != 9 || !slices.Equal(got.Engines, engineNames()) || got.First != nil {
		t.Errorf("got %+v", got)
	}
	if text := apptest.Succeed(t, args...); !strings.HasSuffix(text, "ort and portable agree on 9 outputs\n") {
		t.Errorf("got\n%s", text)
	}
	// Random numbers differ between engines: the node that draws them is found, not the ones behind
	// it.
	drawn := apptest.Save(t, build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
		h := b.Op("Relu", []onnx.Value{b.Op("MatMul", []onnx.Value{x, w})})
		n := b.Op("RandomUniformLike", []onnx.Value{h})
		return []onnx.Value{b.Rename(b.Op("MatMul", []onnx.Value{b.Op("Add", []onnx.Value{h, n}), w}), "y"), b.Rename(h, "same")}
	}))
	r := apptest.Run(t, "compare", drawn, "--bind", "batch=3", "--json")
	if r.Code != 1 {
		t.Fatalf("exit status %d:\n%s%s", r.Code, r.Out, r.Err)
	}
	got = apptest.Decode[comparison](t, r.Out)
	if got.OK || got.First == nil || got.First.Value != "RandomUniformLike" || got.Agreed != 2 || len(got.First.Inputs) != 1 || !got.Outputs[1].Within(got.tolerance()) {
		t.Errorf("got %+v", got)
	}
	r = apptest.Run(t, "compare", drawn, "--bind", "batch=3")
	for _, s := range []string{`output "y"`, "DIFFERS", `output "same"`, `that agree: "RandomUniformLike"`, "made by node"} {
		if !strings.Contains(r.Out, s) {
			t.Errorf("the text does not say %q:\n%s", s, r.Out)
		}
	}
	apptest.Refuse(t, []string{"compare", drawn, "--bind", "batch=3", "--engines", "ort"}, "expected two of ort, portable")
	apptest.Refuse(t, []string{"compare", drawn, "--bind", "batch=3", "--engines", "ort,abacus"}, `--engines: "abacus" is none of auto, ort, portable`)
	apptest.Refuse(t, []string{"compare", drawn, "--bind", "batch=0"}, "nothing would be compared")
	apptest.Refuse(t, []string{"compare", drawn, "--bind", "batch=3", "--tol", "-1"}, "--tol -1 and --atol 1e-05", "not negative")
	apptest.Refuse(t, []string{"compare", drawn, "--bind", "batch=3", "--atol", "nan"}, "--atol NaN", "not negative")
	apptest.Refuse(t, []string{"compare", drawn, "--bind", "batch=3", "x=ones", "x=zeros"}, `input "x" is given twice`)
}

// TestGradOpsVerifyAll has the whole table, as the program promises it.
func TestGradOpsVerifyAll(t *testing.T) {
	longtest.Nightly(t)
	if all := apptest.Decode[gradOps](t, apptest.Succeed(t, "grad", "ops", "--verify", "--json")); !all.Verified || all.Covered < 105 || all.Specified != 119 || len(all.Failed) > 0 || all.Comparisons < 100_000 {
		t.Errorf("%d of %d covered with %d comparisons, failed: %v", all.Covered, all.Specified, all.Comparisons, all.Failed)
	}
}
