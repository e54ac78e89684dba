package ablate

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func names(p *Plan) []string {
	var list []string
	for _, c := range p.Cells {
		list = append(list, c.Name)
	}
	return list
}

func TestOneFactorAtATime(t *testing.T) {
	p := mustPlan(t, toyStudy, toyBase, false)
	want := []string{"base", "window=30", "window=60", "trades=10/30", "encoder=Transformer"}
	if got := names(p); !slices.Equal(got, want) {
		t.Errorf("cells %q, expected %q", got, want)
	}
	if p.Cells[3].Dir != "trades=10-30" || !slices.Equal(p.Seeds, []uint64{1, 2, 3}) {
		t.Errorf("folder %q, seeds %v", p.Cells[3].Dir, p.Seeds)
	}
	shapes := map[string]bool{}
	for _, c := range p.Cells {
		shapes[c.Shape] = true
		if c.Config.Train.Threads != 1 {
			t.Errorf("%s: %d threads", c.Name, c.Config.Train.Threads)
		}
	}
	if len(shapes) != 4 {
		t.Errorf("%d shapes, expected 4: trade fractions cost nothing", len(shapes))
	}
}

func TestFullGridHasTheBaseOnce(t *testing.T) {
	p := mustPlan(t, toyStudy, toyBase, true)
	if len(p.Cells) != 3*2*2 {
		t.Fatalf("%d cells, expected 12: %q", len(p.Cells), names(p))
	}
	if n := names(p); n[0] != Base || slices.Index(n[1:], Base) >= 0 || n[len(n)-1] != "window=60,trades=10/30,encoder=Transformer" {
		t.Errorf("cells %q", n)
	}
	dirs := map[string]bool{}
	for _, c := range p.Cells {
		dirs[c.Dir] = true
	}
	if len(dirs) != len(p.Cells) {
		t.Errorf("%d folders for %d cells", len(dirs), len(p.Cells))
	}
}

// TestBaseMoves: which level is the base's is found out, not said.
func TestBaseMoves(t *testing.T) {
	p := mustPlan(t, toyStudy, toyBase, false, "env.window=60")
	if got := names(p); got[1] != "window=20" || got[2] != "window=30" || p.Factors[0].Base != 2 {
		t.Errorf("cells %q", got)
	}
	p = mustPlan(t, toyStudy, toyBase, false, "env.window=40")
	if f := p.Factors[0]; f.Levels[0] != Base || f.Base != 0 || len(f.Levels) != 4 || len(p.Cells) != 6 {
		t.Errorf("factor %+v, cells %q", f, names(p))
	}
	if full := mustPlan(t, toyStudy, toyBase, true, "env.window=40"); len(full.Cells) != 4*2*2 || full.Cells[0].Name != Base {
		t.Errorf("cells %q", names(full))
	}
}

func TestAssignmentsToAllCells(t *testing.T) {
	p := mustPlan(t, strings.Replace(toyStudy, "factors:", "set: {train.total_env_steps: 50, train.threads: 2}\nfactors:", 1), toyBase, false)
	for _, c := range p.Cells {
		if c.Config.Train.TotalEnvSteps != 50 || c.Config.Train.Threads != 2 {
			t.Errorf("%s: %+v", c.Name, c.Config.Train)
		}
	}
	p = mustPlan(t, strings.Replace(toyStudy, "factors:", "set: {train.total_env_steps: 50}\nfactors:", 1), toyBase, false, "train.total_env_steps=60")
	if n := p.Cells[1].Config.Train.TotalEnvSteps; n != 60 {
		t.Errorf("%d env steps: the command line counts more than the study", n)
	}
}

func TestSeedsOfTheBase(t *testing.T) {
	study := strings.Replace(toyStudy, "seeds: [1, 2, 3]", "", 1)
	if p := mustPlan(t, study, toyBase, false); !slices.Equal(p.Seeds, []uint64{7}) {
		t.Errorf("seeds %v", p.Seeds)
	}
	if p := mustPlan(t, study, toyBase+"seeds: [4, 5]\n", false); !slices.Equal(p.Seeds, []uint64{4, 5}) {
		t.Errorf("seeds %v", p.Seeds)
	}
}

