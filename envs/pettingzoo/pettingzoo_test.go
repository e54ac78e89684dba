package pettingzoo_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/pettingzoo"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func TestMain(m *testing.M) {
	if os.Getenv("ONNXRL_PYTHON") == "" {
		out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
		if err != nil {
			fmt.Println("there is no Python on the path: of this package, only what it says then is tested")
			flag.Parse()
			if err := flag.Set("test.run", "^TestWithoutPython$"); err != nil {
				panic(err)
			}
		} else {
			os.Setenv("ONNXRL_PYTHON", strings.TrimSpace(string(out)))
		}
	}
	os.Exit(m.Run())
}

// TestWithoutPython: a missing interpreter is named.
func TestWithoutPython(t *testing.T) {
	c := config(nil)
	c.Python = "/nowhere/python3"
	if _, err := pettingzoo.Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no Python interpreter: python") {
		t.Errorf("%v", err)
	}
}

// config describes a world of testdata, which Python finds beside the stand-in for gymnasium.
func config(kwargs map[string]any) pettingzoo.Config {
	c := pettingzoo.Defaults()
	c.ID, c.Kwargs, c.Timeout, c.StartTimeout = "toyworlds", kwargs, time.Minute, time.Minute
	return c
}

func usePackage(t testing.TB) {
	t.Helper()
	var dirs []string
	for _, dir := range []string{filepath.Join("testdata", "worlds"), filepath.Join("..", "gymnasium", "testdata", "fake")} {
		abs, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, abs)
	}
	t.Setenv("PYTHONPATH", strings.Join(dirs, string(os.PathListSeparator)))
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
}

