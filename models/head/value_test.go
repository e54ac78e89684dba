package head_test

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// agent has one of every head that is a layer.
func agent(t *testing.T) (*layer.Graph, *onnx.Model) {
	t.Helper()
	g := layer.New("agent", rng.New(6), layer.Options{})
	z, action := g.Observation("z", 5), g.Observation("action", 2)
	p := head.Perceptron{Hidden: []int{6, 4}, Activation: "tanh", Init: layer.Orthogonal(math.Sqrt2), Out: layer.Orthogonal(1)}
	twins := g.In("critic")
	q1, q2 := head.TwinQ(twins, z, action, p)
	g.Output("q1", q1)
	g.Output("q2", q2)
	policy := g.In("policy")
	d := head.Deterministic(policy, z, layer.Xavier(1), 2)
	g.Output("d", d)
	again, _ := head.TwinQ(twins.Again(), z, d, p)
	g.Output("q1_of_policy", again)
	g.Output("scaled", head.Rescale(g, d, []float64{-2, 10}, []float64{2, 30}))
	g.Output("v", head.Value(g.In("v"), z, layer.Orthogonal(1)))
	values := head.Duelling(g.In("dqn"), z, layer.Orthogonal(1), 1, 3)
	g.Output("values", values)
	g.Output("plain", head.QValues(g.In("plain"), z, layer.Orthogonal(1), 1, 3))
	g.Output("picked", head.Pick(g, values, g.Batched("index", tensor.Int64)))
	for _, b := range []head.Bound{head.BoundTanh, head.BoundClip} {
		l := g.In(string(b))
		ls := head.StateLogStd(l, z, layer.Orthogonal(5), 2, b, -5, 2)
		g.Output("log_std_"+string(b), ls)
	}
	n := head.NewDiagGaussian(g, head.Mean(g.In("gauss"), z, layer.Orthogonal(0.01), 2), head.SharedLogStd(g.In("gauss"), -0.5, 2))
	g.Output("h", n.Entropy())
	g.Output("logits", head.Logits(g.In("one"), z, layer.Orthogonal(0.01), 2, 3))
	g.Output("assets", head.AssetLogits(g.In("many"), g.Observation("features", 4, 5), layer.Orthogonal(0.01), 3))
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	return g, m
}

func TestLayers(t *testing.T) {
	g, m := agent(t)
	if err := onnx.Check(m); err != nil {
		t.Fatal(err)
	}
	net, _, err := g.Network(models.Options{Freeze: []string{"critic.*"}})
	if err != nil {
		t.Fatal(err)
	}
	frozen := 0
	for _, s := range net.Specs {
		if s.Role == models.Frozen {
			frozen++
		}
	}
	if frozen != 12 {
		t.Errorf("%d parameters of the critic, expected two times six", frozen)
	}
	const batch = 3
	in := map[string]*tensor.Tensor{"z": tensor.New(tensor.Float32, batch, 5), "action": tensor.New(tensor.Float32, batch, 2), "features": tensor.New(tensor.Float32, batch, 4, 5), "index": tensor.Of([]int64{2, 0, 1}, 3)}
	s := rng.New(8).Stream()
	for _, name := range []string{"z", "action", "features"} {
		s.FillNormal32(in[name].Float32s(), 0, 1)
	}
	n := 0
	for _, e := range testengines.All(t) {
		out, err := gradcheck.Run(t.Context(), e, m, in)
		if err != nil {
			t.Fatal(err)
		}
		for name, shape := range sorted.All(map[string][]int{"q1": {3}, "q2": {3}, "d": {3, 2}, "q1_of_policy": {3}, "scaled": {3, 2}, "v": {3}, "values": {3, 3}, "plain": {3, 3}, "picked": {3}, "log_std_tanh": {3, 2}, "log_std_clip": {3, 2}, "h": {3}, "logits": {3, 5}, "assets": {3, 12}}) {
			if n++; !slices.Equal(out[name].Shape(), shape) {
				t.Errorf("%s is %v, expected %v", name, out[name], shape)
			}
		}
		if slices.Equal(out["q1"].Float32s(), out["q2"].Float32s()) {
			t.Error("the twins are one")
		}
		for i, x := range out["d"].Float32s() {
			want := [][2]float32{{0, 2}, {20, 10}}[i%2]
			if n++; x <= -1 || x >= 1 || math.Abs(float64(out["scaled"].Float32s()[i]-(want[0]+want[1]*x))) > 1e-5 {
				t.Errorf("action %v is scaled to %v", x, out["scaled"].Float32s()[i])
			}
		}
		for i, a := range in["index"].Int64s() {
			if n++; out["picked"].Float32s()[i] != out["values"].Float32s()[i*3+int(a)] {
				t.Errorf("row %d: picked %v of %v", i, out["picked"].Float32s()[i], out["values"].Float32s()[i*3:i*3+3])
			}
		}
		for _, name := range []string{"log_std_tanh", "log_std_clip"} {
			for _, x := range out[name].Float32s() {
				if n++; x < -5 || x > 2 {
					t.Errorf("%s is %v", name, x)
				}
			}
		}
		// The same critic on the same action says the same.
		same := map[string]*tensor.Tensor{"z": in["z"], "features": in["features"], "index": in["index"], "action": out["d"]}
		again, err := gradcheck.Run(t.Context(), e, m, same)
		if err != nil {
			t.Fatal(err)
		}
		for i, q := range again["q1"].Float32s() {
			if n++; math.Abs(float64(q-again["q1_of_policy"].Float32s()[i])) > 1e-6 {
				t.Errorf("the critic says %v and %v of one action", q, again["q1_of_policy"].Float32s()[i])
			}
		}
		bound, err := onnx.BindDims(m, map[string]int{layer.Batch: batch})
		if err != nil {
			t.Fatal(err)
		}
		p := gradcheck.Problem{Model: bound, Inputs: in, Wrt: []string{"z", "action", "features"}, Outputs: []string{"q1", "q2", "q1_of_policy", "scaled", "v", "values", "plain", "picked", "log_std_tanh", "h", "logits", "assets"}}
		for _, s := range g.Params() {
			if s.Name != "clip.log_std.weight" && s.Name != "clip.log_std.bias" {
				p.Wrt = append(p.Wrt, s.Name)
			}
		}
		if _, err := gradcheck.Check(t.Context(), e, p, gradcheck.Options{}); err != nil {
			t.Error(err)
		}
	}
	if n != len(testengines.All(t))*(14+6+3+12+3) {
		t.Errorf("%d checks", n)
	}
}
