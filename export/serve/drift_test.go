package serve

import (
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/models/drift"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// published gives a model the statistics of normal observations of its input x.
func published(m *onnx.Model) *onnx.Model {
	width := 2
	if in, ok := m.Graph.Input[0].TensorType(); ok && in.Dims[1].IsKnown() {
		width = in.Dims[1].Value
	}
	x, s := tensor.New(tensor.Float32, 2000, width), rng.New(1).Stream()
	s.FillNormal32(x.Float32s(), 0, 1)
	var c drift.Collector
	c.Add([]string{"x"}, []*tensor.Tensor{x}, 2000)
	m.SetMeta(drift.Key, c.Reference().Text())
	return m
}

// TestDriftIsReportedAndRefused: beyond the limit the log says so once, and where it is configured
// requests are refused until the window is within the limit again.
func TestDriftIsReportedAndRefused(t *testing.T) {
	var mu sync.Mutex
	said := map[string][]string{}
	c := func(a DriftAction) Config { return Config{Drift: Drift{Limit: 0.5, Window: 800, Action: a}} }
	s, _, _ := start(t, Options{Log: func(m ModelStatus) {
		mu.Lock()
		defer mu.Unlock()
		if m.State == Ready && m.Reason != "" {
			said[m.Name] = append(said[m.Name], m.Reason)
		}
	}}, one("warn", c(WarnDrift), published(scale(2))), one("refuse", c(RefuseDrift), published(scale(2))), one("ignore", c(IgnoreDrift), published(scale(2))), one("bare", c(RefuseDrift), scale(2)))
	stream := rng.New(2).Stream()
	// send asks with so many rows of a shifted second feature, 100 at a time.
	send := func(model string, n int, shift float32) (refused int) {
		for range n / 100 {
			x := tensor.New(tensor.Float32, 100, 2)
			stream.FillNormal32(x.Float32s(), 0, 1)
			for i := range 100 {
				x.Float32s()[2*i+1] += shift
			}
			var resp Response
			err := s.Infer(t.Context(), &Request{Model: model, Inputs: []Tensor{{"x", x}}}, &resp)
			if err == nil {
				continue
			}
			refused++
			if CodeOf(err) != Drifted || !strings.Contains(err.Error(), "population stability index of x[1] is ") || Drifted.GRPCCode() != 9 || Drifted.HTTPStatus() != 422 {
				t.Fatal(err)
			}
		}
		return refused
	}
	cases := 0
	for _, model := range []string{"warn", "refuse", "ignore", "bare"} {
		if n := send(model, 1600, 0); n > 0 {
			t.Errorf("%s: %d requests of what it knows are refused", model, n)
		}
		of := func() Statistics {
			list, err := s.Statistics(model, "")
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			return list[0]
		}
		watched := model == "warn" || model == "refuse"
		if d := of().Drift; (d.Rows > 0) != watched || d.PSI > 0.1 {
			t.Errorf("%s: %+v", model, d)
		}
		refused := send(model, 1600, 2)
		if x := of(); (refused >= 8) != (model == "refuse") || watched && (x.Drift.PSI < 1 || x.DriftFeature != "x[1]") {
			t.Errorf("%s: %d refused, %+v of %q", model, refused, x.Drift, x.DriftFeature)
		}
		if n := send(model, 1600, 0); model == "refuse" && (n == 0 || n > 9) || model != "refuse" && n > 0 {
			t.Errorf("%s: %d requests are refused afterwards", model, n)
		}
		if d := of().Drift; d.PSI > 0.1 {
			t.Errorf("%s: %+v afterwards", model, d)
		}
		mu.Lock()
		if list := said[model]; watched != (len(list) == 2) || watched && (!strings.Contains(list[0], "have drifted") || !strings.Contains(list[1], "within the limit")) {
			t.Errorf("%s: %q", model, list)
		}
		mu.Unlock()
		cases++
	}
	if cases != 4 {
		t.Errorf("%d cases", cases)
	}
}

// TestDriftMetadata: a model whose statistics are not of its inputs does not serve.
func TestDriftMetadata(t *testing.T) {
	n := 0
	for text, says := range sorted.All(map[string]string{
		"{": "metadata onnxrl.observations",
		`{"rows":1,"inputs":[{"name":"z","features":[{"edges":[],"shares":[1]}]}]}`: `no input "z"`,
		`{"rows":1,"inputs":[{"name":"x","features":[{"edges":[],"shares":[1]}]}]}`: `input "x" has 1 features, and a row of the model's 2`,
	}) {
		v := &version{model: &model{}, info: map[string]string{drift.Key: text}, config: Config{}.withDefaults(), plan: &plan{inAt: map[string]int{"x": 0}, batch: true}}
		v.plan.in = []engine.Port{{Name: "x", DType: tensor.Float32, Shape: []int{-1, 2}}}
		if err := v.watchDrift(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, expected %q", text, err, says)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d cases", n)
	}
}
