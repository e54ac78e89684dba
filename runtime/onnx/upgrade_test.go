package onnx

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func at(opset int, m *Model) *Model {
	m.SetOpset("", opset)
	return m
}

func TestUpgrade(t *testing.T) {
	x3 := NewValueInfo("x", TypeOf(tensor.Float32, 2, 3, 4))
	rank3 := func(m *Model) *Model {
		m.Graph.Input[0] = x3
		return m
	}
	cases := []struct {
		name     string
		from, to int
		m        *Model
		want     string
		attrs    string // of the last operator of that name, sorted, as printed
	}{
		{"softmax on the last axis", 11, 18, rank3(model("x", "", "y", node("Softmax", "x", "y", AttrInt("axis", 2)))), "Softmax(x)->y", "axis=-1"},
		{"softmax in the middle", 11, 18, rank3(model("x", "", "y", node("Softmax", "x", "y"))), "Shape(x)->y/Shape; Flatten(x)->y/Flatten; Softmax(y/Flatten)->y/flat; Reshape(y/flat,y/Shape)->y", ""},
		{"softmax of unknown rank", 11, 13, model("x", "", "y", node("Relu", "x", "h"), node("LogSoftmax", "h", "y")), "Relu(x)->h; Shape(h)->y/Shape; Flatten(h)->y/Flatten; LogSoftmax(y/Flatten)->y/flat; Reshape(y/flat,y/Shape)->y", ""},
		{"squeeze", 11, 18, model("x", "", "y", node("Squeeze", "x", "h"), node("Unsqueeze", "h", "y", AttrInts("axes", 0, 2))), "Squeeze(x)->h; Unsqueeze(h,y/axes)->y", ""},
		{"reductions", 17, 18, model("x", "", "y", node("ReduceMean", "x", "h", AttrInts("axes", 1), AttrInt("keepdims", 0)), node("ReduceSum", "h", "y")), "ReduceMean(x,h/axes)->h; ReduceSum(h)->y", ""},
		{"reduction before 13", 11, 17, model("x", "", "y", node("ReduceSum", "x", "y", AttrInts("axes", 1)), node("ReduceMax", "x", "z", AttrInts("axes", 1))), "ReduceSum(x,y/axes)->y; ReduceMax(x)->z", "axes=[1]"},
		{"split", 11, 18, model("x", "", "y", node("Split", "x", "y,z", AttrInts("split", 1, 1)), node("Split", "y", "u,v")), "Split(x,y/split)->y,z; Split(y)->u,v", "num_outputs=2"},
		{"slice", 9, 18, model("x", "", "y", node("Slice", "x", "y", AttrInts("starts", 0), AttrInts("ends", 1))), "Slice(x,y/starts,y/ends)->y", ""},
		{"topk", 9, 18, model("x", "", "y", node("TopK", "x", "y,i", AttrInt("k", 3), AttrInt("axis", 0))), "TopK(x,y/k)->y,i", "axis=0"},
		{"clip", 9, 18, model("x", "", "y", node("Clip", "x", "h", AttrFloat("max", 6)), node("Clip", "h", "y", AttrFloat("min", -3.4028234663852886e38))), "Clip(x,,h/max)->h; Clip(h)->y", ""},
		{"pad", 9, 18, model("x", "", "y", node("Pad", "x", "h", AttrInts("pads", 0, 1), AttrFloat("value", 2)), node("Pad", "h", "y", AttrInts("pads", 1, 1), AttrStr("mode", "edge"))), "Pad(x,h/pads,h/value)->h; Pad(h,y/pads)->y", `mode="edge"`},
		{"dropout", 9, 18, model("x", "", "y", node("Dropout", "x", "y", AttrFloat("ratio", 0.25))), "Dropout(x,y/ratio)->y", ""},
		{"batch normalisation", 8, 18, model("x", "a,b,c,d", "y", node("BatchNormalization", "x,a,b,c,d", "y", AttrInt("spatial", 1), AttrFloat("epsilon", 0.5))), "BatchNormalization(x,a,b,c,d)->y", "epsilon=0.5"},
		{"batch normalisation in training", 13, 18, model("x", "a,b,c,d", "y", node("BatchNormalization", "x,a,b,c,d", "y,m,v,p,q", AttrFloat("momentum", 0.5))), "BatchNormalization(x,a,b,c,d)->y,m,v", "momentum=0.5, training_mode=1"},
		{"upsample", 7, 18, model("x", "", "y", node("Upsample", "x", "y", AttrFloats("scales", 1, 2))), "Resize(x,,y/scales)->y", `coordinate_transformation_mode="asymmetric", nearest_mode="floor"`},
		{"resize", 10, 18, model("x", "s", "y", node("Resize", "x,s", "y", AttrStr("mode", "linear"))), "Resize(x,,s)->y", `coordinate_transformation_mode="asymmetric", mode="linear"`},
		{"scatter", 10, 18, model("x,i,u", "", "y", node("Scatter", "x,i,u", "y", AttrInt("axis", 1))), "ScatterElements(x,i,u)->y", "axis=1"},
		{"roi align", 15, 18, model("x,r,b", "", "y", node("RoiAlign", "x,r,b", "y")), "RoiAlign(x,r,b)->y", `coordinate_transformation_mode="output_half_pixel"`},
		{"dft", 18, 20, model("x", "", "y", node("DFT", "x", "y")), "DFT(x,,y/axis)->y", ""},
		{"grid sample", 18, 20, model("x,g", "", "y", node("GridSample", "x,g", "y")), "GridSample(x,g)->y", `mode="linear"`},
		{"unchanged", 7, 27, model("x", "w", "y", node("Add", "x,w", "h"), node("LeakyRelu", "h", "y", AttrFloat("alpha", 0.5))), "Add(x,w)->h; LeakyRelu(h)->y", "alpha=0.5"},
		{"in a sub-graph", 11, 18, model("c,x", "", "y", node("If", "c", "y", AttrGraph("then_branch", subgraph("", "t", node("ReduceSum", "x", "t", AttrInts("axes", 0)))), AttrGraph("else_branch", subgraph("", "e", node("Neg", "x", "e"))))),
			"If(c)->y{ReduceSum(x,t/axes)->t => t}{Neg(x)->e => e}", ""},
	}
	for _, c := range cases {
		at(c.from, c.m)
		before := proto.Clone(c.m)
		got, err := Upgrade(c.m, c.to)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if s := brief(got.Graph); s != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, s, c.want)
		}
		if c.attrs != "" {
			n := got.Graph.Node[len(got.Graph.Node)-1]
			var list []string
			for _, a := range sortedAttributes(n.Attribute) {
				list = append(list, a.Name+"="+attributeText(a, 8))
			}
			if s := strings.Join(list, ", "); s != c.attrs {
				t.Errorf("%s: attributes %s, want %s", c.name, s, c.attrs)
			}
		}
		if !proto.Equal(before, c.m) {
			t.Errorf("%s: the argument changed", c.name)
		}
		// The inputs are float32 whatever their role, so types are not looked at.
		r := CheckOptions{Types: func(Value) (TensorType, bool) { return TensorType{}, false }}.Check(got)
		if err := r.Err(); err != nil || got.Opset("") != c.to {
			t.Errorf("%s: opset %d, %v", c.name, got.Opset(""), err)
		}
	}
	if len(cases) != 22 {
		t.Errorf("%d cases", len(cases))
	}
	m := at(9, model("x", "", "y", node("Clip", "x", "y", AttrFloat("min", -1), AttrFloat("max", 6))))
	m.Graph.Input[0] = NewValueInfo("x", TypeOf(tensor.Float64, 2))
	got, err := Upgrade(m, 18)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{-1, 6} {
		x, err := TensorOf(got.Graph.Initializer[i])
		if err != nil || x.DType() != tensor.Float64 || x.Float64s()[0] != want {
			t.Errorf("bound %d of a double Clip is %v (%v)", i, x, err)
		}
	}
}

