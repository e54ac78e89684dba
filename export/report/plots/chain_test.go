package plots

import (
	"strings"
	"testing"
)

// TestChain draws a chain, and refuses what has no days, no stages, or lines of two lengths.
func TestChain(t *testing.T) {
	whole := Chain{
		Name: "chain", Alt: "a chain", FlowTitle: "Units",
		Panels: []Panel{{Title: "Price", Lines: []Line{{Name: "raw", Y: []float64{1, 2, 3}}}}, {Title: "Stock", Lines: []Line{{Name: "a", Y: []float64{0, 5, 9}}, {Name: "b", Y: []float64{0, 1, 1}}}}},
		Stages: [][]string{{"source"}, {"a", "b"}, {"sink"}},
		Flows:  []Flow{{Stage: 0, To: 0, Amount: 4}, {Stage: 0, To: 1, Amount: 2}, {Stage: 1, From: 1, Amount: 2}},
	}
	f, err := whole.Draw()
	if err != nil {
		t.Fatal(err)
	}
	text, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"source", "sink", "Units", "Price", "Stock", "day"} {
		if !strings.Contains(string(text), ">"+want+"<") {
			t.Errorf("the picture does not say %s", want)
		}
	}
	in, out, total := whole.loads()
	if in[1][0] != 4 || out[1][1] != 2 || total != 6 {
		t.Errorf("in %v, out %v, total %v", in, out, total)
	}
	for i, change := range []func(c *Chain){
		func(c *Chain) { c.Panels = nil },
		func(c *Chain) { c.Stages = c.Stages[:1] },
		func(c *Chain) { c.Panels = []Panel{{Lines: []Line{{Y: []float64{1}}, {Y: []float64{1, 2}}}}} },
		func(c *Chain) { c.Flows = []Flow{{Amount: -1}} },
	} {
		c := whole
		change(&c)
		if _, err := c.Draw(); err == nil || !strings.Contains(err.Error(), "draw chain") {
			t.Errorf("case %d: %v", i, err)
		}
	}
}
