package configs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// clip is a part of renamed that former flat keys have gone to.
type clip struct {
	Low  float64 `yaml:"low"`
	High float64 `yaml:"high"`
}

// renamed is a configuration with former keys, directly and by embedding.
type renamed struct {
	shared `yaml:",inline"`
	Steps  int  `yaml:"steps"`
	Clip   clip `yaml:"clip"`
}

type shared struct {
	Rate float64 `yaml:"rate"`
}

func (renamed) Renamed() map[string]string {
	return map[string]string{"lr": "rate", "rounds": "steps", "clip_high": "clip.high"}
}

func (c renamed) Validate() error {
	var p configs.Problems
	p.AtLeast("steps", c.Steps, 1)
	return p.Err()
}

type holder struct {
	Agent configs.Kinded     `yaml:"agent"`
	List  []renamed          `yaml:"list"`
	Map   map[string]renamed `yaml:"map"`
}

func agentOf(t *testing.T, text string, sets ...string) (renamed, configs.Kinded, error) {
	t.Helper()
	doc, err := configs.Parse("f.yaml", []byte(text))
	if err == nil {
		err = doc.Set(sets...)
	}
	if err != nil {
		t.Fatal(err)
	}
	var h holder
	if err := doc.Clone().Decode(&h); err != nil {
		return renamed{}, h.Agent, err
	}
	c := renamed{Steps: 1}
	return c, h.Agent, func() error { err := h.Agent.Decode(&c); return err }()
}

func TestFormerKeys(t *testing.T) {
	doc, err := configs.Parse("f.yaml", []byte("agent:\n  kind: x\n  lr: 0.5\n  rounds: 7\n  clip_high: 2\n  clip: {low: 1}\nlist:\n  - {rounds: 3}\nmap: {a: {rounds: 4}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var h holder
	if err := doc.Decode(&h); err != nil {
		t.Fatal(err)
	}
	var c renamed
	for range 2 {
		if err := h.Agent.Decode(&c); err != nil {
			t.Fatal(err)
		}
	}
	if want := (renamed{shared{0.5}, 7, clip{1, 2}}); c != want || h.List[0].Steps != 3 || h.Map["a"].Steps != 4 {
		t.Errorf("decoded %v, %v, %v", c, h.List, h.Map)
	}
	want := []string{
		"f.yaml:8:6: list[0].rounds is called list[0].steps now",
		"f.yaml:9:11: map.a.rounds is called map.a.steps now",
		"f.yaml:3:3: agent.lr is called agent.rate now",
		"f.yaml:4:3: agent.rounds is called agent.steps now",
		"f.yaml:5:3: agent.clip_high is called agent.clip.high now",
	}
	if got := h.Agent.Notes(); !slices.Equal(got, want) {
		t.Errorf("told\n%s", strings.Join(got, "\n"))
	}
	text, err := configs.Marshal(c)
	if err != nil || strings.Contains(string(text), "rounds") || !strings.Contains(string(text), "steps: 7") {
		t.Errorf("written as %s, %v", text, err)
	}
}

// TestFormerKeysOfEdits assigns to one name what a document has, or another assignment gives, under
// the other: the last one counts.
func TestFormerKeysOfEdits(t *testing.T) {
	for _, c := range []struct {
		text string
		sets []string
		want int
	}{
		{"agent: {kind: x, rounds: 7}", []string{"agent.steps=8"}, 8},
		{"agent: {kind: x, steps: 7}", []string{"agent.rounds=8"}, 8},
		{"agent: {kind: x}", []string{"agent.rounds=8", "agent.steps=9"}, 9},
		{"agent: {kind: x}", []string{"agent.steps=8", "agent.rounds=9"}, 9},
		{"agent: {kind: x, rounds: 7}", []string{"agent={kind: x, steps: 8}", "agent.rounds=9"}, 9},
	} {
		if got, _, err := agentOf(t, c.text, c.sets...); err != nil || got.Steps != c.want {
			t.Errorf("%s with %q: %d, %v", c.text, c.sets, got.Steps, err)
		}
	}
}

func TestFormerKeysBadInput(t *testing.T) {
	for text, want := range sorted.All(map[string]string{
		"agent: {kind: x, rounds: 7, steps: 8}":           "f.yaml:1:18: agent.rounds: is called agent.steps now, which is given too (f.yaml:1:36): leave one of them out",
		"agent: {kind: x, clip_high: 7, clip: {high: 1}}": "agent.clip_high: is called agent.clip.high now, which is given too",
		"agent: {kind: x, clip_high: 7, clip: 3}":         "agent.clip",
		"agent: {kind: x, rounds: 0}":                     "f.yaml:1:26: agent.steps: must be at least 1",
		"agent: {kind: x, rounds: many}":                  "f.yaml:1:26: agent.steps: expected an integer",
		"agent: {kind: x, ruonds: 1}":                     `unknown key "ruonds"`,
	}) {
		if _, _, err := agentOf(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
