package configs

import (
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestMarshalRoundTrip(t *testing.T) {
	clip := math.Copysign(0, -1)
	agent, err := NewKinded("ppo", layer{64, "relu"})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := NewSection([]any{1, "x", nil})
	if err != nil {
		t.Fatal(err)
	}
	e := experiment{
		Seed: math.MaxUint64, LearningRate: 0.1, Gamma: 0.1, Steps: math.MinInt64, Small: -1,
		Name: "line one\nline two: \"x\" # no comment \u2028 \x00 é 🙂 ", Verbose: true,
		Layers: []layer{{1, "yes"}, {2, "0x10"}}, Range: [2]float64{1e300, math.Inf(-1)},
		Weights: map[string]float64{"": 1, "a b": 2, "null": 3, "z": 1e-9}, Buffer: 3 << 29, Clip: &clip,
		Extra: map[string]any{"f": 3.0, "i": int64(3), "l": []any{}, "m": map[string]any{}, "n": nil},
		Agent: agent, Raw: raw,
		limits: limits{Timeout: 90 * time.Second},
	}
	text, err := Marshal(&e)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := Parse("effective.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	back := defaults()
	// The values above are not all valid; Decode has filled in everything before it validates.
	_ = doc.Decode(&back)
	again, err := Marshal(&back)
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(text) {
		t.Errorf("second encoding differs:\n%s\nfirst:\n%s", again, text)
	}
	back.Agent, back.Raw, back.Hidden = e.Agent, e.Raw, 0
	if !reflect.DeepEqual(back, e) {
		t.Errorf("decoded\n%#v\nwant\n%#v\n%s", back, e, text)
	}
	if math.Signbit(*back.Clip) != math.Signbit(clip) {
		t.Error("the sign of zero was lost")
	}
	d1, _ := Digest(e)
	d2, _ := Digest(&back)
	if d1 != d2 || len(d1) != 64 {
		t.Errorf("digests %s and %s", d1, d2)
	}
}

func TestMarshalFloatsRoundTripExactly(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	type pair struct {
		A float64
		B float32
	}
	compared := 0
	for range 2000 {
		p := pair{math.Float64frombits(r.Uint64()), math.Float32frombits(r.Uint32())}
		if p.A != p.A || p.B != p.B {
			continue
		}
		text, err := Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Parse("p.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		var back pair
		if err := doc.Decode(&back); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if back != p {
			t.Fatalf("%v became %v through\n%s", p, back, text)
		}
		compared++
	}
	if compared < 1900 {
		t.Errorf("only %d pairs compared", compared)
	}
}

func TestMarshalRefuses(t *testing.T) {
	type node struct{ Next *node }
	loop := &node{}
	loop.Next = loop
	cases := map[string]any{
		"cycle":         loop,
		"channel":       struct{ C chan int }{},
		"int keys":      map[int]int{1: 1},
		"invalid UTF-8": struct{ S string }{"\xff"},
	}
	for name, v := range sorted.All(cases) {
		if _, err := Marshal(v); err == nil || !strings.HasPrefix(err.Error(), "encode config: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestDiff(t *testing.T) {
	a := defaults()
	a.Layers = []layer{{1, "relu"}, {2, "tanh"}}
	b := a
	b.Gamma = 0.9
	b.Layers = []layer{{1, "gelu"}}
	b.Weights = map[string]float64{"x": 1}
	changes, err := Diff(a, &b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, c.String())
	}
	want := []string{
		"gamma: 0.99 -> 0.9",
		"layers[0].activation: relu -> gelu",
		"layers[1]: {width: 2, activation: tanh} -> absent",
		"weights: null -> {x: 1.0}",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	x, _ := Parse("x", []byte("lr: 3e-4\nn: 1\nb: True\nz: ~"))
	y, _ := Parse("y", []byte("lr: 0.0003\nn: 1.0\nb: true\nz: null"))
	if changes, err := Diff(x, y); err != nil || len(changes) != 0 {
		t.Errorf("equal documents differ: %v %v", changes, err)
	}
}

func TestBytes(t *testing.T) {
	cases := map[string]Bytes{"512": 512, "64KiB": 64 << 10, "1.5GiB": 3 << 29, "10MB": 10e6, "3 kB": 3000, "7B": 7, "2TiB": 2 << 40}
	for text, want := range sorted.All(cases) {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%s: %d, %v; want %d", text, b, err, want)
		}
		var again Bytes
		if err := again.UnmarshalText([]byte(b.String())); err != nil || again != b {
			t.Errorf("%s is written as %s and read as %d", text, b, again)
		}
	}
	for _, text := range []string{"", "-1", "x", "0.5", "1e30", "NaN", "1 PiB"} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was accepted as %d", text, b)
		}
	}
}

func TestSnakeCase(t *testing.T) {
	cases := map[string]string{"LR": "lr", "NSteps": "n_steps", "LearningRate": "learning_rate", "GAELambda": "gae_lambda", "X": "x", "Beta1": "beta1"}
	for name, want := range sorted.All(cases) {
		if got := snakeCase(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Every shipped experiment parses, and writing it and reading it again gives the same document.
func TestShippedExperiments(t *testing.T) {
	checkExperiments(t, Shipped(), experimentFiles(t))
}

func experimentFiles(t *testing.T) int {
	files, err := filepath.Glob("experiments/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(Shipped(), "README.md"); err != nil {
		t.Fatalf("the folder is not embedded: %v", err)
	}
	return len(files)
}

func TestExperimentCheckSeesFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "one.yaml"), []byte("kind: fit\nlr: 3e-4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	checkExperiments(t, os.DirFS(dir), 1)
}

func checkExperiments(t *testing.T, files fs.FS, want int) {
	t.Helper()
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != want {
		t.Fatalf("%d experiments embedded, %d in the folder", len(names), want)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := Parse(name, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := Parse(name, doc.Bytes())
		if err != nil {
			t.Errorf("%s written out: %v", name, err)
			continue
		}
		if changes, err := Diff(doc, again); err != nil || len(changes) > 0 {
			t.Errorf("%s changes when written out: %v %v", name, changes, err)
		}
	}
}

// A key that came later and is not set changes nothing in what is written.
func TestOmitZero(t *testing.T) {
	type late struct {
		Name string `yaml:"name,omitzero"`
		Part struct {
			Size int `yaml:"size,omitzero"`
		} `yaml:"part,omitzero"`
	}
	type document struct {
		First int
		Late  late `yaml:",inline"`
	}
	var d document
	d.First = 3
	for _, c := range []struct {
		change func()
		want   string
	}{{func() {}, "first: 3\n"}, {func() { d.Late.Name = "x" }, "first: 3\nname: x\n"}, {func() { d.Late.Part.Size = 2 }, "first: 3\nname: x\npart:\n  size: 2\n"}} {
		c.change()
		if text, err := Marshal(d); err != nil || string(text) != c.want {
			t.Errorf("%q, expected %q: %v", text, c.want, err)
		}
	}
}
