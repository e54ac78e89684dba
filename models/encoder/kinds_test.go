package encoder_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func parse(t *testing.T, text string) (encoder.Encoder, error) {
	t.Helper()
	d, err := configs.Parse("run.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Encoder configs.Kinded `yaml:"encoder"`
	}
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return encoder.New(encoder.Kinds(), c.Encoder)
}

// TestDefaultsSurviveTheRoundTrip writes every kind's effective configuration and reads it again.
func TestDefaultsSurviveTheRoundTrip(t *testing.T) {
	n := 0
	for _, k := range encoder.Kinds() {
		if k.Name == "file" {
			continue // has no defaults to stand on: it needs a path
		}
		e, err := parse(t, "encoder: {kind: "+k.Name+"}\n")
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			continue
		}
		c, err := configs.NewKinded(k.Name, e.Config())
		if err != nil {
			t.Fatal(err)
		}
		text, err := configs.Marshal(struct{ Encoder configs.Kinded }{c})
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse(t, string(text))
		if err != nil {
			t.Errorf("%s: %v\n%s", k.Name, err, text)
			continue
		}
		if d, err := configs.Diff(e.Config(), again.Config()); err != nil || len(d) > 0 {
			t.Errorf("%s: %v %v", k.Name, d, err)
		}
		n++
	}
	if n != len(encoder.Kinds())-1 || n < 3 {
		t.Errorf("%d kinds", n)
	}
	if !slices.IsSortedFunc(encoder.Kinds(), func(a, b encoder.Kind) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the list is not sorted")
	}
}

func TestBadConfigurations(t *testing.T) {
	n := 0
	for text, wants := range sorted.All(map[string][]string{
		"encoder: {kind: timecn}\n": {"run.yaml:1:17", `did you mean "timecnn"`},
		"encoder: {kind: mlp, hidden: [0, 64], activation: rleu, dropout: 1}\n":    {"encoder.hidden[0]", `"relu"`, "encoder.dropout", "run.yaml:1"},
		"encoder: {kind: timecnn, d_modle: 3}\n":                                   {"d_modle", `"d_model"`},
		"encoder: {kind: timecnn, kernel: 0, padding: full, n_layers: 40}\n":       {"encoder.kernel", "encoder.padding", "encoder.n_layers"},
		"encoder: {kind: timecnn, n_layers: 30, dilation: 2}\n":                    {"million"},
		"encoder: {kind: transformer, d_model: 10, n_heads: 4, positions: rotary}": {"must divide d_model, 10", "positions"},
		"encoder: {kind: informer, kernels: [3, 4], d_model: 15, factor: 0}":       {"encoder.kernels[1]", "number of kernels, 2", "encoder.n_heads", "encoder.factor"},
		"encoder: {kind: timesnet, period_choice: frozen}":                         {"encoder.periods", "period_choice: frozen"},
		"encoder: {kind: timesnet, periods: [5, 1, 5], d_ff: 0}":                   {"encoder.periods:", "encoder.periods[1]", "encoder.periods[2]", "encoder.d_ff"},
		"encoder: {kind: timeformer, n_heads: 3, ff_mult: 0}":                      {"must divide d_model, 64", "encoder.ff_mult"},
		"encoder: {kind: file}\n":                                                  {"encoder.path"},
		"encoder: {kind: file, path: nowhere.onnx}\n":                              {"nowhere.onnx"},
		"encoder: {kind: file, path: x.onnx, layout: nwc, pool: sum}\n":            {"encoder.layout", "encoder.pool"},
	}) {
		_, err := parse(t, text)
		for _, w := range wants {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v does not mention %q", strings.TrimSpace(text), err, w)
			}
			n++
		}
	}
	if n != 30 {
		t.Errorf("%d mentions", n)
	}
}
