package fit

import (
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/optim/fullbatch"
)

// A layer that a file has in training form is trained in it unless train_mode says otherwise. The
// losses are those of the same steps in PyTorch, with statistics of the batch and with running ones.
func TestLayersAreTrainedInTheFormOfTheFile(t *testing.T) {
	m, err := onnx.Load("testdata/bn_training.onnx")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Defaults()
	cfg.Data.Path = "testdata/bn_training.csv"
	cfg.Data.Inputs, cfg.Data.Targets = map[string][]string{"x": {"f*"}}, map[string][]string{"y": {"label"}}
	cfg.Loss = []loss.Term{{Kind: "mse"}}
	cfg.Batch, cfg.Epochs, cfg.Data.Shuffle, cfg.Shards = 64, 3, false, 1
	for _, c := range testengines.All(t) {
		for _, k := range []struct {
			mode *bool
			loss float64
			says string
		}{
			{nil, 3.76556, `msg="layer trained in training form" op=BatchNormalization`}, {new(true), 3.76556, `msg="layer trained in training form"`},
			{new(false), 3.75283, `level=WARN msg="layer was exported in training form; train_mode: false trains it in evaluation form"`},
		} {
			cfg.TrainMode = k.mode
			r := run(t, c, m, cfg, runOptions{})
			if math.Abs(r.Loss-k.loss) > 1e-5 || !strings.Contains(r.logs, k.says) {
				t.Errorf("%s, train_mode %v: loss %g, expected %g; the log, expected to say %q:\n%s", c.Name(), k.mode, r.Loss, k.loss, k.says, r.logs)
			}
		}
		cfg.TrainMode = nil
		converging := cfg
		converging.Epochs = Defaults().Epochs
		converging.FullBatch = &fullbatch.Config{Method: "lbfgs"}
		if _, err := tryRun(t, c, m, converging, runOptions{}); err == nil || !strings.Contains(err.Error(), "expected train_mode: false") {
			t.Errorf("%s, L-BFGS: %v", c.Name(), err)
		}
		if _, err := tryRun(t, c, inFunction(m), cfg, runOptions{}); err == nil || !strings.Contains(err.Error(), "is in training form inside a function") {
			t.Errorf("%s, in a function: %v", c.Name(), err)
		}
	}
}

// inFunction moves the first node of a model into a function.
func inFunction(m *onnx.Model) *onnx.Model {
	m = m.ShallowClone()
	bn := m.Graph.Node[0]
	body := bn.ShallowClone()
	body.Output = body.Output[:1]
	m.Functions = []*onnx.Function{{Name: "Norm", Domain: "local", Input: body.Input, Output: body.Output, Node: []*onnx.Node{body}, OpsetImport: m.OpsetImport}}
	m.SetOpset("local", 1)
	m.Graph.Node[0] = &onnx.Node{OpType: "Norm", Domain: "local", Input: bn.Input, Output: bn.Output[:1]}
	return m
}
