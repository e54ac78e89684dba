package curriculum

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
)

// TestOwnerDocument keeps the shipped scml_owner at what LitaAgent-HRL's document says: 30 to 50
// tournaments of 90 to 100 days, three to five worlds an iteration, of which the manager's are
// whole, and learning rates of which the executor's is below the manager's and the coordinator's a
// little above it.
func TestOwnerDocument(t *testing.T) {
	const name = "scml_owner.yaml"
	text, err := fs.ReadFile(configs.Shipped(), name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := configs.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Decode(doc, name)
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Demonstrations; d.Configs < 30 || d.Configs > 50 || fmt.Sprint(d.Days) != "[90 100]" || d.PerWorld != 0 {
		t.Errorf("demonstrations %+v", d.Worlds)
	}
	// The agents of a world of scml_threads are as many as a factory may have partners.
	agents := map[string]float64{"manager": 1, "executor": 16, "coordinator": 16}
	rates := map[string]float64{}
	for _, l := range c.on() {
		own, err := c.document(l)
		if err != nil {
			t.Fatal(err)
		}
		number := func(path string) (x float64) {
			t.Helper()
			s, ok := own.Lookup(path)
			if !ok {
				t.Fatalf("%s.experiment.%s is missing", l.name, path)
			}
			if err := s.Decode(&x); err != nil {
				t.Fatal(err)
			}
			return x
		}
		var days []float64
		if s, ok := own.Lookup("env.days"); !ok || s.Decode(&days) != nil || len(days) != 2 || days[0] != days[1] || days[0] < 90 || days[0] > 100 {
			t.Fatalf("%s.experiment.env.days is %v", l.name, days)
		}
		if worlds := number("train.num_envs") / agents[l.name]; worlds < 3 || worlds > 5 {
			t.Errorf("%s: %v worlds an iteration", l.name, worlds)
		}
		if steps := number("agent.n_steps"); l.name == "manager" && steps != days[0] {
			t.Errorf("the manager's iterations have %v days, and worlds %v", steps, days[0])
		}
		rates[l.name] = number("agent.learning_rate")
	}
	if r := rates; len(r) != 3 || r["executor"] >= r["manager"] || r["coordinator"] <= r["manager"] || r["coordinator"] > 2*r["manager"] {
		t.Errorf("learning rates %v", r)
	}
}
