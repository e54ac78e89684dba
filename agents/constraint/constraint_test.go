package constraint

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// batch is a round of n environments whose steps cost so much.
func batch(costs []float64, kind ...envs.StepType) *vector.Batch {
	b := &vector.Batch{Type: kind}
	for _, x := range costs {
		b.Costs = append(b.Costs, []float64{x})
	}
	return b
}

// pay makes the episodes of one environment cost so much, in two steps each.
func pay(s *Set, costs ...float64) {
	for _, x := range costs {
		s.Begin(batch([]float64{0}, envs.First))
		s.End(batch([]float64{x / 2}, envs.Mid))
		s.Begin(batch([]float64{0}, envs.Mid))
		s.End(batch([]float64{x / 2}, envs.Last))
	}
}

func set(t *testing.T, change func(c *Config)) *Set {
	t.Helper()
	c := Defaults()
	c.Cost, c.Limit = "toll", 25
	change(&c)
	if err := configs.Validate(c); err != nil {
		t.Fatal(err)
	}
	s, err := New([]Config{c}, &envs.Spec{Name: "road", Costs: []string{"toll"}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTail: of the losses 1 to 100 the value at risk at 0.95 is 95 and the conditional one 98, the
// mean of the five largest. It is the minimum over ν, and what steps are charged with adds up to
// it.
func TestTail(t *testing.T) {
	losses := make([]float64, 100)
	for i := range losses {
		losses[(i*37)%100] = float64(i + 1)
	}
	s := set(t, func(c *Config) { c.Measure, c.Alpha, c.Episodes, c.Limit = CVaR, 0.95, 100, 99 })
	pay(s, losses...)
	if err := s.Update(); err != nil {
		t.Fatal(err)
	}
	m := agents.Metrics{}
	s.Measure(m)
	if math.Abs(m["constraint/toll/var"]-95) > 1e-12 || math.Abs(m["constraint/toll/cvar"]-98) > 1e-9 || m["constraint/toll/cost"] != 50.5 {
		t.Errorf("%v", m)
	}
	charged, n := 0.0, 0
	for _, x := range losses {
		charged += (s.Charge(0, 0, x/2) + s.Charge(0, x/2, x/2)) / 100
		n++
	}
	if math.Abs(95+charged-98) > 1e-9 || n != 100 {
		t.Errorf("steps are charged with %g, expected 3", charged)
	}
	for nu := 80.0; nu <= 100; nu += 0.25 {
		sum := 0.0
		for _, x := range losses {
			sum += max(x-nu, 0)
		}
		if n++; nu+sum/100/0.05 < 98-1e-9 {
			t.Errorf("ν = %g gives less", nu)
		}
	}
	if n != 181 {
		t.Errorf("%d comparisons", n)
	}
	for _, x := range []struct{ alpha, atRisk, conditional float64 }{{0, 1, 3}, {0.8, 4, 5}, {0.9, 5, 5}, {0.5, 3, 4.2}} {
		if a, b := Tail([]float64{5, 1, 4, 2, 3}, x.alpha); a != x.atRisk || math.Abs(b-x.conditional) > 1e-12 {
			t.Errorf("alpha %g: %g and %g, expected %g and %g", x.alpha, a, b, x.atRisk, x.conditional)
		}
	}
}

// TestMultipliers compares with the formulas of OmniSafe, at its defaults, on mean
// costs of 30, 40, 20, 10, 26 with the limit of 25.
func TestMultipliers(t *testing.T) {
	n := 0
	for _, x := range []struct {
		method string
		want   []float64
	}{
		{Lagrange, lagrangeOf(30, 40, 20, 10, 26)},
		{PIDController, pidOf(30, 40, 20, 10, 26)},
	} {
		s := set(t, func(c *Config) { c.Method = x.method })
		for i, cost := range []float64{30, 40, 20, 10, 26} {
			pay(s, cost-5, cost+5)
			if err := s.Update(); err != nil {
				t.Fatal(err)
			}
			if n++; math.Abs(s.Lambda(0)-x.want[i]) > 1e-6 {
				t.Errorf("%s: λ is %g after %d moves, expected %g", x.method, s.Lambda(0), i+1, x.want[i])
			}
			if math.Abs(s.Rescale()*(1+s.Lambda(0))-1) > 1e-12 {
				t.Errorf("scaled by %g at %g", s.Rescale(), s.Lambda(0))
			}
		}
	}
	if n != 10 {
		t.Errorf("%d comparisons", n)
	}
}

// lagrangeOf is PyTorch's Adam on −λ·(cost − 25), in float64.
func lagrangeOf(costs ...float64) (list []float64) {
	lambda, m, v := 0.001, 0.0, 0.0
	for i, c := range costs {
		g := 25 - c
		m, v = 0.9*m+0.1*g, 0.999*v+0.001*g*g
		k := float64(i + 1)
		lambda = max(0, lambda-0.035*m/(1-math.Pow(0.9, k))/(math.Sqrt(v/(1-math.Pow(0.999, k)))+1e-8))
		list = append(list, lambda)
	}
	return list
}

// pidOf is pid_update with kp 0.1, ki 0.01, kd 0.01 and both averages of 0.95.
func pidOf(costs ...float64) (list []float64) {
	integral, p, d, past := 0.001, 0.0, 0.0, []float64{0}
	for _, c := range costs {
		integral = max(0, integral+0.01*(c-25))
		p, d = 0.95*p+0.05*(c-25), 0.95*d+0.05*c
		list = append(list, max(0, 0.1*p+integral+0.01*max(0, d-past[0])))
		if past = append(past, d); len(past) > 10 {
			past = past[1:]
		}
	}
	return list
}

// TestWhenMultipliersMove: not before enough episodes have ended, not within the warm-up, not below
// 0 and not above the bound; episodes that are cut off by a reset, and absent rows, do not count.
func TestWhenMultipliersMove(t *testing.T) {
	s := set(t, func(c *Config) { c.Episodes, c.WarmupEpisodes, c.LagrangianUpperBound = 3, 4, 0.05 })
	var got []float64
	update := func(costs ...float64) {
		pay(s, costs...)
		if err := s.Update(); err != nil {
			t.Fatal(err)
		}
		got = append(got, math.Round(s.Lambda(0)*1000)/1000)
	}
	update(30, 30)
	update(30)
	update(30, 30)
	update(30)
	update(30, 30, 30)
	update(-90, -90, -90)
	update(-90, -90, -90)
	update(-90, -90, -90)
	update(-90, -90, -90)
	if want := []float64{0.001, 0.001, 0.001, 0.036, 0.05}; !slices.Equal(got[:5], want) || got[8] != 0 {
		t.Errorf("λ is %v, expected %v, and 0 in the end", got, want)
	}
	m := agents.Metrics{}
	for range 3 {
		s.Begin(batch([]float64{0}, envs.First))
		s.End(batch([]float64{100}, envs.Mid))
		pay(s, 10)
		gone := batch([]float64{0}, envs.Last)
		gone.Present = []bool{false}
		s.Begin(gone)
		s.End(batch([]float64{100}, envs.Last))
	}
	update()
	if s.Measure(m); m["constraint/toll/cost"] != 10 {
		t.Errorf("%v", m)
	}
	pay(s, 50)
	s.Forget()
	update(20, 20, 20)
	if s.Measure(m); m["constraint/toll/cost"] != 20 {
		t.Errorf("%v", m)
	}
}

// TestWindow: with a window λ moves after each episode, on the newest ones, once one of them is in
// the tail; what is remembered is saved.
func TestWindow(t *testing.T) {
	change := func(c *Config) { c.Measure, c.Alpha, c.Window, c.Limit = CVaR, 0.75, 8, 1 }
	s := set(t, change)
	cvar := func() (float64, bool) {
		m := agents.Metrics{}
		s.Measure(m)
		x, ok := m["constraint/toll/cvar"]
		return x, ok
	}
	moved := 0
	for i := range 12 {
		before := s.Lambda(0)
		pay(s, float64(i))
		if err := s.Update(); err != nil {
			t.Fatal(err)
		}
		if s.Lambda(0) != before {
			moved++
		}
		// The mean of the dearest quarter of the newest eight.
		want := map[int]float64{3: 3, 4: 4 - 0.2, 7: 6.5, 11: 10.5}
		if x, ok := cvar(); ok != (i >= 3) || want[i] != 0 && math.Abs(x-want[i]) > 1e-9 {
			t.Errorf("after %d episodes the CVaR is %g, %v, expected %g", i+1, x, ok, want[i])
		}
		if i == 9 {
			fresh := set(t, change)
			if err := checkpoint.Copy(fresh, s); err != nil {
				t.Fatal(err)
			}
			s = fresh
		}
	}
	if moved != 9 {
		t.Errorf("λ has moved %d times, expected after each episode from the fourth on", moved)
	}
}

// TestOverSteps: a limit on single steps, such as the losses of days, takes each of them, and charges
// it with its own excess.
func TestOverSteps(t *testing.T) {
	s := set(t, func(c *Config) { c.Over, c.Measure, c.Alpha, c.Episodes = Step, CVaR, 0.5, 8 })
	pay(s, 2, 4, 6, 8)
	if err := s.Update(); err != nil {
		t.Fatal(err)
	}
	m := agents.Metrics{}
	s.Measure(m)
	// Steps of 1, 1, 2, 2, 3, 3, 4, 4.
	if m["constraint/toll/cost"] != 2.5 || m["constraint/toll/var"] != 2 || m["constraint/toll/cvar"] != 3.5 {
		t.Errorf("%v", m)
	}
	if a, b := s.Charge(0, 100, 3), s.Charge(0, 0, 1); a != 2 || b != 0 {
		t.Errorf("steps are charged with %g and %g, expected 2 and 0", a, b)
	}
}

// TestThreshold: while the quantile is above the limit, steps are charged with what exceeds the
// limit; else with what exceeds the quantile.
func TestThreshold(t *testing.T) {
	for _, x := range []struct{ limit, charged float64 }{{1, 2 * 2}, {5, 0}, {2.5, 2 * 0.5}} {
		s := set(t, func(c *Config) { c.Measure, c.Alpha, c.Episodes, c.Limit = CVaR, 0.5, 4, x.limit })
		pay(s, 1, 2, 4, 4)
		pay(s, 4)
		if err := s.Update(); err != nil {
			t.Fatal(err)
		}
		// The quantile is 4.
		if got := s.Charge(0, 0, 3); got != x.charged {
			t.Errorf("limit %g: a charge of %g, expected %g", x.limit, got, x.charged)
		}
	}
}

// TestExcess: nobody knows before the first estimate; within a twentieth a limit is kept.
func TestExcess(t *testing.T) {
	s := set(t, func(c *Config) {})
	if (*Set)(nil).Excess() != 0 || s.Excess() != math.MaxFloat64 {
		t.Errorf("an excess of %g before there is an estimate", s.Excess())
	}
	for _, x := range []struct{ cost, excess float64 }{{30, 0.2}, {26, 0}, {-90, 0}} {
		pay(s, x.cost)
		if err := s.Update(); err != nil {
			t.Fatal(err)
		}
		if got := s.Excess(); math.Abs(got-x.excess) > 1e-12 {
			t.Errorf("a cost of %g exceeds 25 by %g, expected %g", x.cost, got, x.excess)
		}
	}
}

// TestMisfits: configurations that say nothing, and costs that there are not.
func TestMisfits(t *testing.T) {
	n := 0
	for _, x := range []struct{ text, want string }{
		{"[{limit: 1}]", "[0].cost: "}, {"[{cost: a}]", "[0].limit: "}, {"[{cost: a, limit: 1, measure: max}]", "[0].measure: "},
		{"[{cost: a, limit: 1, measure: cvar, alpha: 0.95, episodes: 19}]", "[0].episodes: 19, of which a share of 0.05 is not one; expected at least 20"},
		{"[{cost: a, limit: 1, measure: cvar, alpha: 0.95, window: 19}]", "[0].window: 19, of which a share of 0.05 is not one; expected at least 20"}, {"[{cost: a, limit: 1, over: day, quantiles: 1, measure: cvar, window: 10}]", "[0].over: "},
		{"[{cost: a, limit: 1, measure: cvar, alpha: 1}]", "[0].alpha: "}, {"[{cost: a, limit: 1, method: pid, pid: {kp: -1, d_delay: 0}}]", "[0].pid.kp: "},
		{"[{cost: a, limit: 1, lagrangian_upper_bound: 1, lagrangian_multiplier_init: 2}]", "[0].lagrangian_multiplier_init: "},
		{"[{cost: a, limit: 1, episodes: 0, warmup_episodes: -1, lambda_lr: -1, method: newton}]", "[0].method: "},
		{"[{cost: toll, limit: 1}, {cost: toll, limit: 2}]", `agent.constraints[1].cost: "toll" is limited already`},
		{"[{cost: fuel, limit: 1}]", `agent.constraints[0].cost: "fuel" is no cost of road, which has ["toll"]`},
		{"[{cost: toll, limit: 1}]", ""},
	} {
		var list struct {
			Constraints []Config `yaml:"constraints"`
		}
		d, err := configs.Parse("x.yaml", []byte("constraints: "+x.text))
		if err != nil {
			t.Fatal(err)
		}
		if err = d.Decode(&list); err == nil {
			_, err = New(list.Constraints, &envs.Spec{Name: "road", Costs: []string{"toll"}}, 2)
		}
		if n++; (err == nil) != (x.want == "") || !strings.Contains(fmt.Sprint(err), x.want) {
			t.Errorf("%s: %v", x.text, err)
		}
	}
	if _, err := New([]Config{Defaults()}, &envs.Spec{Name: "road"}, 2); err == nil || !strings.Contains(err.Error(), "steps of road have no costs beside the reward") {
		t.Error(err)
	}
	if n != 13 {
		t.Errorf("%d cases", n)
	}
}
