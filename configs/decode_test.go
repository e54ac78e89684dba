package configs

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

type layer struct {
	Width      int    `yaml:"width"`
	Activation string `yaml:"activation"`
}

func (l layer) Validate() error {
	var p Problems
	p.Positive("width", l.Width)
	p.OneOf("activation", l.Activation, "relu", "tanh", "gelu")
	return p.Err()
}

type limits struct {
	MaxSteps uint32
	Timeout  time.Duration
}

type experiment struct {
	Seed         uint64             `yaml:"seed"`
	LearningRate float32            `yaml:"learning_rate"`
	Gamma        float64            `yaml:"gamma"`
	Steps        int64              `yaml:"steps"`
	Small        int8               `yaml:"small"`
	Name         string             `yaml:"name"`
	Verbose      bool               `yaml:"verbose"`
	Layers       []layer            `yaml:"layers"`
	Range        [2]float64         `yaml:"range"`
	Weights      map[string]float64 `yaml:"weights"`
	Buffer       Bytes              `yaml:"buffer"`
	Clip         *float64           `yaml:"clip"`
	Extra        any                `yaml:"extra"`
	Agent        Kinded             `yaml:"agent"`
	Raw          Section            `yaml:"raw"`
	limits
	Hidden int `yaml:"-"`
}

func (e experiment) Validate() error {
	var p Problems
	p.Positive("learning_rate", e.LearningRate)
	p.InRange("gamma", e.Gamma, 0, 1)
	return p.Err()
}

func defaults() experiment {
	return experiment{LearningRate: 3e-4, Gamma: 0.99, Name: "run", Range: [2]float64{-1, 1}, Hidden: 7,
		limits: limits{Timeout: time.Minute}}
}

