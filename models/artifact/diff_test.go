package artifact

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func TestDiff(t *testing.T) {
	a, b := open(t, t.TempDir(), Options{Now: clock()}), open(t, t.TempDir(), Options{Now: clock()})
	d := draft("a", 1)
	d.Manifest.Metrics = map[string]float64{"same": 1, "sharpe": 0.5, "gone": 2}
	d.Manifest.Info = map[string]string{"note": "x"}
	seed := uint64(7)
	d.Manifest.Seed = &seed
	x := publish(t, a, d)
	same := publish(t, b, d)
	got, err := Diff(x, same)
	if err != nil || !got.Empty() || got.Equal != 2 {
		t.Fatalf("the same version in two stores: %+v, %v", got, err)
	}

	// Another bias, another shape of the weight, one more output name, other metrics and files.
	m := model(5, 3.5)
	m.Graph.Initializer = append(m.Graph.Initializer, onnx.ProtoOf("extra", tensor.Of([]float32{1, 2}, 2)))
	text, err := onnx.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	e := Draft{Manifest: Manifest{Name: "a", Kind: "agent", Metrics: map[string]float64{"same": 1, "sharpe": 0.75, "new": 3}, Parents: []string{x.Digest}, EnvStep: 10},
		ModelBytes: text, Files: []NewFile{{Title: "notes.txt", Data: []byte("notes")}}}
	y := publish(t, b, e)
	if got, err = Diff(x, y); err != nil || got.Empty() {
		t.Fatal(err)
	}
	fields := map[string]FieldChange{}
	for _, list := range [][]FieldChange{got.Fields, got.Ports, got.Files} {
		for _, c := range list {
			fields[c.Field] = c
		}
	}
	for field, want := range sorted.All(map[string][2]string{
		"kind": {"model", "agent"}, "env_step": {"", "10"}, "seed": {"7", ""}, "info.note": {"x", ""}, "parents": {"", `["` + x.Digest + `"]`},
		"notes.txt": {"", digest.FromString("notes").String()},
		"input x":   {`{"name":"x","dtype":"float32","shape":[-1,4],"axes":["N",""]}`, `{"name":"x","dtype":"float32","shape":[-1,5],"axes":["N",""]}`},
	}) {
		if c := fields[field]; c.A != want[0] || c.B != want[1] {
			t.Errorf("%s: %q and %q, want %q", field, c.A, c.B, want)
		}
	}
	if _, ok := fields["golden"]; !ok || fields[GoldenTitle].B != "" || len(fields) != 9 {
		t.Errorf("%d fields: %v", len(fields), fields)
	}
	if len(got.Metric) != 3 || got.Metric[0].Name != "gone" || got.Metric[0].B != nil || got.Metric[1].A != nil || *got.Metric[2].A != 0.5 || *got.Metric[2].B != 0.75 {
		t.Errorf("metrics %+v", got.Metric)
	}
	if len(got.Parameters) != 3 || got.Equal != 0 {
		t.Fatalf("parameters %+v", got.Parameters)
	}
	w, k, extra := got.Parameters[0], got.Parameters[1], got.Parameters[2]
	if w.Name != "w" || w.A != "float32[4 2]" || w.B != "float32[5 2]" || w.MaxAbs != nil || w.Changed != 0 {
		t.Errorf("w: %+v", w)
	}
	if k.Name != "k" || k.Changed != 1 || k.MaxAbs == nil || *k.MaxAbs != 2.5 {
		t.Errorf("k: %+v", k)
	}
	if extra.Name != "extra" || extra.A != "" || extra.B != "float32[2]" || len(got.Graph.Initializers) != 0 || len(got.Graph.Inputs) != 1 {
		t.Errorf("extra: %+v; graph %+v", extra, got.Graph)
	}
	back, err := Diff(y, x)
	if err != nil || len(back.Parameters) != 3 || back.Parameters[2].A != "float32[2]" || len(back.Fields) != len(got.Fields) {
		t.Errorf("the other way round: %+v, %v", back, err)
	}
	if _, err := json.Marshal(got); err != nil {
		t.Error(err)
	}

	rewrite(t, b.blobPath(digest.Digest(y.Files[0].Digest)), []byte("damage"))
	if _, err := Diff(x, y); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "compare") {
		t.Errorf("error %v", err)
	}
	if err := os.RemoveAll(a.Dir()); err != nil {
		t.Fatal(err)
	}
	if _, err := Diff(x, y); !errors.Is(err, ErrDamaged) {
		t.Errorf("error %v", err)
	}
}

