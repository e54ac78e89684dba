package world_test

import (
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestDrawnWorlds compares 300 worlds with what was measured on the official generator, within
// three standard errors of both: 300 worlds of each length of the chain.
func TestDrawnWorlds(t *testing.T) {
	const worlds = 300
	values := map[string][]float64{}
	note := func(name string, x float64) { values[name] = append(values[name], x) }
	zero, large, days := [2]int{}, [2]int{}, [2]int{}
	for seed := range worlds {
		g := world.StandardLeague()
		key := rng.New(uint64(seed))
		sizes := make([]int, 2+seed%3)
		draw := key.Split("sizes").Stream()
		for i := range sizes {
			sizes[i] = 4 + draw.IntN(5)
		}
		c, err := g.Draw(key, sizes, nil)
		if err != nil {
			t.Fatal(err)
		}
		levels := c.Levels()
		totals := [2]int{}
		for p := 1; p <= levels; p++ {
			note("catalog "+string(rune('0'+p)), float64(c.Catalog[p]))
		}
		seen := map[int]bool{}
		for i := range c.Factories {
			f := &c.Factories[i]
			if !seen[f.Level] {
				seen[f.Level] = true
				note("balance "+string(rune('0'+f.Level)), f.Balance/float64(c.Days))
			}
			note("shortfall", f.ShortfallMean)
			note("storage", f.StorageMean)
			note("shortfall dev", f.ShortfallDev/f.ShortfallMean)
		}
		for _, e := range c.Exogenous {
			side := 0
			if e.Demand {
				side = 1
			}
			totals[side] += e.Quantity
			if side == 0 {
				note("supply price", float64(e.Price))
			}
			zero[side]--
			if e.Quantity > 10 {
				large[side]++
			}
		}
		agentDays := [2]int{sizes[0] * c.Days, sizes[levels-1] * c.Days}
		for side := range 2 {
			days[side] += agentDays[side]
			zero[side] += agentDays[side]
		}
		note("supply", float64(totals[0])/float64(agentDays[0]))
		note("demand "+string(rune('0'+levels)), float64(totals[1])/float64(agentDays[1]))
	}
	// Means as measured, with their own standard errors; those of tables are of 100 to 300 worlds.
	cases := 0
	for name, want := range sorted.All(map[string][2]float64{
		"catalog 1": {16.38, 0.04}, "catalog 2": {27.57, 0.08}, "balance 0": {166, 1.5}, "balance 1": {307, 9}, "shortfall": {0.6, 0.004}, "storage": {0.03, 0.0003}, "shortfall dev": {0.05, 0.0005},
		"supply price": {10, 0.01}, "supply": {6.03, 0.03}, "demand 2": {5.82, 0.06}, "demand 3": {5.66, 0.06}, "demand 4": {5.40, 0.06}, "catalog 3": {44.6, 0.2}, "catalog 4": {68.7, 0.4}, "balance 2": {503, 14}, "balance 3": {748, 28},
	}) {
		cases++
		mean, se := moments(values[name])
		if math.Abs(mean-want[0]) > 3*math.Hypot(se, want[1]) {
			t.Errorf("%s: %.4f ± %.4f, expected %v ± %v", name, mean, se, want[0], want[1])
		}
	}
	if cases != 16 {
		t.Errorf("%d cases", cases)
	}
	for side, want := range [][2]float64{{0.061, 0.141}, {0.088, 0.105}} {
		n := float64(days[side])
		if got := float64(zero[side]) / n; math.Abs(got-want[0]) > 0.015 {
			t.Errorf("side %d: %.3f of agent-days have nothing, expected %.3f", side, got, want[0])
		}
		if got := float64(large[side]) / n; math.Abs(got-want[1]) > 0.015 {
			t.Errorf("side %d: %.3f of agent-days have more than 10, expected %.3f", side, got, want[1])
		}
	}
}

func moments(list []float64) (mean, se float64) {
	for _, x := range list {
		mean += x / float64(len(list))
	}
	sum := 0.0
	for _, x := range list {
		sum += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sum) / float64(len(list))
}

// TestDrawIsReproducible: equal keys give equal worlds whatever plays, and supply shares add up.
func TestDrawIsReproducible(t *testing.T) {
	g := world.StandardLeague()
	key := rng.New(3)
	sizes := []int{4, 5}
	a, err := g.Draw(key, sizes, nil)
	if err != nil {
		t.Fatal(err)
	}
	types := strings.Split(strings.Repeat("GreedyStdAgent ", 8)+"SyncRandomStdAgent", " ")
	b, err := g.Draw(key, sizes, types)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Exogenous) != len(b.Exogenous) || a.Exogenous[10] != b.Exogenous[10] || a.Factories[3].Shortfall[5] != b.Factories[3].Shortfall[5] {
		t.Error("types change the world")
	}
	if id := b.Factories[8].ID; id != "08SRS@1" {
		t.Errorf("id %s", id)
	}
	if id := b.Factories[0].ID; id != "00Gr@0" {
		t.Errorf("id %s", id)
	}
	if _, err := g.Draw(key, sizes, types[:3]); err == nil || !strings.Contains(err.Error(), "3 types for 9 agents") {
		t.Errorf("%v", err)
	}
}

// TestBadConfigs: every problem is named with its key.
func TestBadConfigs(t *testing.T) {
	g := world.StandardLeague()
	key := rng.New(3)
	cases := []struct {
		break_ func(c *world.Config)
		want   string
	}{
		{func(c *world.Config) { c.Days = 0 }, "n_steps"},
		{func(c *world.Config) { c.Catalog = c.Catalog[:2] }, "catalog_prices"},
		{func(c *world.Config) { c.Catalog[1] = 0 }, "catalog_prices[1]"},
		{func(c *world.Config) { c.Factories[1].ID = c.Factories[0].ID }, "agents[1]"},
		{func(c *world.Config) { c.Factories[0].Level = 1 }, "agents are ordered by level"},
		{func(c *world.Config) { c.Factories[0].Balance = 0 }, "initial_balance"},
		{func(c *world.Config) { c.Factories[0].Storage = c.Factories[0].Storage[:1] }, "storage_cost_per_day"},
		{func(c *world.Config) { c.Factories[0].Shortfall[2] = math.NaN() }, "shortfall_penalty_per_day[2]"},
		{func(c *world.Config) { c.Exogenous[0].Factory = 99 }, "exogenous[0]"},
		{func(c *world.Config) { c.Exogenous[0].Demand = !c.Exogenous[0].Demand }, "expected an agent of level"},
		{func(c *world.Config) { c.Exogenous[0].Day = 40 }, "ordered by day"},
		{func(c *world.Config) { c.Rules.Rounds = 0 }, "rules.rounds"},
	}
	for _, k := range cases {
		c, err := g.Draw(key, []int{4, 4}, nil)
		if err != nil {
			t.Fatal(err)
		}
		k.break_(c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%v, expected %q", err, k.want)
		}
	}
	if len(cases) != 12 {
		t.Errorf("%d cases", len(cases))
	}
}