func TestUpgradeRefuses(t *testing.T) {
	cases := []struct {
		from, to int
		m        *Model
		want     string
	}{
		{18, 17, model("x", "", "y", node("Relu", "x", "y")), "no way back"},
		{18, 99, model("x", "", "y", node("Relu", "x", "y")), "can be asked for"},
		{6, 18, model("x", "", "y", node("Relu", "x", "y")), "7 is the oldest"},
		{9, 18, model("x", "", "y", node("Dropout", "x", "y,m")), `node "dropout:y,m" (Dropout): change at opset 10: its mask`},
		{9, 18, model("x", "a,b,c,d", "y", node("BatchNormalization", "x,a,b,c,d", "h,m,v,p,q"), node("Add", "h,q", "y")), "training form"},
		{8, 18, model("x", "a,b,c,d", "y", node("BatchNormalization", "x,a,b,c,d", "y", AttrInt("spatial", 0))), "spatial=0"},
		{20, 21, model("x", "a,b", "y", node("GroupNormalization", "x,a,b", "y", AttrInt("num_groups", 1))), "change of the operator at opset 21 is not supported"},
		{11, 18, model("x", "", "y", node("Ghost", "x", "y")), "no such operator"},
	}
	for _, c := range cases {
		if _, err := Upgrade(at(c.from, c.m), c.to); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d to %d: error %v, want one about %q", c.from, c.to, err, c.want)
		}
	}
}

