package ope

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// The tabular problem has the states 0 and 1, two actions, and three steps. All probabilities of
// the behaviour and of the environment are multiples of ¼, so that a data set can have every
// trajectory as often as it is to be expected, and expectations are means.
var (
	behaviour = [2][2]float64{{0.25, 0.75}, {0.5, 0.5}}
	target    = [2][2]float64{{0.9, 0.1}, {0.35, 0.65}}
	// stay is the probability that the next state is 0, over that it is 1; what is left terminates.
	stay    = [2][2][2]float64{{{0.5, 0.25}, {0.25, 0.5}}, {{0.25, 0.75}, {0.5, 0.25}}}
	rewards = [2][2]float64{{1, -0.5}, {0.3, 2}}
)

const (
	steps = 3
	gamma = 0.9
)

// exact returns the values with t steps to go, of states and of actions.
func exact(t int) (v [2]float64, q [2][2]float64) {
	if t == 0 {
		return v, q
	}
	next, _ := exact(t - 1)
	for s := range 2 {
		for a := range 2 {
			q[s][a] = rewards[s][a]
			for s2, p := range stay[s][a] {
				q[s][a] += gamma * p * next[s2]
			}
			v[s] += target[s][a] * q[s][a]
		}
	}
	return v, q
}

// every appends all trajectories from a state, each as often as it comes in 4^(2·left), cut off
// after left steps. q is wrong by so much of the second action, and v is its mean by the policy.
func every(list []Trajectory, so Trajectory, s, togo, left int, times float64, wrong float64) []Trajectory {
	v, q := exact(togo)
	so.V = append(so.V[:len(so.V):len(so.V)], v[s]-wrong*target[s][1])
	if left == 0 {
		for range int(times) {
			list = append(list, so)
		}
		return list
	}
	for a := range 2 {
		x := so
		x.LogRatio = append(so.LogRatio[:len(so.LogRatio):len(so.LogRatio)], math.Log(target[s][a]/behaviour[s][a]))
		x.Reward = append(so.Reward[:len(so.Reward):len(so.Reward)], rewards[s][a])
		x.Q = append(so.Q[:len(so.Q):len(so.Q)], q[s][a]-wrong*float64(a))
		over := 1.0
		n := len(so.Discount)
		for s2, p := range stay[s][a] {
			over -= p
			x.Discount = append(so.Discount[:n:n], gamma)
			if togo == 1 {
				x.Discount[n] = 0
			}
			list = every(list, x, s2, togo-1, left-1, times*behaviour[s][a]*p, wrong)
		}
		x.Discount = append(so.Discount[:n:n], 0)
		ended := x
		ended.V = append(x.V[:len(x.V):len(x.V)], 7) // Discounted by 0.
		for range int(times * behaviour[s][a] * over) {
			list = append(list, ended)
		}
	}
	return list
}

// TestTabular: with every trajectory as often as it is to be expected, the estimators are the exact
// value: doubly robust ones also with a wrong q, and where episodes are cut off with the exact one.
func TestTabular(t *testing.T) {
	cases := 0
	for what, x := range sorted.All(map[string]struct {
		left       int
		wrong      float64
		estimators []string
	}{
		"whole":   {steps, 0, []string{PDIS, WPDIS, DR, WDR, FQE}},
		"wrong q": {steps, 0.4, []string{PDIS, WPDIS, DR, WDR}},
		"cut off": {steps - 1, 0, []string{DR, WDR, FQE}},
		"one":     {1, 0, []string{DR, WDR, FQE}},
	}) {
		list := every(nil, Trajectory{}, 0, steps, x.left, math.Pow(16, float64(x.left)), x.wrong)
		if len(list) != int(math.Pow(16, float64(x.left))) {
			t.Fatalf("%s: %d trajectories", what, len(list))
		}
		v, _ := exact(steps)
		for _, name := range x.estimators {
			e, err := Of(t.Context(), name, list, Bootstrap{})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(e.Value-v[0]) > 1e-9 {
				t.Errorf("%s: %s is %.12f, expected %.12f", what, name, e.Value, v[0])
			}
			cases++
		}
		// The data's own returns are another value.
		if e, err := Of(t.Context(), Behaviour, list, Bootstrap{}); err != nil || math.Abs(e.Value-v[0]) < 0.05 {
			t.Errorf("%s: behaviour is %v, %v", what, e.Value, err)
		}
	}
	if cases != 15 {
		t.Errorf("%d cases", cases)
	}
}