func TestBadStudies(t *testing.T) {
	head := "base: base.yaml\nfactors:\n"
	cases := []struct {
		name, study string
		// says is what the error contains, in this order.
		says []string
	}{
		{"empty", "", []string{"base: required", "factors: required"}},
		{"no factors", "base: base.yaml\nfactors: {}\n", []string{"factors: required"}},
		{"no base", "base: other.yaml\nfactors: {w: {a: {env.window: 3}}}\n", []string{"base: ", "other.yaml"}},
		{"unknown key", "bse: base.yaml\n", []string{`study.yaml:1:1: bse: unknown key "bse"; did you mean "base"?`}},
		{"factor without levels", head + "  window: {}\n", []string{"study.yaml:3:11: factors", "has no levels"}},
		{"factor is a list", head + "  window: [20, 30]\n", []string{"study.yaml:3:11", "expected a mapping, found a list"}},
		{"level assigns nothing", head + "  window: {\"30\": {}}\n", []string{"study.yaml:3:18", "assigns nothing"}},
		{"level is null", head + "  window:\n    \"30\":\n", []string{"study.yaml", "assigns nothing"}},
		{"value is missing", head + "  window: {\"30\": {env.window: }}\n", []string{"study.yaml:3", "the value is missing"}},
		{"level twice", head + "  window: {a: {env.window: 30}, a: {env.window: 60}}\n", []string{"study.yaml:3:33", "twice"}},
		{"factor twice", head + "  w: {a: {env.window: 30}}\n  w: {a: {env.window: 60}}\n", []string{"study.yaml:4:3", "twice"}},
		{"level folder twice", head + "  window: {a/b: {env.window: 30}, a b: {env.window: 60}}\n", []string{"study.yaml:3", `its folder would be called "a-b"`}},
		{"factor folder twice", head + "  W: {a: {env.window: 30}}\n  w: {a: {env.window: 60}}\n", []string{"study.yaml:4", `its folders would be called "w"`}},
		{"name without letters", head + "  w: {/: {env.window: 30}}\n", []string{"study.yaml:3", `would be called ""`}},
		{"unknown path", head + "  window: {\"30\": {env.windw: 30}}\n", []string{"study.yaml:3:30", `env.windw`, `did you mean "window"?`}},
		{"unknown section", head + "  window: {\"30\": {evn.window: 30}}\n", []string{"study.yaml:3:", `evn`}},
		{"path through a value", head + "  window: {\"30\": {env.window.x: 30}}\n", []string{"study.yaml:3", `has no key "x"`}},
		{"wrong type", head + "  window: {\"30\": {env.window: long}}\n", []string{"study.yaml:3:31", "expected an integer"}},
		{"not valid", head + "  window: {\"30\": {env.window: 0}}\n", []string{"study.yaml:3:31", "env.window"}},
		{"does not fit the data", head + "  window: {\"300\": {env.window: 300}}\n", []string{"study.yaml:3:19", "longer than the data"}},
		{"two levels like the base", head + "  window: {a: {env.window: 20}, b: {env.window: 20, env.buy_pct: 0.2}, c: {env.window: 30}}\n", []string{"study.yaml:3:36", `means the same as the base, and so does "a"`}},
		{"nothing varied", head + "  window: {\"20\": {env.window: 20}}\n", []string{"study.yaml:3", "nothing is varied"}},
		{"two levels alike", head + "  window: {a: {env.window: 30}, b: {env.window: 30}}\n", []string{"study.yaml:3:36", `means the same as the level "a"`}},
		{"two factors alike", head + "  window: {a: {env.window: 30}}\n  bars: {a: {env.window: 30}}\n", []string{"study.yaml:4:13", "the cell bars=a is the same experiment as window=a"}},
		{"a level called base", head + "  window: {base: {env.window: 30}, b: {env.window: 60}}\n", []string{"study.yaml:3", "choose another name"}},
		{"metrics twice", "metrics: [sharpe, sharpe]\n" + head + "  window: {a: {env.window: 30}}\n", []string{`metrics: "sharpe" is given twice`}},
		{"no metrics", "metrics: []\n" + head + "  window: {a: {env.window: 30}}\n", []string{"metrics"}},
		{"seeds twice", "seeds: [1, 1]\n" + head + "  window: {a: {env.window: 30}}\n", []string{"seeds: 1 is given twice"}},
		{"bad set", "set: {train.total_env_stps: 3}\n" + head + "  window: {a: {env.window: 30}}\n", []string{"study.yaml:1:", "total_env_stps"}},
		{"an experiment", toyBase, []string{"is an experiment and not a study"}},
		{"all at once", head + "  window: {a: {env.windw: 30}, b: {env.window: -1}}\n  encoder: {c: {agent.encoder: {kind: transformer, depth: 2}}}\n", []string{"windw", "env.window", "depth"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := newPlan(t, c.study, toyBase, false)
			if err == nil {
				t.Fatal("no error")
			}
			rest := err.Error()
			for _, s := range c.says {
				_, after, ok := strings.Cut(rest, s)
				if !ok {
					t.Errorf("the error does not say %q:\n%v", s, err)
					return
				}
				rest = after
			}
		})
	}
	if len(cases) != 31 {
		t.Errorf("%d cases", len(cases))
	}
}

// TestProblemsOfCombinations: levels may be sound by themselves and not together.
func TestProblemsOfCombinations(t *testing.T) {
	study := "base: base.yaml\nfactors:\n  window: {long: {env.window: 60}}\n  bars: {few: {env.bars: 50}}\n"
	if p := mustPlan(t, study, toyBase, false); len(p.Cells) != 3 {
		t.Errorf("cells %q", names(p))
	}
	_, err := newPlan(t, study, toyBase, true)
	if err == nil || !strings.Contains(err.Error(), "window=long,bars=few: the window of 60 bars is longer than the data") {
		t.Errorf("error %v", err)
	}
}

func TestSlug(t *testing.T) {
	for name, want := range sorted.All(map[string]string{"20": "20", "10/30": "10-30", "20 % / 50 %": "20-50", "OHLCV only": "ohlcv-only", "../x": "x", "ä": "", "1e-3": "1e-3", "..": "", "a..b": "a..b"}) {
		if got := study.Slug(name); got != want {
			t.Errorf("slug(%q) = %q, expected %q", name, got, want)
		}
	}
}

func TestAssignmentsOnOneLine(t *testing.T) {
	c, _, err := Open(files(t, "base: base.yaml\nfactors: {f: {l: {env.buy_pct: 0.10, agent.encoder: {kind: mlp, widths: [1, 2], deep: {a: {}}}, env.list: [], env.name: \"1\"}}}\n", toyBase))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Factors[0].Levels[0].Set.String(), `env.buy_pct=0.10 agent.encoder={kind: mlp, widths: [1, 2], deep: {a: {}}} env.list=[] env.name="1"`; got != want {
		t.Errorf("%s, expected\n%s", got, want)
	}
}