func TestExportedModelsUpgrade(t *testing.T) {
	n := 0
	for name, m := range sorted.All(torchModels(t)) {
		for _, opset := range []int{18, 20, 22, 27} {
			c, err := Upgrade(m, opset)
			if err != nil {
				t.Errorf("%s to %d: %v", name, opset, err)
			} else if err := Check(c); err != nil {
				t.Errorf("%s to %d: %v", name, opset, err)
			}
			n++
		}
	}
	if n < 4*14 {
		t.Errorf("%d upgrades", n)
	}
}

// TestEveryChangeIsDecided lists, for every operator and every version after MinUpgrade, whether a
// bare node passes, is rewritten or is refused, so that a new table of schemas cannot bring a
// change unseen.
func TestEveryChangeIsDecided(t *testing.T) {
	var b strings.Builder
	for _, name := range schema.Names("") {
		for _, v := range schema.Versions("", name) {
			if v <= MinUpgrade || v > schema.MaxUnderstood {
				continue
			}
			old, ok := schema.Lookup("", name, v-1)
			if !ok || old.Deprecated {
				continue
			}
			n := &Node{OpType: name}
			for i := range old.MinInputs {
				n.Input = append(n.Input, string(rune('a'+i)))
			}
			for i := range max(old.MinOutputs, 1) {
				n.Output = append(n.Output, string(rune('p'+i)))
			}
			for _, a := range old.Attributes {
				if d := defaultAttribute(a); d != nil {
					n.Attribute = append(n.Attribute, d)
				} else {
					n.Attribute = append(n.Attribute, &Attribute{Name: a.Name})
				}
			}
			if portable(n, "", v-1, v) {
				continue
			}
			verdict := "refused"
			if upgradeRules[upgradeKey{name, v}] != nil {
				verdict = "rewritten"
			}
			b.WriteString(name + " " + itoa(v) + " " + verdict + "\n")
		}
	}
	golden(t, "opset_changes.txt", b.String())
	used := strings.Count(b.String(), "rewritten")
	if used != len(upgradeRules) {
		t.Errorf("%d changes are rewritten, the table has %d rules", used, len(upgradeRules))
	}
}

func itoa(v int) string { return Dim{Value: v}.String() }
