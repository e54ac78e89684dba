package risk_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

var monday = time.Date(2024, 1, 1, 15, 0, 0, 0, time.UTC)

func open(t *testing.T, c risk.Config) *risk.Monitor {
	t.Helper()
	m, err := risk.NewMonitor(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestHysteresis follows a book of one value a day past its limits and back.
func TestHysteresis(t *testing.T) {
	type day struct {
		value   float64
		stopped bool
	}
	n := 0
	for name, c := range sorted.All(map[string]struct {
		limits risk.Drawdown
		days   []day
	}{
		"the limit itself is allowed, resume ends it": {risk.Drawdown{Limit: 0.25, Resume: 0.125}, []day{
			{100, false}, {75, false}, {74, true}, {76, true}, {87, true}, {87.5, false}, {76, false}, {80, false}, {74.9, true},
		}},
		"resume is half of the limit": {risk.Drawdown{Limit: 0.25}, []day{{100, false}, {70, true}, {87.4, true}, {87.5, false}}},
		"a new peak moves the limit":  {risk.Drawdown{Limit: 0.25}, []day{{100, false}, {200, false}, {150, false}, {149, true}, {100, true}}},
		// The peak of 100 leaves the window of three days with the fourth value.
		"the window rolls":      {risk.Drawdown{Limit: 0.25, Window: 3}, []day{{100, false}, {70, true}, {70, true}, {70, false}, {53, false}, {52, true}}},
		"a window of one day":   {risk.Drawdown{Limit: 0.25, Window: 1}, []day{{100, false}, {1, false}, {100, false}}},
		"a value that is none":  {risk.Drawdown{Limit: 0.25}, []day{{100, false}, {math.NaN(), true}, {100, false}, {0, true}, {math.Inf(1), true}, {90, false}}},
		"thirty days by itself": {risk.Drawdown{Limit: 0.25}, slices.Concat([]day{{100, false}}, slices.Repeat([]day{{70, true}}, 29), []day{{70, false}})},
	}) {
		m := open(t, risk.Config{Drawdown: c.limits})
		alerts := 0
		m.OnAlert = func(a risk.Alert) {
			if alerts++; a.Limit != risk.BoundDrawdown || a.On != (alerts%2 == 1) || !strings.Contains(a.String(), "drawdown") {
				t.Errorf("%s: alert %d: %v", name, alerts, a)
			}
		}
		changes, was := 0, false
		for i, d := range c.days {
			n++
			m.Observe(monday.AddDate(0, 0, i), d.value)
			if m.Stopped() != d.stopped {
				t.Errorf("%s: day %d: at %g after a drawdown of %g it is %t", name, i, d.value, m.Drawdown(), m.Stopped())
			}
			if m.Stopped() != was {
				changes, was = changes+1, !was
			}
		}
		if alerts != changes {
			t.Errorf("%s: %d alerts of %d changes", name, alerts, changes)
		}
	}
	if n != 9+4+5+6+3+6+31 {
		t.Errorf("%d days", n)
	}
}

// naive is a monitor by its definition: from all that has been observed.
type naive struct {
	days   []int
	values [][]float64 // by day
}

func (n *naive) observe(at time.Time, v float64) {
	if d := risk.DayOf(at); len(n.days) == 0 || n.days[len(n.days)-1] != d {
		n.days, n.values = append(n.days, d), append(n.values, nil)
	}
	n.values[len(n.values)-1] = append(n.values[len(n.values)-1], v)
}

func (n *naive) drawdown(window int) float64 {
	peak := 0.0
	for _, day := range n.values[max(len(n.values)-window, 0):] {
		peak = max(peak, slices.Max(day))
	}
	last := n.values[len(n.values)-1]
	return 1 - last[len(last)-1]/peak
}

// cvar is the minimum of Rockafellar and Uryasev's function over the losses.
func (n *naive) cvar(window int, level float64) (float64, bool) {
	var losses []float64
	for i := max(len(n.values)-window, 1); i < len(n.values); i++ {
		a, b := n.values[i-1], n.values[i]
		losses = append(losses, 1-b[len(b)-1]/a[len(a)-1])
	}
	if float64(len(losses))*(1-level) < 1-1e-9 {
		return 0, false
	}
	least := math.Inf(1)
	for _, at := range losses {
		sum := 0.0
		for _, l := range losses {
			sum += max(l-at, 0)
		}
		least = min(least, at+sum/float64(len(losses))/(1-level))
	}
	return least, true
}

// TestMonitorEqualsTheDefinition compares drawdown, CVaR and the states of random books, of one or
// several values a day, with what all values say, and with a monitor that goes on from what another
// remembers.
func TestMonitorEqualsTheDefinition(t *testing.T) {
	compared, stops, cuts, several := 0, 0, 0, 0
	for seed := range uint64(40) {
		s := rng.New(seed).Stream()
		c := risk.Config{
			Drawdown: risk.Drawdown{Limit: 0.05 + 0.1*s.Float64(), Window: 1 + s.IntN(12)},
			CVaR:     risk.CVaR{Limit: 0.02 + 0.02*s.Float64(), Level: 0.8 + 0.1*s.Float64(), Window: 12 + s.IntN(30)},
		}
		m, other, all := open(t, c), open(t, c), &naive{}
		stopped, cut := false, false
		at, value := monday, 100.0
		for range 300 {
			if s.Bernoulli(0.6) {
				at = at.AddDate(0, 0, 1+s.IntN(3))
			} else {
				at = at.Add(time.Second)
				several++
			}
			value *= math.Exp(0.02 * s.Normal())
			m.Observe(at, value)
			all.observe(at, value)
			m.Observe(at, value) // The same again changes nothing.
			all.values[len(all.values)-1] = append(all.values[len(all.values)-1], value)
			d := all.drawdown(c.Drawdown.Window)
			v, known := all.cvar(c.CVaR.Window, c.CVaR.Level)
			stopped = d > c.Drawdown.Limit || stopped && d > c.Drawdown.Limit/2
			cut = known && (v > c.CVaR.Limit || cut && v > c.CVaR.Limit/2)
			got, gotKnown := m.CVaR()
			if m.Drawdown() != d || gotKnown != known || math.Abs(got-v) > 1e-12 || m.Stopped() != stopped || (m.Factor() < 1) != cut {
				t.Fatalf("seed %d, %v: drawdown %g, CVaR %g %t, stopped %t, factor %g, expected %g, %g %t, %t, %t", seed, at, m.Drawdown(), got, gotKnown, m.Stopped(), m.Factor(), d, v, known, stopped, cut)
			}
			if compared++; stopped {
				stops++
			}
			if cut {
				cuts++
			}
			// Another goes on from what this one remembers, by way of JSON.
			text, err := json.Marshal(m.Memory())
			var memory risk.Memory
			if err == nil {
				err = json.Unmarshal(text, &memory)
			}
			if err == nil {
				err = other.Restore(memory)
			}
			if err != nil {
				t.Fatal(err)
			}
			if o, _ := other.CVaR(); o != got || other.Drawdown() != d || other.Stopped() != stopped || other.Factor() != m.Factor() {
				t.Fatalf("seed %d, %v: restored: drawdown %g, CVaR %g, stopped %t", seed, at, other.Drawdown(), o, other.Stopped())
			}
			m, other = other, m
		}
	}
	if compared != 12_000 || stops < 2000 || cuts < 2000 || stops > 11_000 || cuts > 11_000 || several < 3000 {
		t.Errorf("%d observations, %d stopped, %d cut, %d more on the same day", compared, stops, cuts, several)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	m, day, value := open(t, risk.Config{Drawdown: risk.Drawdown{Limit: 0.1}, CVaR: risk.CVaR{Limit: 0.01}}), 0, 100.0
	s := rng.New(1).Stream()
	if n := testing.AllocsPerRun(600, func() {
		day++
		value *= math.Exp(0.01 * s.Normal())
		m.Observe(monday.AddDate(0, 0, day/2), value)
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func TestLimits(t *testing.T) {
	inf := math.Inf(1)
	c := risk.Config{CVaR: risk.CVaR{Limit: 0.05, Level: 0.5, Window: 2}}
	for i, k := range []struct {
		exposure, weight float64
		want, cut        [2]float64
	}{
		{0, 0, [2]float64{inf, inf}, [2]float64{0.5, inf}},
		{0.8, 0.2, [2]float64{0.8, 0.2}, [2]float64{0.4, 0.1}},
	} {
		c.MaxExposure, c.MaxWeight = k.exposure, k.weight
		m := open(t, c)
		a, b := m.Limits()
		for d, v := range []float64{100, 90, 81} {
			m.Observe(monday.AddDate(0, 0, d), v)
		}
		if x, y := m.Limits(); [2]float64{a, b} != k.want || [2]float64{x, y} != k.cut {
			t.Errorf("case %d: %g and %g, cut %g and %g", i, a, b, x, y)
		}
	}
	if got := (risk.BoundCVaR | risk.BoundWeight | risk.Unsold).Names(); !slices.Equal(got, []string{"cvar", "max_weight", "unsold"}) {
		t.Errorf("%q", got)
	}
}

func TestBadConfigs(t *testing.T) {
	n := 0
	for want, c := range sorted.All(map[string]risk.Config{
		"risk.drawdown.limit: 1, expected a fraction in (0, 1)":          {Drawdown: risk.Drawdown{Limit: 1}},
		"risk.drawdown.limit: is missing":                                {Drawdown: risk.Drawdown{Then: risk.Flatten}},
		"risk.drawdown.resume: 0.2, expected a fraction below the limit": {Drawdown: risk.Drawdown{Limit: 0.2, Resume: 0.2}},
		"risk.drawdown.window: -1 days":                                  {Drawdown: risk.Drawdown{Limit: 0.2, Window: -1}},
		`risk.drawdown.then: must be one of , hold, flatten, is "sell"`:  {Drawdown: risk.Drawdown{Limit: 0.2, Then: "sell"}},
		"risk.cvar.window: 19 days, expected 20 to":                      {CVaR: risk.CVaR{Limit: 0.05, Window: 19}},
		"risk.cvar.level: NaN":                                           {CVaR: risk.CVaR{Limit: 0.05, Level: math.NaN()}},
		"risk.cvar.cut: 1, expected a fraction":                          {CVaR: risk.CVaR{Limit: 0.05, Cut: 1}},
		"risk.cvar.limit: is missing":                                    {CVaR: risk.CVaR{Cut: 0.5}},
		"risk.cvar.limit: -0.05, expected":                               {CVaR: risk.CVaR{Limit: -0.05}},
		"risk.max_exposure: 1.5, expected a part":                        {MaxExposure: 1.5},
		"risk.max_weight: NaN, expected a part":                          {MaxWeight: math.NaN()},
		"risk.max_turnover: -1, expected a part":                         {MaxTurnover: -1},
	}) {
		n++
		var p configs.Problems
		c.Check(&p, "risk.")
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
		if _, err := risk.NewMonitor(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	if n != 13 {
		t.Errorf("%d cases", n)
	}
}

// TestBadMemories holds that what cannot have been remembered changes nothing.
func TestBadMemories(t *testing.T) {
	m := open(t, risk.Config{Drawdown: risk.Drawdown{Limit: 0.1, Window: 2}, CVaR: risk.CVaR{Limit: 0.1, Level: 0.5, Window: 2}})
	for d, v := range []float64{100, 90, 85} {
		m.Observe(monday.AddDate(0, 0, d), v)
	}
	good := m.Memory()
	n := 0
	for name, change := range sorted.All(map[string]func(*risk.Memory){
		"a day without a value":         func(s *risk.Memory) { s.Value = 0 },
		"a value that is none":          func(s *risk.Memory) { s.Value = math.Inf(1) },
		"a negative base":               func(s *risk.Memory) { s.Base = -1 },
		"too many peaks":                func(s *risk.Memory) { s.Peaks = []float64{1, 2, 3} },
		"no peaks":                      func(s *risk.Memory) { s.Peaks = nil },
		"no returns":                    func(s *risk.Memory) { s.Returns = nil },
		"a peak of nothing":             func(s *risk.Memory) { s.Peaks = []float64{0, 1} },
		"more than everything was lost": func(s *risk.Memory) { s.Returns = []float64{-1.5} },
		"a day before all days":         func(s *risk.Memory) { s.Day = -1 },
	}) {
		n++
		bad := m.Memory()
		if change(&bad); m.Restore(bad) == nil {
			t.Errorf("%s is accepted", name)
		}
		if got := m.Memory(); fmt.Sprint(got) != fmt.Sprint(good) {
			t.Errorf("%s: %v became %v", name, good, got)
		}
	}
	if n != 9 {
		t.Errorf("%d cases", n)
	}
	if err := open(t, risk.Config{}).Restore(risk.Memory{Day: 20240101, Value: 1, Stopped: true}); err == nil {
		t.Error("a stop without a limit is accepted")
	}
}

// TestMeasure: a monitor without limits measures what one with limits does, limits nothing, and
// goes on from its memory and from one that was taken before anything was measured.
func TestMeasure(t *testing.T) {
	limited := open(t, risk.Config{Drawdown: risk.Drawdown{Limit: 0.01}, CVaR: risk.CVaR{Limit: 0.001}})
	m, plain := open(t, risk.Config{}), open(t, risk.Config{})
	m.Measure()
	r, value, passed := rng.New(3).Stream(), 100.0, 0
	for day := range 300 {
		for hour := range 2 {
			value *= 1 + 0.02*r.Normal()
			at := monday.AddDate(0, 0, day).Add(time.Duration(hour) * time.Hour)
			limited.Observe(at, value)
			m.Observe(at, value)
			plain.Observe(at, value)
			loss, known := m.CVaR()
			want, must := limited.CVaR()
			if m.Drawdown() != limited.Drawdown() || loss != want || known != must || m.Stopped() || m.Factor() != 1 {
				t.Fatalf("%v: a drawdown of %v and a CVaR of %v, expected %v and %v", at, m.Drawdown(), loss, limited.Drawdown(), want)
			}
			if at95, _ := m.CVaRAt(0.95); at95 != loss {
				t.Fatalf("%v: %v at 95 %%, expected %v", at, at95, loss)
			}
			if at80, ok := m.CVaRAt(0.8); ok && known && at80 > loss {
				t.Fatalf("%v: %v at 80 %%, beyond %v at 95 %%", at, at80, loss)
			}
			if known && limited.Stopped() {
				passed++
			}
			if day == 150 {
				next := open(t, risk.Config{})
				if next.Measure(); next.Restore(m.Memory()) != nil {
					t.Fatal("its memory is refused")
				}
				m = next
			}
		}
	}
	if passed == 0 {
		t.Error("no limit was passed")
	}
	if loss, known := plain.CVaR(); known || loss != 0 || plain.Drawdown() != 0 {
		t.Error("something is measured without a limit")
	}

	// A memory of days that nobody measured.
	late := open(t, risk.Config{})
	if late.Measure(); late.Restore(plain.Memory()) != nil {
		t.Fatal("a memory without windows is refused")
	}
	late.Observe(monday.AddDate(0, 0, 299).Add(2*time.Hour), value)
	late.Observe(monday.AddDate(0, 0, 300), value/2)
	if late.Drawdown() != 0.5 {
		t.Errorf("a drawdown of %v, expected 0.5", late.Drawdown())
	}
}
