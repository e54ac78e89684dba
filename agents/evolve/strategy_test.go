package evolve

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

var space = tune.Space{
	"agent.ent_coef":      {Kind: tune.LogUniform, Low: 1e-3, High: 1e-1},
	"agent.learning_rate": {Kind: tune.LogUniform, Low: 1e-5, High: 1e-3},
}

func strategy(t *testing.T, text string) (Strategy, error) {
	t.Helper()
	doc, err := configs.Parse("search.yaml", []byte("strategy: "+text))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Strategy configs.Kinded `yaml:"strategy"`
	}
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return ParseStrategy(c.Strategy)
}

func parsed(t *testing.T, text string) Strategy {
	t.Helper()
	s, err := strategy(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// population draws members with random scores.
func population(n, generations int, s *rng.Stream) [][]Member {
	history := make([][]Member, generations)
	for g := range history {
		for i := range n {
			history[g] = append(history[g], Member{Score: s.Normal(), Values: space.Draw(s), Parent: i})
		}
	}
	return history
}

// TestMFPBT checks the published rule on random populations: who evolves when, who takes what of
// whom, and that nothing of the best quarter changes.
func TestMFPBT(t *testing.T) {
	m := parsed(t, "{kind: mf_pbt}")
	draws := rng.New(3).Stream()
	clones, migrants, slower, faster := 0, 0, 0, 0
	for _, c := range []struct{ members, subs int }{{4, 1}, {8, 2}, {12, 3}, {16, 4}, {20, 1}, {24, 3}, {32, 4}} {
		if err := m.Check(c.members); err != nil {
			t.Fatal(err)
		}
		size := c.members / c.subs
		every := []int{1, 10, 25, 50}[:c.subs]
		for _, round := range []int{1, 9, 10, 25, 50, 100} {
			history := population(c.members, round, draws)
			list := history[round-1]
			before := slices.Clone(list)
			takes := m.Next(history, space, rng.New(uint64(round)).Stream())
			if again := m.Next(history, space, rng.New(uint64(round)).Stream()); !reflect.DeepEqual(takes, again) {
				t.Error("another call decides otherwise")
			}
			if !reflect.DeepEqual(before, list) {
				t.Error("the members have changed")
			}
			order := ranked(list)
			rank := make([]int, len(list))
			for r, i := range order {
				rank[i] = r
			}
			for sub := range every {
				local := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return i/size != sub })
				for k, i := range local {
					take, quarter := takes[i], k*4/size
					switch take.Action {
					case Keep:
						if take.Weights != i || take.Hyper != i || !reflect.DeepEqual(take.Values, list[i].Values) || quarter == 3 && round%every[sub] == 0 {
							t.Errorf("%d of %d members keeps %+v", i, c.members, take)
						}
						continue
					case Clone:
						clones++
						if best := local[k-3*size/4]; quarter != 3 || take.Weights != best || take.Hyper != best {
							t.Errorf("member %d of rank %d of %d clones %+v", i, k, size, take)
						}
						for path, v := range sorted.All(take.Values) {
							if f := v / list[take.Hyper].Values[path]; math.Abs(f-0.8) > 1e-12 && math.Abs(f-1.25) > 1e-12 {
								t.Errorf("%s is multiplied by %g", path, f)
							}
						}
					case Migrate:
						migrants++
						from := take.Weights / size
						theirs := slices.DeleteFunc(slices.Clone(order), func(i int) bool { return i/size != from })
						want := take.Weights
						if every[sub] > every[from] {
							want = local[0]
							faster++
						} else {
							slower++
						}
						if quarter != 2 || from == sub || slices.Index(theirs, take.Weights) >= size/4 || rank[take.Weights] > rank[i] || take.Hyper != want || !reflect.DeepEqual(take.Values, list[want].Values) {
							t.Errorf("member %d of rank %d of %d migrates %+v", i, k, size, take)
						}
					}
					if round%every[sub] != 0 {
						t.Errorf("sub-population %d evolves after %d generations", sub, round)
					}
				}
			}
		}
	}
	if clones != 123 || migrants < 20 || slower == 0 || faster == 0 {
		t.Errorf("%d clones, %d migrants, %d from slower and %d from faster ones", clones, migrants, slower, faster)
	}
	for _, n := range []int{0, 1, 2, 5, 6, 10, 18} {
		if err := m.Check(n); err == nil || !strings.Contains(err.Error(), "does not divide") {
			t.Errorf("%d members: %v", n, err)
		}
	}
	for text, says := range sorted.All(map[string]string{
		"{kind: mf_pbt, frequencies: [1, 10, 25]}":                 "16 does not divide into 3",
		"{kind: mf_pbt, variant: owner, frequencies: [1, 10, 20]}": "16 does not divide into 3",
	}) {
		if err := parsed(t, text).Check(16); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestOwner: five members have one worst, which clones the best, and few hyper-parameters change,
// none beyond its bounds. Members without a score give nothing.
func TestOwner(t *testing.T) {
	m := parsed(t, "{kind: mf_pbt, variant: owner}")
	if err := m.Check(5); err != nil {
		t.Fatal(err)
	}
	list := []Member{{Score: 1}, {Score: math.NaN()}, {Score: 3}, {Score: 2}, {Score: 0}}
	for i := range list {
		list[i].Values = tune.Values{"agent.ent_coef": 1e-1, "agent.learning_rate": 1e-5}
	}
	s, up, down := rng.New(1).Stream(), 0, 0
	for range 1000 {
		takes := m.Next([][]Member{list}, space, s)
		for i, take := range takes {
			if want := i; take.Weights != want && (i != 1 || take.Weights != 2 || take.Action != Clone) {
				t.Fatalf("member %d takes %+v", i, take)
			}
		}
		if v := takes[1].Values; math.Abs(v["agent.ent_coef"]-0.08) < 1e-12 {
			down++
		} else if v["agent.ent_coef"] != 0.1 {
			t.Fatal(v)
		}
		if v := takes[1].Values["agent.learning_rate"]; v == 1.25e-5 {
			up++
		} else if v != 1e-5 {
			t.Fatal(v)
		}
	}
	// A twentieth of 1000 each, with a standard deviation of 7.
	if down < 20 || down > 80 || up < 20 || up > 80 {
		t.Errorf("%d are higher, %d lower", up, down)
	}
	for i := range list {
		list[i].Score = math.NaN()
	}
	for _, text := range []string{"{kind: mf_pbt, variant: owner}", "{kind: pbt}", "{kind: pb2}"} {
		for i, take := range parsed(t, text).Next([][]Member{list}, space, s) {
			if take.Weights != i || take.Action != Keep {
				t.Errorf("%s: member %d takes %+v of nobody with a score", text, i, take)
			}
		}
	}
}

// TestTruncation: a quarter is replaced, by PBT with hyper-parameters of the better member times
// 1.2 or 0.8 or drawn again, by PB2 with ones of the search space, and nobody else; a random
// search replaces nobody.
func TestTruncation(t *testing.T) {
	for text, want := range sorted.All(map[string]int{"{kind: pbt}": 3, "{kind: pb2, candidates: 20}": 3, "{kind: random_search}": 0, "{kind: pbt, quantile_fraction: 0.5}": 6}) {
		st := parsed(t, text)
		factors, drawn := 0, 0
		for seed := range uint64(20) {
			history := population(12, 5, rng.New(seed).Stream())
			list := history[4]
			order := ranked(list)
			takes := st.Next(history, space, rng.New(seed).Stream())
			for r, i := range order {
				take := takes[i]
				if r < 12-want {
					if take.Action != Keep || take.Weights != i {
						t.Errorf("%s: rank %d takes %+v", text, r, take)
					}
					continue
				}
				if take.Action != Clone || !slices.Contains(order[:want], take.Weights) || take.Hyper != take.Weights {
					t.Errorf("%s: rank %d takes %+v", text, r, take)
				}
				for path, v := range sorted.All(take.Values) {
					f := v / list[take.Hyper].Values[path]
					if math.Abs(f-1.2) < 1e-12 || math.Abs(f-0.8) < 1e-12 {
						factors++
					} else if p := space[path]; v >= p.Low && v <= p.High {
						drawn++
					} else {
						t.Errorf("%s: %s is %g after %g", text, path, v, list[take.Hyper].Values[path])
					}
				}
			}
		}
		// Of 120 values of PBT a quarter is drawn again, with a standard deviation of 5.
		if text == "{kind: pbt}" && (factors+drawn != 120 || drawn < 12 || drawn > 48) {
			t.Errorf("%d values times a factor, %d drawn", factors, drawn)
		}
	}
	for _, text := range []string{"{kind: pbt}", "{kind: pb2}"} {
		if err := parsed(t, text).Check(1); err == nil {
			t.Errorf("%s: a population of 1", text)
		}
	}
	for text, says := range sorted.All(map[string]string{
		"{kind: pbb}":                                   `did you mean "pb2"`,
		"{kind: pbt, quantile_fraction: 0.6}":           "quantile_fraction",
		"{kind: pbt, perturbation_factors: [0]}":        "perturbation_factors",
		"{kind: mf_pbt, frequencies: [10, 1]}":          "ascending",
		"{kind: mf_pbt, mutation: 0.1}":                 "variant paper changes all",
		"{kind: mf_pbt, variant: pape}":                 "variant",
		"{kind: random_search, quantile_fraction: 0.1}": "unknown key",
	}) {
		if _, err := strategy(t, text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestPB2: of hyper-parameters whose best value is known, PB2 chooses close to it once members have
// told, and a random draw is not.
func TestPB2(t *testing.T) {
	one := tune.Space{"agent.learning_rate": {Kind: tune.LogUniform, Low: 1e-5, High: 1e-1}}
	st := parsed(t, "{kind: pb2}")
	draws := rng.New(7).Stream()
	far, n := 0.0, 0
	var history [][]Member
	for g := range 8 {
		var list []Member
		for i := range 8 {
			m := Member{Values: one.Draw(draws), Parent: i}
			if g > 0 {
				d := math.Log10(m.Values["agent.learning_rate"]) + 3
				m.Score = history[g-1][i].Score + 1 - d*d
			}
			list = append(list, m)
		}
		history = append(history, list)
		if g < 4 {
			continue
		}
		for _, take := range st.Next(history, one, rng.New(uint64(g)).Stream()) {
			if take.Action == Clone {
				far += math.Abs(math.Log10(take.Values["agent.learning_rate"]) + 3)
				n++
			}
		}
	}
	// Draws lie one decade away on average.
	if far /= float64(n); n != 8 || far > 0.5 {
		t.Errorf("%d choices lie %.3f decades away", n, far)
	}
}

// TestToy is the quadratic of the PBT paper's figure 2: two members, of which each sees one of two
// coordinates, take gradient steps in turn and exploit every ten.
func TestToy(t *testing.T) {
	q := func(x [2]float64) float64 { return 1.2 - x[0]*x[0] - x[1]*x[1] }
	paths := []string{"h.0", "h.1"}
	toy := tune.Space{}
	for _, p := range paths {
		toy[p] = tune.Parameter{Kind: tune.Uniform, Low: 0, High: 1}
	}
	run := func(st Strategy, seed uint64) float64 {
		x := [2][2]float64{{0.9, 0.9}, {0.9, 0.9}}
		list := []Member{{Values: tune.Values{"h.0": 1, "h.1": 0}}, {Values: tune.Values{"h.0": 0, "h.1": 1}}}
		s := rng.New(seed).Stream()
		for step := range 200 {
			for i := range x {
				for k, p := range paths {
					x[i][k] -= 0.01 * 2 * list[i].Values[p] * x[i][k]
				}
				if step%10 > 0 {
					continue
				}
				list[0].Score, list[1].Score = q(x[0]), q(x[1])
				take := st.Next([][]Member{list}, toy, s)[i]
				x[i], list[i].Values = x[take.Weights], take.Values
			}
		}
		return max(q(x[0]), q(x[1]))
	}
	if got := run(RandomSearch{}, 0); math.Abs(got-0.3897494379486973) > 1e-12 {
		t.Errorf("a grid: %.17g", got)
	}
	// A draw of the noise of which nothing is left.
	exploit := PBT{Quantile: 0.5, Noise: math.SmallestNonzeroFloat64}
	if got := run(exploit, 0); math.Abs(got-1.1663655330888705) > 1e-12 {
		t.Errorf("exploit only: %.17g", got)
	}
	// The published quantiles are of 500 seeds, so the share below each lies around it as that of
	// 500 draws does.
	below, n := map[float64]float64{}, 4000.0
	published := map[float64]float64{0.01: 1.0498641577911254, 0.05: 1.105501406869443, 0.5: 1.1716898012524979}
	for seed := range int(n) {
		got := run(PBT{Quantile: 0.5, Noise: 0.1}, uint64(seed))
		for at, x := range sorted.All(published) {
			if got < x {
				below[at] += 1 / n
			}
		}
	}
	for at, share := range sorted.All(below) {
		if math.Abs(share-at) > 3*math.Sqrt(at*(1-at)/500) {
			t.Errorf("%.4f lie below the quantile %g", share, at)
		}
	}
	if len(below) != 3 {
		t.Errorf("%v lie below the quantiles", below)
	}
	t.Logf("%v lie below the quantiles", below)
}

func TestMAPD(t *testing.T) {
	box := envs.NewBox(-1, 2, 2)
	n := 0
	for _, c := range []struct {
		space   envs.Space
		simplex bool
		actions [][]float64
		want    float64
	}{
		{box, false, [][]float64{{-1, -1, 0, 0}, {2, 2, 0, 0}}, 0.5},
		{box, false, [][]float64{{0, 0}, {0, 0}, {3, 0}}, 2.0 / 3 / math.Sqrt2},
		{envs.NewBox(0, 1, 3), true, [][]float64{{1, 0, 0, 0.5, 0.5, 0}, {0, 1, 0, 0.25, 0.5, 0.25}}, 0.625},
		{envs.Discrete{N: 3}, false, [][]float64{{0, 1, 2, 2}, {0, 2, 2, 1}}, 0.5},
		{envs.Unbounded(1), false, [][]float64{{0}, {1}}, math.NaN()},
		{box, false, [][]float64{{0, 0}}, math.NaN()},
	} {
		if got, _ := MAPD(c.space, c.simplex, c.actions); math.Abs(got-c.want) > 1e-12 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%v: %g, expected %g", c.space, got, c.want)
		}
		n++
	}
	if n != 6 {
		t.Errorf("%d cases", n)
	}
}
