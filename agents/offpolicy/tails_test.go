package offpolicy_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/sac"
	"github.com/onnxrl/onnxrl/agents/td3"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestQuantiles compares the loss of critics of quantiles, and what the actor pays for a tail, with
// their definitions in float64, and the gradients of both with differences, for one recorded action
// in a box and of four.
func TestQuantiles(t *testing.T) {
	const batch, q, scale, penalty = 3, 4, 0.25, 0.6
	c := agenttest.Tails()[0]
	c.Quantiles = q
	compared := 0
	for what, spec := range sorted.All(map[string]envs.Spec{"box": agenttest.Box(), "choice": agenttest.Choice()}) {
		f, err := network.NewFrame(spec)
		if err != nil {
			t.Fatal(err)
		}
		n := &offpolicy.Networks{Frame: f, Constraints: []constraint.Config{c}}
		of := 1
		if !f.Continuous() {
			of = 4
		}
		l := layer.New("tail", rng.New(1), layer.Options{})
		var cost, probs, taken onnx.Value
		if of == 1 {
			cost = l.Observation("cost", q)
		} else {
			cost, probs, taken = l.Observation("cost", of, q), l.Observation("probs", of), l.Batched("taken", tensor.Int64)
		}
		l.Output("loss", n.CostLoss(l, 0, cost, taken))
		l.Output("pays", n.Penalise(l, l.Observation("rest"), []onnx.Value{cost}, probs))
		m, err := l.Model()
		if err != nil {
			t.Fatal(err)
		}
		if m, err = onnx.BindDims(m, map[string]int{layer.Batch: batch}); err != nil {
			t.Fatal(err)
		}
		s := rng.New(8).Stream()
		random := func(shape ...int) *tensor.Tensor {
			x := tensor.New(tensor.Float32, shape...)
			s.FillNormal32(x.Float32s(), 0, 1)
			return x
		}
		in := map[string]*tensor.Tensor{
			"cost": random(batch, q), "rest": random(batch), "learner.cost_target1": random(batch, q), "learner.cost_offset1": random(batch),
			"learner.scale": tensor.Of([]float32{scale}, 1), "learner.penalty1": tensor.Of([]float32{penalty}, 1),
		}
		at := []int64{0, 0, 0}
		if of > 1 {
			at = []int64{2, 0, 3}
			in["cost"], in["probs"], in["taken"] = random(batch, of, q), tensor.Of(slices.Repeat([]float32{0.1, 0.2, 0.3, 0.4}, batch), batch, of), tensor.Of(at, batch)
		}
		get := func(name string, i int) float64 { return float64(in[name].Float32s()[i]) }
		for _, e := range testengines.All(t) {
			out, err := gradcheck.Run(t.Context(), e, m, in)
			if err != nil {
				t.Fatal(err)
			}
			for b := range batch {
				loss := 0.0
				for k := range q {
					x, level := get("cost", (b*of+int(at[b]))*q+k), (float64(k)+0.5)/q
					for j := range q {
						u := get("learner.cost_target1", b*q+j) - x
						if loss += level * u / (q * q); u < 0 {
							loss -= u / (q * q)
						}
					}
				}
				pays := scale * get("rest", b)
				for a := range of {
					p := 1.0
					if of > 1 {
						p = get("probs", b*of+a)
					}
					for k := range q {
						pays += penalty * p * max(get("cost", (b*of+a)*q+k)+get("learner.cost_offset1", b), 0) / q
					}
				}
				compared++
				if x, y := float64(out["loss"].Float32s()[b]), float64(out["pays"].Float32s()[b]); math.Abs(x-loss) > 1e-6 || math.Abs(y-pays) > 1e-6 {
					t.Errorf("%s: row %d loses %g and pays %g, expected %g and %g", what, b, x, y, loss, pays)
				}
			}
			p := gradcheck.Problem{Model: m, Inputs: in, Wrt: []string{"cost"}, Outputs: []string{"loss", "pays"}}
			if _, err := gradcheck.Check(t.Context(), e, p, gradcheck.Options{}); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if compared != 6*len(testengines.All(t)) {
		t.Errorf("%d rows", compared)
	}
}

// TestTails: what an algorithm learns with limits on tails goes on from a checkpoint bit for bit,
// and numbers of steps above 1 are refused.
func TestTails(t *testing.T) {
	s, d := sac.Defaults(), td3.Defaults()
	small(&s.Settings)
	small(&d.Settings)
	s.Hidden, d.Hidden, s.Constraints, d.Constraints = []int{8}, []int{8}, agenttest.Tails(), agenttest.Tails()
	s.TrainFreq, s.GradientSteps, d.TrainFreq, d.GradientSteps = 5, 3, 5, 3
	list := map[string]agenttest.Variant{
		"sac": {Maker: made(t, s, sac.NewMaker), Spec: agenttest.Costly(agenttest.Box())}, "sac, discrete": {Maker: made(t, s, sac.NewMaker), Spec: agenttest.Costly(agenttest.Choice())},
		"td3": {Maker: made(t, d, td3.NewMaker), Spec: agenttest.Costly(agenttest.Box())},
	}
	agenttest.Resume(t, list, 16, 22, 5)
	s.NSteps, d.NSteps = 3, 3
	for what, err := range sorted.All(map[string]error{"sac": s.Validate(), "td3": d.Validate()}) {
		if want := "n_steps: is 3, expected 1: constraints with measure: cvar over episodes count what an episode had cost before each step"; err == nil || fmt.Sprint(err) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
}