func open(t testing.TB, c pettingzoo.Config) *pettingzoo.Factory {
	t.Helper()
	usePackage(t)
	f, err := pettingzoo.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func openVector(t testing.TB, f *pettingzoo.Factory, n int, o vector.Options) vector.Env {
	t.Helper()
	o.Check = true
	v, err := vector.Open(f, envs.Train, n, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := v.Reset(rng.New(3)); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestContract runs the suite on one agent of worlds of both APIs.
func TestContract(t *testing.T) {
	n := 0
	turns, masked := config(nil), config(map[string]any{"masked": "obs"})
	turns.API = pettingzoo.AEC
	for _, c := range []pettingzoo.Config{config(map[string]any{"late": 1, "act": "box"}), masked, turns}[:longtest.Cases(t, 3, 1)] {
		f := open(t, c)
		if r := envtest.Run(t, func() (envs.Env, error) { return f.New(envs.Train, 0) }, envtest.Options{Steps: 100, Allocates: true}); r.Episodes < 5 {
			t.Errorf("too little was checked: %+v", r)
		}
		n++
	}
	if n != longtest.Cases(t, 3, 1) {
		t.Errorf("%d worlds", n)
	}
}

// scripted draws valid actions of agents that are present, and leaves garbage with the others.
func scripted(v vector.Env, round int) {
	b, s := v.Batch(), rng.New(uint64(100+round)).Stream()
	one := tensor.New(b.Actions.DType(), b.Actions.Shape()[1:]...)
	size := len(one.Bytes())
	for r, here := range b.Present {
		var mask []bool
		if b.Mask != nil {
			k := b.Mask.Shape()[1]
			mask = b.Mask.Bools()[r*k : (r+1)*k]
		}
		v.Spec().Action.Sample(s, mask, one)
		if copy(b.Actions.Bytes()[r*size:], one.Bytes()); !here && b.Actions.DType() == tensor.Int64 {
			b.Actions.Int64s()[r*size/8] = 99
		}
	}
}

// TestSteps follows worlds whose agents die, are cut off and come late, step by step, and compares
// all that rows say with the rules of the world.
func TestSteps(t *testing.T) {
	c := config(map[string]any{"late": 1, "state": true})
	c.Info, c.Show, c.Workers = []string{"sum"}, []string{pettingzoo.Agent}, 2
	f := open(t, c)
	const worlds, agents = 3, 4
	if got := f.Agents(); !slices.Equal(got, []string{"agent_0", "agent_1", "agent_2", "agent_3"}) {
		t.Fatalf("agents are %q", got)
	}
	v := openVector(t, f, worlds*agents, vector.Options{})
	var names []string
	for _, field := range v.Spec().Observation {
		names = append(names, fmt.Sprintf("%s %t", field.Name, field.Central))
	}
	if got, want := strings.Join(names, ", "), "observation false, agent false, all/agent_0 true, all/agent_1 true, all/agent_2 true, all/agent_3 true"; got != want {
		t.Fatalf("fields are %s", got)
	}
	b := v.Batch()
	sums, time := make([]float32, worlds*agents), make([]int, worlds)
	seen := func(obs []*tensor.Tensor, r int) []float32 { return obs[0].Float32s()[3*r : 3*r+3] }
	n, deaths, cuts, came := 0, 0, 0, 0
	begin := func(w int) {
		time[w] = 0
		for i := range agents {
			r := w*agents + i
			if b.Present[r] != (i < 3) {
				t.Fatalf("agent %d is present at the beginning: %t", i, b.Present[r])
			}
			if sums[r] = seen(b.Obs, r)[1]; i == 3 {
				sums[r] = -1
			}
		}
	}
	for w := range worlds {
		begin(w)
	}
	for round := range 60 {
		scripted(v, round)
		present, actions := slices.Clone(b.Present), slices.Clone(b.Actions.Int64s())
		if err := v.Step(b.Actions); err != nil {
			t.Fatal(err)
		}
		for w := range worlds {
			time[w]++
			over := true
			for i := range agents {
				r := w*agents + i
				if !present[r] {
					if here := b.Present[r] && time[w] == 2; here {
						if x := seen(b.Obs, r); b.Type[r] != envs.First || x[0] != 2 {
							t.Errorf("agent %d came with %v, %v", i, b.Type[r], x)
						}
						sums[r], over = seen(b.Obs, r)[1], false
						came++
					}
					continue
				}
				a := actions[r]
				sums[r] += float32(a)
				dead, cut := a == 2, time[w] == 6 && a != 2
				if want := float64(a) + 0.25*float64(i); b.Reward[r] != want {
					t.Errorf("round %d: agent %d earns %g, expected %g", round, i, b.Reward[r], want)
				}
				obs := b.Obs
				switch {
				case dead:
					obs = b.Final
					if deaths++; b.Type[r] != envs.Last || b.Discount[r] != 0 {
						t.Errorf("agent %d died with a step of type %v and discount %g", i, b.Type[r], b.Discount[r])
					}
				case cut:
					obs = b.Final
					if cuts++; b.Type[r] != envs.Last || b.Discount[r] != 1 {
						t.Errorf("agent %d was cut off with a step of type %v and discount %g", i, b.Type[r], b.Discount[r])
					}
				default:
					if over = false; b.Type[r] != envs.Mid || !b.Present[r] {
						t.Errorf("agent %d goes on with %v, present %t", i, b.Type[r], b.Present[r])
					}
				}
				if x := seen(obs, r); x[0] != float32(time[w]) || x[1] != sums[r] || b.Info[r][0] != float64(sums[r]) || obs[1].Int64s()[r] != int64(i) && obs[1] == b.Obs[1] {
					t.Errorf("round %d: agent %d sees %v, and says %v; expected time %d and sum %g", round, i, x, b.Info[r], time[w], sums[r])
				}
				n++
			}
			if over {
				begin(w)
				continue
			}
			// All rows that are there know what the others see.
			for i := range agents {
				if !b.Present[w*agents+i] {
					continue
				}
				for j := range agents {
					if r := w*agents + j; b.Present[r] {
						if got := b.Obs[2+j].Float32s()[3*(w*agents+i):][:3]; !slices.Equal(got, seen(b.Obs, r)) {
							t.Errorf("agent %d is told that agent %d sees %v, expected %v", i, j, got, seen(b.Obs, r))
						}
						n++
					}
				}
			}
		}
	}
	if n < 500 || deaths < 50 || cuts < 3 || came < 10 {
		t.Errorf("%d comparisons, %d deaths, %d cut off, %d came late", n, deaths, cuts, came)
	}
}

// traced is what a vector shows in some rounds.
func traced(t *testing.T, v vector.Env, first, rounds int) (out []byte) {
	t.Helper()
	for round := range rounds {
		scripted(v, first+round)
		if err := v.Step(v.Batch().Actions); err != nil {
			t.Fatal(err)
		}
		b := v.Batch()
		for _, o := range b.Obs {
			out = append(out, o.Bytes()...)
		}
		for _, e := range b.Ended {
			for _, o := range b.Final {
				size := len(o.Bytes()) / len(b.Type)
				out = append(out, o.Bytes()[e.Env*size:(e.Env+1)*size]...)
			}
		}
		if b.Mask != nil {
			out = append(out, b.Mask.Bytes()...)
		}
		out = append(out, fmt.Sprint(b.Present, b.Type, b.Reward, b.Discount, b.Info, b.Ended)...)
	}
	return out
}

// TestVectors: spaces, masks, states, roles that are filled up, and turns; the same on any number
// of workers, and after being saved in mid-episode.
func TestVectors(t *testing.T) {
	longtest.Slow(t)
	with := func(c pettingzoo.Config, change func(c *pettingzoo.Config)) pettingzoo.Config {
		change(&c)
		return c
	}
	n := 0
	for what, c := range sorted.All(map[string]pettingzoo.Config{
		"discrete": config(nil), "heads": config(map[string]any{"act": "heads"}), "bits": config(map[string]any{"act": "bits"}), "box": config(map[string]any{"act": "box", "late": 1}),
		"masks in observations": config(map[string]any{"masked": "obs"}),
		"masks in infos":        with(config(nil), func(c *pettingzoo.Config) { c.MaskInfo = "mask" }),
		"state":                 with(config(map[string]any{"state": true}), func(c *pettingzoo.Config) { c.Central = pettingzoo.State }),
		"nothing central":       with(config(nil), func(c *pettingzoo.Config) { c.Central = pettingzoo.None }),
		"roles":                 with(config(map[string]any{"roles": true}), func(c *pettingzoo.Config) { c.Pad, c.Show = true, []string{pettingzoo.Role, pettingzoo.Agent} }),
		"seats":                 with(config(map[string]any{"players": 3, "seats": true}), func(c *pettingzoo.Config) { c.API = pettingzoo.AEC }),
		"arrays":                config(map[string]any{"how": "arrays"}),
		"turns":                 with(config(map[string]any{"players": 3}), func(c *pettingzoo.Config) { c.API = pettingzoo.AEC }),
	}) {
		f := open(t, c)
		rows := 4 * len(f.Agents())
		one, two := openVector(t, f, rows, vector.Options{Workers: 1, Limit: 5}), openVector(t, f, rows, vector.Options{Workers: 2, Limit: 5})
		spec := one.Spec()
		if spec.MaxSteps != 5 || spec.Masked != (strings.HasPrefix(what, "masks") || what == "roles" || what == "turns" || what == "seats") {
			t.Errorf("%s: %d steps, masked %t", what, spec.MaxSteps, spec.Masked)
		}
		if what == "roles" {
			b := one.Batch()
			if role := b.Obs[1].Int64s()[:3]; !slices.Equal(role, []int64{0, 0, 1}) || !slices.Equal(b.Mask.Bools()[6:9], []bool{true, true, false}) || b.Obs[0].Shape()[1] != 4 {
				t.Errorf("roles %v, mask %v, observations %v", role, b.Mask.Bools()[6:9], b.Obs[0])
			}
		}
		if central := spec.Observation.Central(); (len(central) == 0) != (what == "nothing central") || (what == "state") != slices.Equal(central, []string{"state"}) {
			t.Errorf("%s: central are %q", what, central)
		}
		if !slices.Equal(traced(t, one, 0, 30), traced(t, two, 0, 30)) {
			t.Errorf("%s: other steps with two workers", what)
		}
		state, err := vector.SaveState(one)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		want := traced(t, one, 30, 20)
		if err := vector.LoadState(two, state); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !slices.Equal(traced(t, two, 30, 20), want) {
			t.Errorf("%s: a vector that was loaded goes on differently", what)
		}
		// The first action is always valid, and nothing is allocated for it.
		clear(one.Batch().Actions.Bytes())
		if a := testing.AllocsPerRun(50, func() {
			if err := one.Step(one.Batch().Actions); err != nil {
				t.Error(err)
			}
		}); a > 0 {
			t.Errorf("%s: a step allocates %v times", what, a)
		}
		n++
	}
	if n != 12 {
		t.Errorf("%d worlds", n)
	}
}

// TestTurns plays a game of turns by hand: who waits has one valid action, and it is not taken.
func TestTurns(t *testing.T) {
	c := config(map[string]any{"end": 7})
	c.API = pettingzoo.AEC
	v := openVector(t, open(t, c), 2, vector.Options{})
	b, n := v.Batch(), 0
	count, turn := b.Obs[0].Float32s()[0], 0
	for b.Type[0] != envs.Last {
		waits := 1 - turn
		if m := b.Mask.Bools(); !slices.Equal(m[3*waits:3*waits+3], []bool{true, false, false}) || !m[3*turn+1] {
			t.Fatalf("masks %v in the turn of %d", m, turn)
		}
		b.Actions.Int64s()[turn], b.Actions.Int64s()[waits] = 1, 0
		if err := v.Step(b.Actions); err != nil {
			t.Fatal(err)
		}
		count++
		if n++; b.Type[0] == envs.Mid && (b.Obs[0].Float32s()[0] != count || b.Reward[0] != 0 || b.Reward[1] != 0) {
			t.Fatalf("turn %d: %v, rewards %v", n, b.Obs[0].Float32s(), b.Reward)
		}
		turn = waits
	}
	won := 1 - turn
	if count != 7 || b.Reward[won] != 1 || b.Reward[turn] != -1 || b.Discount[0] != 0 || b.Discount[1] != 0 || b.Final[0].Float32s()[0] != 7 {
		t.Errorf("the game ends at %g with %v", count, b.Reward)
	}
}

// TestBadWorlds: what is wrong is said, with world, step and agent.
func TestBadWorlds(t *testing.T) {
	n := 0
	for how, want := range sorted.All(longtest.Few(t, map[string]string{
		"no team":            "no possible_agents: a team of size zero",
		"other observations": "agent agent_1 observes box[4], and agent_0 observes box[3]: all agents are to have the same spaces; pad: true fills up",
		"other actions":      "agent agent_1 acts in discrete[2], and agent_0 acts in discrete[3]",
		"nobody":             "no agent is there after reset: a team of size zero",
		"stranger":           "agent 'nobody_knows' is none of possible_agents",
		"vanishes":           "step 3 of episode 0: agent agent_0 is gone, and its last step was neither a termination nor a truncation",
		"unseen":             "step 3 of episode 0: agent agent_0 is there and has no observation",
		"unrewarded":         "step 3 of episode 0: agent agent_0 acted and step gives it no reward",
		"no number":          "the reward of agent agent_0 is 'much', expected a number",
		"infinite":           "expected a finite number",
		"raises":             "RuntimeError: the world has ended",
		"four values":        "step returns 4 values, expected observations, rewards, terminations, truncations and infos",
		"no action":          "the action mask of agent agent_0 leaves no valid action",
	}, 4)) {
		c := config(map[string]any{"how": how})
		if how == "no action" {
			c.MaskInfo = "mask"
		}
		usePackage(t)
		f, err := pettingzoo.Open(t.Context(), c)
		if err == nil {
			var v vector.Env
			if v, err = vector.Open(f, envs.Train, 6, vector.Options{Workers: 1}); err == nil {
				err = v.Reset(rng.New(1))
				for k := 0; err == nil && k < 5; k++ {
					// Nobody dies.
					clear(v.Batch().Actions.Int64s())
					err = v.Step(v.Batch().Actions)
				}
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", how, err, want)
		}
		n++
	}
	if n != longtest.Cases(t, 13, 4) {
		t.Errorf("%d worlds", n)
	}
}

// TestBadDocuments: mistakes are errors with their place.
func TestBadDocuments(t *testing.T) {
	usePackage(t)
	n := 0
	for params, want := range sorted.All(map[string]string{
		"{kind: pettingzoo}": "or the module that makes a world of PettingZoo, such as mpe2.simple_spread_v3", "{kind: pettingzoo, id: nowhere.v3}": "env.id: pettingzoo: gymnasium: open nowhere.v3: nowhere.v3 cannot be imported",
		"{kind: pettingzoo, id: onlyturns}":                                "env.id: pettingzoo: gymnasium: open onlyturns: the module onlyturns has no function parallel_env; it has env, which api: aec takes",
		"{kind: pettingzoo, id: toyworlds, api: serial}":                   "env.api",
		"{kind: pettingzoo, id: toyworlds, central: all}":                  "env.central",
		"{kind: pettingzoo, id: toyworlds, central: state}":                "no state_space; central: observations",
		"{kind: pettingzoo, id: toyworlds, show: [agent, agent]}":          "given twice",
		"{kind: pettingzoo, id: toyworlds, kwargs: {colour: red}}":         "toyworlds.parallel_env: TypeError",
		"{kind: pettingzoo, id: toyworlds, api: aec, kwargs: {box: true}}": "where they take turns, those that wait have but one valid action",
		"{kind: pettingzoo, id: toyworlds, kwargs: {act: nothing}}":        "KeyError",
	}) {
		doc, err := configs.Parse("x.yaml", []byte("env: "+params))
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Env configs.Kinded `yaml:"env"`
		}
		if err = doc.Decode(&c); err == nil {
			var f envs.Factory
			if f, err = envs.Open(t.Context(), []envs.Kind{pettingzoo.Kind}, c.Env); err == nil {
				err = f.Close()
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", params, err, want)
		}
		n++
	}
	if n != 10 {
		t.Errorf("%d documents", n)
	}
	f := open(t, config(nil))
	if _, err := vector.Open(f, envs.Train, 7, vector.Options{}); err == nil || !strings.Contains(err.Error(), "a vector of 7 rows, which is train.num_envs, of worlds of 3 agents") {
		t.Errorf("%v", err)
	}
	v := openVector(t, f, 3, vector.Options{})
	v.Batch().Actions.Int64s()[1] = 9
	if err := v.Step(v.Batch().Actions); err == nil || !strings.Contains(err.Error(), `world 0, agent "agent_1"`) {
		t.Errorf("%v", err)
	}
}