func TestCompareParameters(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	cases := []struct {
		name    string
		x, y    *tensor.Tensor
		changed int
		worst   float64 // negative where there is none
	}{
		{"equal", tensor.Of([]float32{1, nan, inf}, 3), tensor.Of([]float32{1, nan, inf}, 3), 0, -1},
		{"zeros of both signs", tensor.Of([]float32{0}, 1), tensor.Of([]float32{float32(math.Copysign(0, -1))}, 1), 0, -1},
		{"float32", tensor.Of([]float32{1, 2, 3}, 3), tensor.Of([]float32{1, 1.5, 4}, 3), 2, 1},
		{"NaN", tensor.Of([]float32{1, 2}, 2), tensor.Of([]float32{nan, 3}, 2), 2, -1},
		{"infinities", tensor.Of([]float32{inf}, 1), tensor.Of([]float32{-inf}, 1), 1, -1},
		{"float64", tensor.Of([]float64{1}, 1), tensor.Of([]float64{1 + 1e-12}, 1), 1, 1e-12},
		{"int64", tensor.Of([]int64{5, 5}, 2), tensor.Of([]int64{2, 5}, 2), 1, 3},
		{"int32", tensor.Of([]int32{5}, 1), tensor.Of([]int32{-2}, 1), 1, 7},
		{"int8", tensor.Of([]int8{-128}, 1), tensor.Of([]int8{127}, 1), 1, 255},
		{"uint8", tensor.Of([]uint8{0}, 1), tensor.Of([]uint8{255}, 1), 1, 255},
		{"bool", tensor.Of([]bool{true, false}, 2), tensor.Of([]bool{true, true}, 2), 2, -1},
		{"strings", tensor.OfStrings([]string{"a", "b"}, 2), tensor.OfStrings([]string{"a", "c"}, 2), 1, -1},
		{"types", tensor.Of([]float32{1}, 1), tensor.Of([]float64{1}, 1), 0, -1},
		{"shapes", tensor.Of([]float32{1}, 1), tensor.Of([]float32{1}, 1, 1), 0, -1},
	}
	for _, c := range cases {
		p := compareParameters(c.x, c.y)
		got := -1.0
		if p.MaxAbs != nil {
			got = *p.MaxAbs
		}
		if p.Changed != c.changed || math.Abs(got-c.worst) > 1e-3*math.Abs(c.worst) {
			t.Errorf("%s: %d changed by up to %v, want %d by %v", c.name, p.Changed, got, c.changed, c.worst)
		}
	}
	for d, bits := range sorted.All(map[tensor.DType][2]uint16{tensor.Float16: {0x3c00, 0x4000}, tensor.BFloat16: {0x3f80, 0x4000}}) {
		x, y := tensor.New(d, 1), tensor.New(d, 1)
		tensor.Data[uint16](x)[0], tensor.Data[uint16](y)[0] = bits[0], bits[1]
		if p := compareParameters(x, y); p.Changed != 1 || p.MaxAbs == nil || *p.MaxAbs != 1 {
			t.Errorf("%v: %+v", d, p)
		}
	}
	if len(cases) != 14 {
		t.Errorf("%d cases", len(cases))
	}
}

// A run began with what another run had published in a store of its own.
func TestLineageAcrossStores(t *testing.T) {
	a, b, c := open(t, t.TempDir(), Options{}), open(t, t.TempDir(), Options{}), open(t, t.TempDir(), Options{})
	one := publish(t, a, draft("a", 1))
	two := publish(t, b, from("b", 2, one))
	three := publish(t, c, from("c", 3, two))
	line, err := c.Lineage("c", a, b)
	if err != nil || len(line) != 3 {
		t.Fatalf("%v, %v", line, err)
	}
	for i, want := range []struct{ digest, store string }{{three.Digest, c.Dir()}, {two.Digest, b.Dir()}, {one.Digest, a.Dir()}} {
		if g := line[i]; g.Digest != want.digest || g.Store != want.store || g.Version == nil || g.Depth != i {
			t.Errorf("ancestor %d: %+v", i, g)
		}
	}
	if line, err = c.Lineage("c", a); err != nil || len(line) != 2 || line[1].Version != nil || line[1].Store != "" {
		t.Errorf("without the store between: %v, %v", line, err)
	}
	rewrite(t, a.blobPath(digest.Digest(one.Digest)), nil)
	if _, err := c.Lineage("c", a, b); !errors.Is(err, ErrDamaged) {
		t.Errorf("error %v", err)
	}
}