// draw draws n episodes of the tabular problem, whose q is exact.
func draw(s *rng.Stream, n int) []Trajectory {
	list := make([]Trajectory, n)
	for i := range list {
		x, state := &list[i], 0
		for togo := steps; ; togo-- {
			v, q := exact(togo)
			x.V = append(x.V, v[state])
			if togo == 0 {
				x.Discount[len(x.Discount)-1] = 0
				break
			}
			a := 0
			if !s.Bernoulli(behaviour[state][0]) {
				a = 1
			}
			x.LogRatio = append(x.LogRatio, math.Log(target[state][a]/behaviour[state][a]))
			x.Reward, x.Q, x.Discount = append(x.Reward, rewards[state][a]), append(x.Q, q[state][a]), append(x.Discount, gamma)
			if u, p := s.Float64(), stay[state][a]; u < p[0] {
				state = 0
			} else if u < p[0]+p[1] {
				state = 1
			} else {
				x.Discount[len(x.Discount)-1] = 0
				x.V = append(x.V, 0)
				break
			}
		}
	}
	return list
}

// TestWeighted compares wpdis and wdr with their formulas, written down as they are, on episodes of
// several lengths; ratios of e^±900 change nothing where all episodes have them.
func TestWeighted(t *testing.T) {
	cases := 0
	for seed := range 20 {
		s := rng.New(uint64(seed)).Stream()
		list := draw(s, 15)
		for i := range list {
			list[i].Discount[len(list[i].Discount)-1] = float64(i % 2) // Some are cut off.
			list[i].V[len(list[i].Reward)] = s.Normal()
		}
		for _, shift := range []float64{0, 900, -900} {
			shifted := make([]Trajectory, len(list))
			for i := range list {
				shifted[i] = list[i]
				shifted[i].LogRatio = append([]float64{list[i].LogRatio[0] + shift}, list[i].LogRatio[1:]...)
			}
			for _, name := range []string{WPDIS, WDR} {
				e, err := Of(t.Context(), name, shifted, Bootstrap{})
				if want := naive(list, name == WDR); err != nil || math.Abs(e.Value-want) > 1e-9 {
					t.Errorf("seed %d, shift %g: %s is %v, %v; expected %v", seed, shift, name, e.Value, err, want)
				}
				cases++
			}
		}
	}
	if cases != 20*3*2 {
		t.Errorf("%d cases", cases)
	}
}

// naive is the package comment's formula of wpdis, and of wdr.
func naive(list []Trajectory, robust bool) float64 {
	rho := func(x *Trajectory, t int) float64 {
		sum := 0.0
		for k := range min(t+1, len(x.LogRatio)) {
			sum += x.LogRatio[k]
		}
		return math.Exp(sum)
	}
	weight := func(x *Trajectory, t int) float64 {
		if t < 0 {
			return 1 / float64(len(list))
		}
		sum := 0.0
		for j := range list {
			sum += rho(&list[j], t)
		}
		return rho(x, t) / sum
	}
	sum := 0.0
	for i := range list {
		x, d := &list[i], 1.0
		for t, r := range x.Reward {
			if robust {
				sum += d * (weight(x, t)*(r-x.Q[t]) + weight(x, t-1)*x.V[t])
			} else {
				sum += d * weight(x, t) * r
			}
			d *= x.Discount[t]
		}
		if robust {
			sum += d * weight(x, len(x.Reward)-1) * x.V[len(x.Reward)]
		}
	}
	return sum
}

