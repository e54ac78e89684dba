package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestFitOtherPrecisions: the written file has the type of the file that came in, and the summary
// says what that type costs.
func TestFitOtherPrecisions(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	runs := 0
	for name, d := range sorted.All(map[string]tensor.DType{"plain_float64": tensor.Float64, "plain_float16": tensor.Float16, "plain_bfloat16": tensor.BFloat16}) {
		for _, engine := range apptest.Engines() {
			out := filepath.Join(t.TempDir(), "out.onnx")
			got := apptest.Decode[fitSummary](t, apptest.Succeed(t, fixture(t, name, "--engine", engine, "--out", out, "--json")...))
			if got.Parity == nil || !(got.Parity.MaxError <= 1e-5) || got.Rounded == nil || got.Rounded.Type != d.String() {
				t.Fatalf("%s on %s: %+v", name, engine, got)
			}
			// float32 weights are float64 ones as they are; half precision has 11 and 8 binary
			// digits.
			limit := map[tensor.DType]float64{tensor.Float64: 1e-12, tensor.Float16: 1.0 / (1 << 8), tensor.BFloat16: 1.0 / (1 << 5)}[d]
			if r := got.Rounded; !(r.Weights <= limit) || (r.Weights == 0) != (d == tensor.Float64) {
				t.Errorf("%s on %s: rounded weights cost %g, want at most %g", name, engine, r.Weights, limit)
			}
			if r := got.Rounded; engine == "portable" && r.Native == nil || r.Native != nil && *r.Native > 4*limit+1e-5 || (r.Native == nil) != (r.Problem != "") {
				t.Errorf("%s on %s: %+v", name, engine, *r)
			}
			m, err := onnx.Load(out)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range m.Graph.Initializer {
				if of := tensor.DType(p.DataType); of.IsFloat() && of != d {
					t.Errorf("%s on %s: %s is %v", name, engine, p.Name, of)
				}
			}
			if in, _ := m.Graph.Input[0].TensorType(); in.DType != d {
				t.Errorf("%s on %s: the input is %v", name, engine, in)
			}
			runs++
		}
	}
	if want := 3 * len(apptest.Engines()); runs != want {
		t.Errorf("%d runs, want %d", runs, want)
	}
}

// TestFitSaysWhatIsTrained: what the exporter had merged, what stays tied and what is a buffer.
func TestFitSaysWhatIsTrained(t *testing.T) {
	t.Parallel()
	free := apptest.Run(t, fixture(t, "fresh", "--json")...)
	tied := apptest.Run(t, fixture(t, "fresh", "--json", "--tie", "*")...)
	if free.Code != 0 || tied.Code != 0 {
		t.Fatalf("%s\n%s", free.Err, tied.Err)
	}
	for _, want := range []string{
		`merged=blocks.0.1.weight apart="[blocks.1.1.weight blocks.2.1.weight norms.0.weight norms.1.weight]"`, `merged=gates.0 apart="[gates.1 gates.2]"`,
		`stay tied and are trained as one; untie cuts them apart" parameters="[emb.weight twice.weight twice.bias]"`, `tensors=[pos]`,
	} {
		if !strings.Contains(free.Err, want) {
			t.Errorf("it does not say %s:\n%s", want, free.Err)
		}
	}
	if strings.Contains(tied.Err, "apart=") {
		t.Errorf("with --tie it says:\n%s", tied.Err)
	}
	// Two copies each of a block (8·8+8+8+8) and a gate, and two norms more.
	if a, b := apptest.Decode[fitSummary](t, free.Out).Trainable, apptest.Decode[fitSummary](t, tied.Out).Trainable; a-b != 2*(64+8+16+1)+2*16 {
		t.Errorf("%d parameters, %d with --tie", a, b)
	}
}

// TestFitRefusesLabelsAndTokensOutside with row and column, on both engines, and writes nothing.
func TestFitRefusesLabelsAndTokensOutside(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(fitFixtures, "tokens", "data.csv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	columns := strings.Split(lines[0], ",")
	runs := 0
	for _, c := range []struct{ column, value, want string }{
		{"to_cls_000", "-1", `row 9, column "to_cls_000": -1 is not a class of output "cls": expected 0 to 2`},
		{"to_cls_000", "3", `row 9, column "to_cls_000": 3 is not a class`},
		{"tokens_002", "-1", `row 9, column "tokens_002": -1 is not a row of the table "emb.weight": expected 0 to 10`},
		{"tokens_002", "11", `row 9, column "tokens_002": 11 is not a row`},
	} {
		cells := strings.Split(lines[9], ",")
		for i, name := range columns {
			if name == c.column {
				cells[i] = c.value
			}
		}
		bad := append([]string{}, lines...)
		bad[9] = strings.Join(cells, ",")
		path := apptest.Write(t, "bad.csv", strings.Join(bad, "\n"))
		for _, engine := range apptest.Engines() {
			out := filepath.Join(t.TempDir(), "out.onnx")
			r := apptest.Run(t, fixture(t, "tokens", "--data", path, "--engine", engine, "--out", out, "-q")...)
			if r.Code == 0 || !strings.Contains(r.Err, c.want) || !strings.Contains(r.Err, "bad.csv") {
				t.Errorf("%s of %s on %s: exit status %d\n%s", c.value, c.column, engine, r.Code, r.Err)
			}
			if _, err := os.Stat(out); err == nil {
				t.Errorf("%s of %s on %s: a model was written", c.value, c.column, engine)
			}
			runs++
		}
	}
	if want := 4 * len(apptest.Engines()); runs != want {
		t.Errorf("%d runs, want %d", runs, want)
	}
}