func mustDecode(t *testing.T, text string) experiment {
	t.Helper()
	doc, err := Parse("run.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	e := defaults()
	if err := doc.Decode(&e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestDecodeReadsEveryKind(t *testing.T) {
	e := mustDecode(t, `
# A comment.
seed: 0xff
steps: 1e6
learning_rate: 1e-3
gamma: 1
small: -128
name: 'quoted: "text"'
verbose: true
layers: [{width: 64, activation: relu}, {width: 32, activation: tanh}]
range: [-2, .inf]
weights: {b: 2, a: 1.5}
buffer: 1.5GiB
clip: 0.5
extra: {list: [1, 2.5, yes, null], big: 18446744073709551615}
max_steps: 1_000
timeout: 1m30s
agent:
  kind: ppo
  clip_range: 0.2
raw: [1, two]
`)
	clip := 0.5
	want := defaults()
	want.Seed, want.Steps, want.LearningRate, want.Gamma, want.Small = 255, 1_000_000, 1e-3, 1, -128
	want.Name, want.Verbose = `quoted: "text"`, true
	want.Layers = []layer{{64, "relu"}, {32, "tanh"}}
	want.Range = [2]float64{-2, math.Inf(1)}
	want.Weights = map[string]float64{"a": 1.5, "b": 2}
	want.Buffer, want.Clip = 3<<29, &clip
	want.Extra = map[string]any{"list": []any{int64(1), 2.5, "yes", nil}, "big": uint64(math.MaxUint64)}
	want.MaxSteps, want.Timeout = 1000, 90*time.Second
	want.Agent, want.Raw = e.Agent, e.Raw
	if !reflect.DeepEqual(e, want) {
		t.Errorf("decoded\n%+v\nwant\n%+v", e, want)
	}
	if e.Agent.Kind != "ppo" || e.Agent.Path() != "agent" || e.Agent.Position() != "run.yaml:19:3" {
		t.Errorf("agent: kind %q path %q position %q", e.Agent.Kind, e.Agent.Path(), e.Agent.Position())
	}
	var raw []any
	if err := e.Raw.Decode(&raw); err != nil || !reflect.DeepEqual(raw, []any{int64(1), "two"}) {
		t.Errorf("raw: %v, %v", raw, err)
	}
}

// TestTags: the tags of YAML's core schema say what a plain scalar is.
func TestTags(t *testing.T) {
	for _, c := range []struct{ text, value, err string }{
		{"!!float 1e6", "1e6", ""}, {"!!float 3", "3", ""}, {"!!int 3", "3", ""}, {"!!str 3", `"3"`, ""}, {"!!bool True", "True", ""}, {"!!int 1.5", "", "expected an integer after !!int"},
		{"!!float a", "", "after !!float"}, {"!!float [1]", "", "syntax: "}, {"!!str", `""`, ""},
	} {
		doc, err := Parse("a.yaml", []byte("v: "+c.text+"\n"))
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", c.text, err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.text, err)
		case strings.TrimSpace(string(doc.Bytes())) != "v: "+c.value:
			t.Errorf("%s: %s", c.text, doc.Bytes())
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	cases := []struct{ text, want string }{
		{"steps: 1.5", "run.yaml:1:8: steps: 1.5 is not an integer"},
		{"steps: 010", "run.yaml:1:8: steps: 010 is 8-based in YAML 1.1"},
		{"steps: 9223372036854775808", "run.yaml:1:8: steps: 9223372036854775808 is out of range for int64"},
		{"steps: 1e300", "run.yaml:1:8: steps: 1e300 is out of range"},
		{"steps: 99999999999999999999999", "steps: 99999999999999999999999 is out of range"},
		{"small: 128", "run.yaml:1:8: small: 128 is out of range for int8"},
		{"small: -129", "small: -129 is out of range for int8"},
		{"seed: -1", "run.yaml:1:7: seed: -1 is out of range for uint64"},
		{"seed: '3'", `seed: expected an integer, found the string "3": drop the quotes`},
		{"seed: three", `seed: expected an integer, found the string "three"`},
		{"seed: .nan", "seed: .nan is out of range"},
		{"gamma: true", "gamma: expected a number, found a bool true"},
		{"gamma: 9007199254740993", "gamma: 9007199254740993 is an integer that float64 cannot represent"},
		{"gamma: 1e400", "gamma: 1e400 is out of range"},
		{"gamma: 1e-400", "gamma: 1e-400 is out of range"},
		{"gamma:", "gamma: expected a number, found null"},
		{"learning_rate: 0.3333333333", "learning_rate: 0.3333333333 changes in a float32: the nearest value is 0.33333334"},
		{"learning_rate: 1e39", "learning_rate: 1e39 is out of range"},
		{"learning_rate: 16777217", "learning_rate: 16777217 is an integer that float32 cannot represent"},
		{"verbose: yes", `verbose: expected a bool, found the string "yes": write true or false`},
		{"verbose: 1", "verbose: expected a bool, found an integer 1"},
		{"name: 12", "name: expected a string, found an integer 12: put it in quotes"},
		{"name: [a]", "name: expected a string, found a list"},
		{"layers: {a: 1}", "layers: expected a list, found a mapping"},
		{"layers: [1]", "run.yaml:1:10: layers[0]: expected a mapping, found an integer 1"},
		{"layers:\n- width: 1\n  activation: relu\n  wdth: 2", `run.yaml:4:3: layers[0].wdth: unknown key "wdth"; did you mean "width"?`},
		{"range: [1]", "run.yaml:1:8: range: expected a list of 2 values, found 1"},
		{"weights: 3", "weights: expected a mapping, found an integer 3"},
		{"weights: {a.b: x}", `weights["a.b"]: expected a number`},
		{"buffer: many", `buffer: expected a size such as 512, 64KiB or 1.5GiB, found "many"`},
		{"buffer: 1.5", "buffer: expected a size"},
		{"buffer: [1]", "buffer: expected a string, found a list"},
		{"timeout: 90", "timeout: expected a duration such as 1m30s, found an integer 90"},
		{"timeout: soon", `timeout: expected a duration such as 1m30s, found "soon"`},
		{"gama: 0.9", `run.yaml:1:1: gama: unknown key "gama"; did you mean "gamma"?`},
		{"unrelated: 1", `unknown key "unrelated"; the nearest of 17 are name, seed, agent`},
		{"Hidden: 1", `unknown key "Hidden"`},
		{"gamma: 0.9\nname: x\ngamma: 0.8", `run.yaml:3:1: gamma: key "gamma" given twice; first on line 1`},
		{"{gamma: 1, gamma: 2}", `run.yaml:1:12: gamma: key "gamma" given twice`},
		{"gamma: 1\n---\ngamma: 0.5", "run.yaml:3:1: a second YAML document"},
		{"- 1", "run.yaml:1:1: expected a mapping at the top of the file, found a list"},
		{"just text", "expected a mapping at the top of the file, found a string"},
		{"gamma: !!binary aGk=", "gamma: tag !!binary is not supported"},
		{"gamma: *missing", "missing"},
		{"gamma: [1", "run.yaml:1:8: syntax:"},
		{"gamma: 'x", "run.yaml:1:8: syntax:"},
		{"\tgamma: 1", "run.yaml:1:"},
		{"a: \xff", "run.yaml: file is not valid UTF-8"},
		{"gamma: 2", "run.yaml:1:8: gamma: must be between 0 and 1, is 2"},
		{"layers: [{width: 0, activation: rely}]", `layers[0].activation: must be one of relu, tanh, gelu, is "rely"; did you mean "relu"?`},
		{"agent: ppo", `agent: expected a mapping with the key kind, found the string "ppo"`},
		{"agent: {clip: 1}", "agent: the key kind is missing"},
		{"agent: {kind: 3}", "run.yaml:1:15: agent.kind: expected a name, found an integer 3"},
		{"<<: 3", "<< takes a mapping or a list of mappings, found an integer"},
		{"null: 1", "run.yaml:1:1: a key must be plain text, found null"},
	}
	refused := 0
	for _, c := range cases {
		doc, err := Parse("run.yaml", []byte(c.text))
		if err == nil {
			e := defaults()
			err = doc.Decode(&e)
		}
		if err == nil {
			t.Errorf("%q was accepted", c.text)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n%v\nwant %q", c.text, err, c.want)
			continue
		}
		refused++
	}
	if refused != 55 {
		t.Errorf("%d of 55 documents refused as they should be", refused)
	}
}

func TestDecodeReportsAllProblemsWithExcerpt(t *testing.T) {
	doc, err := Parse("run.yaml", []byte("gamma: high\nlayers:\n  - width: 64\n    activaton: relu\nsteps: 2.5\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := defaults()
	err = doc.Decode(&e)
	want := `run.yaml:1:8: gamma: expected a number, found the string "high"
    1 | gamma: high
      |        ^
run.yaml:4:5: layers[0].activaton: unknown key "activaton"; did you mean "activation"?
    4 |     activaton: relu
      |     ^
run.yaml:5:8: steps: 2.5 is not an integer
    5 | steps: 2.5
      |        ^`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	var first *Error
	if !errors.As(err, &first) || first.Path != "gamma" || first.Line != 1 || first.Column != 8 {
		t.Errorf("first problem: %+v", first)
	}
}

func TestValidateReportsAllProblems(t *testing.T) {
	e := defaults()
	e.LearningRate = -1
	e.Gamma = math.NaN()
	e.Layers = []layer{{0, "relu"}, {1, "none"}}
	err := Validate(&e)
	var invalid Invalid
	if !errors.As(err, &invalid) {
		t.Fatalf("error %v", err)
	}
	want := Invalid{
		{"learning_rate", "must be positive, is -1"},
		{"gamma", "must be between 0 and 1, is NaN"},
		{"layers[0].width", "must be positive, is 0"},
		{"layers[1].activation", `must be one of relu, tanh, gelu, is "none"`},
	}
	if !reflect.DeepEqual(invalid, want) {
		t.Errorf("got\n%v\nwant\n%v", invalid, want)
	}
	// A default that is invalid has no place in the file, but the file is named.
	doc, _ := Parse("run.yaml", []byte("seed: 1"))
	if err := doc.Decode(&e); err == nil || !strings.HasPrefix(err.Error(), "run.yaml: learning_rate: must be positive") {
		t.Errorf("error %v", err)
	}
}

func TestProblemsHelpers(t *testing.T) {
	var p Problems
	p.Positive("a", 1)
	p.NonNegative("b", 0.0)
	p.AtLeast("c", uint8(3), 3)
	p.InRange("d", float32(0.5), 0, 1)
	p.NotEmpty("e", "x")
	p.OneOf("f", "x", "x", "y")
	p.Join("g", nil)
	if err := p.Err(); err != nil {
		t.Fatalf("acceptable values: %v", err)
	}
	p.Positive("a", math.Inf(1))
	p.NonNegative("b", -0.5)
	p.AtLeast("c", 2, 3)
	p.InRange("d", 2, 0, 1)
	p.NotEmpty("e", []int(nil))
	p.OneOf("f", "z", "x", "y")
	p.Join("g", Invalid{{"[1].h", "bad"}})
	p.Join("i", errors.New("plain"))
	want := []string{"a", "b", "c", "d", "e", "f", "g[1].h", "i"}
	var got []string
	for _, q := range p.Err().(Invalid) {
		got = append(got, q.Path)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("problems at %v, want %v", got, want)
	}
}

func TestDefaultsSurviveAndAreNotShared(t *testing.T) {
	shared := 1.0
	e := defaults()
	e.Clip = &shared
	e.Weights = map[string]float64{"old": 1}
	doc, err := Parse("run.yaml", []byte("clip: 2\nweights: {new: 2}\ntimeout: 5s"))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Decode(&e); err != nil {
		t.Fatal(err)
	}
	if *e.Clip != 2 || shared != 1 {
		t.Errorf("clip %v, shared default %v; want 2 and 1", *e.Clip, shared)
	}
	if !reflect.DeepEqual(e.Weights, map[string]float64{"new": 2}) || e.Gamma != 0.99 || e.Timeout != 5*time.Second {
		t.Errorf("decoded %+v", e)
	}
}

// table is an element that has defaults.
type table struct{ Rows, Columns int }

// SetDefaults implements Defaulter.
func (t *table) SetDefaults() { *t = table{3, 4} }

func TestElementsHaveDefaults(t *testing.T) {
	var got struct {
		List  []table
		Named map[string]table
		One   *table
	}
	doc, err := Parse("run.yaml", []byte("list: [{rows: 1}, {}]\nnamed: {a: {columns: 2}}\none: {rows: 5}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if want := []table{{1, 4}, {3, 4}}; !reflect.DeepEqual(got.List, want) || got.Named["a"] != (table{3, 2}) || *got.One != (table{5, 4}) {
		t.Errorf("decoded %+v", got)
	}
}

func TestAnchorsAndMerge(t *testing.T) {
	doc, err := Parse("a.yaml", []byte("base: &b {width: 8, activation: relu}\none:\n  <<: *b\n  width: 9\ntwo: *b\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]layer
	if err := doc.Decode(&got); err != nil {
		t.Fatal(err)
	}
	want := map[string]layer{"base": {8, "relu"}, "one": {9, "relu"}, "two": {8, "relu"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHostileDocumentsAreRefused(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 10; i++ {
		p := string(rune('0' + i - 1))
		bomb += "a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " [" + strings.Repeat("*a"+p+",", 9) + "*a" + p + "]\n"
	}
	deepBlock := ""
	for i := range 3000 {
		deepBlock += strings.Repeat(" ", i) + "a:\n"
		if len(deepBlock) > 500_000 {
			break
		}
	}
	many := func(format string) string {
		var keys strings.Builder
		for i := range maxKeys + 1 {
			fmt.Fprintf(&keys, format, i)
		}
		return keys.String()
	}
	cases := map[string]string{
		"many keys":      many("k%d: 1\n"),
		"with values":    many("k%d:\n  a: 1\n"),
		"in a sequence":  "a:\n- " + strings.ReplaceAll(many("k%d: 1\n"), "\n", "\n  "),
		"in braces":      "a: {" + many("k%d: 1, ") + "}",
		"with questions": many("? k%d\n: 1\n"),
		"alias bomb":     bomb,
		"deep flow":      "a: " + strings.Repeat("[", 100_000),
		"deep block":     deepBlock,
		"deep dashes":    strings.Repeat("- ", 100_000) + "x",
		"deep questions": strings.Repeat("? ", 100_000) + "x",
		"many tags":      strings.Repeat("!!a ", 10_000) + "x",
		"large":          "a: " + strings.Repeat("x", maxBytes),
		"many values":    "a: [" + strings.Repeat("1,", maxNodes+1) + "1]",
		"self reference": "a: &a [*a]",
	}
	for name, text := range sorted.All(cases) {
		if _, err := Parse("h.yaml", []byte(text)); err == nil {
			t.Errorf("%s was accepted", name)
		} else if strings.Contains(text, "k8000") && !strings.Contains(err.Error(), "more than 8000 keys") {
			t.Errorf("%s: %v", name, err)
		} else if len(err.Error()) > 2000 {
			t.Errorf("%s: error of %d bytes", name, len(err.Error()))
		}
	}
}

// TestManySmallMappings: a document, such as a study's plan, may have many keys in all.
func TestManySmallMappings(t *testing.T) {
	var blocks, items, braces strings.Builder
	const n = 4000
	for i := range n {
		fmt.Fprintf(&blocks, "k%d:\n  a: 1\n  b: {c: 2}\n", i)
		fmt.Fprintf(&items, "  - a: 1\n    b: 2\n    c: 3\n")
		fmt.Fprintf(&braces, "{a: 1, b: 2, c: 3}, ")
	}
	for _, text := range []string{blocks.String(), "list:\n" + items.String(), "list: [" + braces.String() + "]"} {
		if _, err := Parse("h.yaml", []byte(text)); err != nil {
			t.Errorf("%v: %.60s", err, text)
		}
	}
}

func TestSectionErrorsKeepPositions(t *testing.T) {
	e := mustDecode(t, "name: x\nagent:\n  kind: ppo\n  width: many\n  activation: relu\n")
	var l layer
	err := e.Agent.Decode(&l)
	if err == nil || !strings.HasPrefix(err.Error(), `run.yaml:4:10: agent.width: expected an integer, found the string "many"`) {
		t.Errorf("decode: %v", err)
	}
	if err := e.Agent.Errorf("width", "too %s", "wide"); !strings.HasPrefix(err.Error(), "run.yaml:4:10: agent.width: too wide") {
		t.Errorf("Errorf: %v", err)
	}
	if err := e.Agent.Unknown([]string{"a2c", "sac"}); !strings.HasPrefix(err.Error(), `run.yaml:3:9: agent.kind: unknown kind "ppo"; expected a2c, sac`) {
		t.Errorf("Unknown: %v", err)
	}
	if got := e.Agent.Keys(); !reflect.DeepEqual(got, []string{"width", "activation"}) {
		t.Errorf("keys %v", got)
	}
	if at, ok := e.Agent.Lookup("width"); !ok || at.Path() != "agent.width" || at.Position() != "run.yaml:4:10" {
		t.Errorf("width lies at %q, %s", at.Path(), at.Position())
	}
	if at, ok := e.Agent.Lookup("depth"); ok || !at.IsZero() {
		t.Errorf("depth lies at %q", at.Path())
	}
	var absent Section
	if at, ok := absent.Lookup("width"); ok || !at.IsZero() {
		t.Errorf("width of no section lies at %q", at.Path())
	}
	l = layer{1, "relu"}
	if err := absent.Decode(&l); err != nil || l.Width != 1 {
		t.Errorf("absent section: %v %v", l, err)
	}
	if err := absent.Decode(&layer{}); err == nil {
		t.Error("absent section with invalid defaults was accepted")
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(path, []byte("\ufeffgamma: 0.5\r\nname: a\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := defaults()
	doc, err := Load(path, []string{"name=b"}, &e)
	if err != nil {
		t.Fatal(err)
	}
	if e.Gamma != 0.5 || e.Name != "b" || string(doc.Bytes()) != "gamma: 0.5\nname: b\n" {
		t.Errorf("loaded %+v\n%s", e, doc.Bytes())
	}
	if _, err := Load(path+"x", nil, &e); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}