// TestCoverage measures how often intervals of 95 % have the value, on data sets of a bandit of
// three arms: each share must be one that 95 % gives but once in a thousand.
func TestCoverage(t *testing.T) {
	const sets, episodes = 600, 150
	b, pi, mean := [3]float64{0.5, 0.3, 0.2}, [3]float64{0.2, 0.3, 0.5}, [3]float64{1, 0, 2}
	value := 0.0
	for a, p := range pi {
		value += p * mean[a]
	}
	slack, cases := 3.29*math.Sqrt(0.95*0.05/sets), 0
	for _, name := range []string{WDR, DR, WPDIS, PDIS}[:longtest.Cases(t, 4, 1)] {
		within := 0
		for k := range sets {
			key := rng.New(23).Split("set", k)
			s, list := key.Stream(), make([]Trajectory, episodes)
			for i := range list {
				a := s.Categorical([]float32{float32(math.Log(b[0])), float32(math.Log(b[1])), float32(math.Log(b[2]))})
				// q is a little wrong.
				list[i] = Trajectory{LogRatio: []float64{math.Log(pi[a] / b[a])}, Reward: []float64{mean[a] + s.Normal()}, Discount: []float64{0}, Q: []float64{mean[a] + 0.2}, V: []float64{value + 0.2, 0}}
			}
			e, err := Of(t.Context(), name, list, Bootstrap{Samples: 200, Level: 0.95, Key: key})
			if err != nil {
				t.Fatal(err)
			}
			if e.Low <= value && value <= e.High {
				within++
			}
		}
		if c := float64(within) / sets; math.Abs(c-0.95) > slack {
			t.Errorf("%s: %.3f of %d intervals have the value, expected 0.95 ± %.3f", name, c, sets, slack)
		} else {
			t.Logf("%s: %.3f", name, c)
		}
		cases++
	}
	if cases != longtest.Cases(t, 4, 1) {
		t.Errorf("%d estimators", cases)
	}
}

// TestEffectiveSampleSize has weights whose sizes are known.
func TestEffectiveSampleSize(t *testing.T) {
	cases := 0
	for want, weights := range sorted.All(map[float64][]float64{4: {2, 2, 2, 2}, 1.6: {1, 3}, 1: {5, 0, 0}}) {
		var list []Trajectory
		for _, w := range weights {
			list = append(list, Trajectory{LogRatio: []float64{math.Log(w) - 800}})
		}
		if got := EffectiveSampleSize(list); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %v, expected %v", weights, got, want)
		}
		cases++
	}
	if cases != 3 {
		t.Errorf("%d cases", cases)
	}
}

// TestOneEpisode: each sample of one episode is that episode, which bounds nothing.
func TestOneEpisode(t *testing.T) {
	list := []Trajectory{{LogRatio: []float64{0}, Reward: []float64{2}, Discount: []float64{0}}}
	for _, name := range []string{Behaviour, PDIS, WPDIS} {
		e, err := Of(t.Context(), name, list, Bootstrap{Samples: 10, Level: 0.9})
		if err != nil || e.Value != 2 || !math.IsNaN(e.Low) || !math.IsNaN(e.High) || e.Note == "" {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

// TestNothingInCommon: where no episode has what the policy does, weighted estimates have no value,
// and others are 0.
func TestNothingInCommon(t *testing.T) {
	list := []Trajectory{
		{LogRatio: []float64{0, math.Inf(-1)}, Reward: []float64{1, 1}, Discount: []float64{1, 0}},
		{LogRatio: []float64{math.Inf(-1)}, Reward: []float64{1}, Discount: []float64{0}},
	}
	e, err := Of(t.Context(), WPDIS, list, Bootstrap{Samples: 10, Level: 0.9})
	if err != nil || !math.IsNaN(e.Value) || e.Note == "" || !math.IsNaN(e.EffectiveSampleSize) {
		t.Errorf("%+v, %v", e, err)
	}
	// One episode takes the first step as the policy would: samples without it have no value.
	if e, err = Of(t.Context(), PDIS, list, Bootstrap{Samples: 10, Level: 0.9}); err != nil || e.Value != 0.5 || !(e.Low <= 0.5 && 0.5 <= e.High) {
		t.Errorf("%+v, %v", e, err)
	}
}
