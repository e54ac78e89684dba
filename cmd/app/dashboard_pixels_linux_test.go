package app

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/export/dashboard"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// choosing is a policy of four observed elements of a type, whose scores are called by a name:
// those of two actions of 2 and 3 options, the first of which is -1 for the first action.
func choosing(t *testing.T, of tensor.DType, by string) (*onnx.Model, *artifact.Golden) {
	t.Helper()
	b := onnx.NewBuilder("choosing", 18)
	dims := func(d tensor.DType, n ...onnx.Dim) onnx.TensorType {
		return onnx.TensorType{DType: d, Ranked: true, Dims: append([]onnx.Dim{onnx.Symbol("batch")}, n...)}
	}
	x := b.Input("observation", dims(of, onnx.Known(2), onnx.Known(2)))
	to := func(x onnx.Value, d tensor.DType) onnx.Value {
		return b.Op("Cast", []onnx.Value{x}, onnx.AttrInt("to", int(d)))
	}
	if of == tensor.Bool {
		x = b.Op("Not", []onnx.Value{x})
	}
	w := tensor.New(tensor.Float32, 4, 5)
	for i := range w.Float32s() {
		w.Float32s()[i] = float32(i%7-3) / 500
	}
	scores := b.Op("MatMul", []onnx.Value{b.Op("Reshape", []onnx.Value{to(x, tensor.Float32), b.Ints(-1, 4)}), b.Initializer("w", w)})
	var logs, actions []onnx.Value
	for i, at := range [][2]int{{0, 2}, {2, 5}} {
		part := b.Op("Slice", []onnx.Value{scores, b.Ints(at[0]), b.Ints(at[1]), b.Ints(1)})
		if by == agents.LogProbsOutput {
			part = b.Op("LogSoftmax", []onnx.Value{part}, onnx.AttrInt("axis", 1))
		}
		logs = append(logs, part)
		actions = append(actions, b.Op("Add", []onnx.Value{b.Op("ArgMax", []onnx.Value{part}, onnx.AttrInt("axis", 1)), b.Ints(i - 1)}))
	}
	b.Output(b.Rename(b.Op("Concat", actions, onnx.AttrInt("axis", 1)), agents.ActionOutput), dims(tensor.Int64, onnx.Known(2)))
	b.Output(b.Rename(b.Op("Concat", logs, onnx.AttrInt("axis", 1)), by), dims(tensor.Float32, onnx.Known(5)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	m.MetadataProps = append(m.MetadataProps, &onnx.MetadataProp{Key: bake.MetaPrefix + "heads", Value: "2,3"}, &onnx.MetadataProp{Key: artifact.SpacesKey, Value: `{"outputs":{"action":{"type":"multi_discrete","n":[2,3],"start":[-1,0]}}}`})
	in := tensor.New(of, 3, 2, 2)
	for i := range in.Bytes() {
		if in.Bytes()[i] = byte(40 * i % 251); of == tensor.Bool {
			in.Bytes()[i] = byte(i % 2)
		}
	}
	s, err := portable.New().Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := make([]*tensor.Tensor, 2)
	if err := s.Run(t.Context(), out, []*tensor.Tensor{in}); err != nil {
		t.Fatal(err)
	}
	g := &artifact.Golden{Inputs: map[string]*tensor.Tensor{"observation": in}, Outputs: map[string]*tensor.Tensor{}}
	for i, p := range s.Outputs() {
		g.Outputs[p.Name] = out[i]
	}
	return m, g
}

// A decision is shown of every policy that records one: of pixels with the gradient by them, of
// flags, of actions of several sizes whose numbers do not begin at 0, and of policies that take the
// greatest value. What cannot be explained is said, and is no failure of the dashboard.
func TestExplainKinds(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "artifacts")
	s, err := artifact.Open(store, artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	publish := func(name string, of tensor.DType, by string, edit func(*artifact.Draft)) string {
		t.Helper()
		m, g := choosing(t, of, by)
		text, err := onnx.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		d := artifact.Draft{Manifest: artifact.Manifest{Name: name, Kind: "policy"}, ModelBytes: text, Golden: g}
		if edit != nil {
			edit(&d)
		}
		v, err := s.Publish(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		return v.Digest
	}
	explain := func(version string, head int) *dashboard.Explanation {
		t.Helper()
		e, err := attribution(t.Context(), dashboard.Question{Store: store, Version: version, Row: 1, Head: head})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	pixels := explain(publish("pixels", tensor.Uint8, agents.LogProbsOutput, nil), 1)
	// The gradient of log p of an option by an element is its weight less the mean of the options'.
	h := pixels.Heads[1]
	for i, f := range pixels.Influences {
		e := -1
		for k := range 4 {
			if f.Label == fmt.Sprintf("observation[%d,%d]", k/2, k%2) {
				e = k
			}
		}
		weight := func(option int) float64 { return float64((5*e+2+option)%7-3) / 500 }
		want := weight(h.Chosen)
		for j, p := range h.Probabilities {
			want -= p * weight(j)
		}
		if e < 0 || math.Abs(f.Gradient-want) > 1e-6 {
			t.Errorf("influence %d: %+v, expected a gradient of %g", i, f, want)
		}
	}
	if len(pixels.Influences) != 4 || len(pixels.Heads) != 2 || len(h.Options) != 3 || pixels.Heads[0].Options[0] != "-1" || h.Options[0] != "0" {
		t.Errorf("%+v", pixels)
	}
	if flags := explain(publish("flags", tensor.Bool, agents.LogProbsOutput, nil), 0); len(flags.Influences) != 0 || len(flags.Notes) != 1 || len(flags.Heads[1].Probabilities) != 3 {
		t.Errorf("%+v", flags)
	}
	if values := explain(publish("values", tensor.Uint8, agents.QValuesOutput, nil), 0); len(values.Influences) != 4 || len(values.Heads[1].Scores) != 3 || values.Heads[0].Probabilities[values.Heads[0].Chosen] != 1 {
		t.Errorf("%+v", values)
	}
	none := publish("none", tensor.Uint8, agents.LogProbsOutput, func(d *artifact.Draft) { d.Golden = nil })
	address := serveBoard(t, dashboard.Options{Paths: []string{filepath.Dir(store)}, Explain: attribution})
	items := overviewOf(t, address).Items
	if len(items) != 1 {
		t.Fatalf("%+v", items)
	}
	for version, want := range sorted.All(map[string]int{none: http.StatusUnprocessableEntity, pixels.Version: http.StatusOK}) {
		r, err := http.Get(address + "data/explain?" + url.Values{"id": {items[0].ID}, "version": {version}}.Encode())
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("%s: status %d, expected %d: %v %s", version, r.StatusCode, want, err, text)
		}
	}
}
