package meta_test

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/meta"
	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// fixed is an expert that always does the same.
type fixed struct {
	d      vector.Decision
	calls  int
	closed bool
}

func (p *fixed) Act(context.Context, rng.Key, *vector.Batch) (*vector.Decision, error) {
	p.calls++
	return &p.d, nil
}
func (p *fixed) Remembers() bool { return false }
func (p *fixed) Close() error    { p.closed = true; return nil }

// choice is one of a corridor's moves, taken with a probability.
func choice(a int64, probability float64) *fixed {
	logs := []float32{float32(math.Log(1 - probability)), float32(math.Log(1 - probability))}
	logs[a] = float32(math.Log(probability))
	return &fixed{d: vector.Decision{Actions: tensor.Of([]int64{a}, 1), Logits: tensor.Of(logs, 1, 2)}}
}

// force is a Gaussian expert.
func force(mean, std float32) *fixed {
	return &fixed{d: vector.Decision{Actions: tensor.Of([]float32{mean}, 1, 1), Mean: []float32{mean}, LogStd: []float32{float32(math.Log(float64(std)))}}}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func list[P vector.Policy](experts ...P) (out []vector.Policy) {
	for _, p := range experts {
		out = append(out, p)
	}
	return out
}

func diverse(choose string) meta.Config {
	c := meta.Defaults()
	c.Segment, c.Choose = 3, choose
	c.Diversity = meta.Diversity{KLCoef: 0.1, KLCoefMax: 0.2, UsageCoef: 0.01, UsageWindow: 4}
	return c
}

// market has two assets: A rises by 2 % a day, and B falls by so many parts on the days of falls,
// and rises by 1 % on others.
func market(days int, falls map[int]float64) *trading.Market {
	m := &trading.Market{Assets: []string{"A", "B"}, Features: []string{"zero"}, X: make([]float32, days*2)}
	a, b := 100.0, 100.0
	for t := range days {
		m.Dates = append(m.Dates, time.Date(2024, 1, 1+t, 15, 0, 0, 0, time.UTC))
		a, b = a*1.02, b*(1.01-falls[t])
		m.Open, m.Close = append(m.Open, a, b), append(m.Close, a, b)
		m.Tradable = append(m.Tradable, trading.Both, trading.Both)
	}
	return m
}

func weights(m *trading.Market) *trading.Env {
	c := trading.Defaults()
	c.Window, c.FeeRate, c.Actions = 1, 0, trading.Weights
	c.Weights.Simplex = trading.Projection
	c.Execution.Fill = trading.SameClose
	c.Risk.MaxExposure = 1
	s := must(trading.NewSource(m, c))
	return must(s.Env(trading.Range{First: 0, Last: m.Len() - 1}))
}

func holder(w ...float32) *fixed {
	return &fixed{d: vector.Decision{Actions: tensor.Of(w, 1, len(w))}}
}

// orders is a market in which A cannot be traded on some days.
func orders(m *trading.Market, suspended ...int) *trading.Env {
	c := trading.Defaults()
	c.Window, c.FeeRate = 1, 0
	c.Execution.Fill = trading.SameClose
	for _, day := range suspended {
		m.Tradable[2*day] = 0
	}
	s := must(trading.NewSource(m, c))
	return must(s.Env(trading.Range{First: 0, Last: m.Len() - 1}))
}

// order is an expert that gives the same orders where its mask lets it, and else holds.
func order(a ...int64) *masked { return &masked{orders: a, action: tensor.Of(slices.Clone(a), len(a))} }

type masked struct {
	orders []int64
	action *tensor.Tensor
	d      vector.Decision
}

func (p *masked) Act(_ context.Context, _ rng.Key, b *vector.Batch) (*vector.Decision, error) {
	for i, o := range p.orders {
		if p.action.Int64s()[i] = o; !b.Mask.Bools()[3*i+int(o)] {
			p.action.Int64s()[i] = trading.Hold
		}
	}
	p.d.Actions = p.action
	return &p.d, nil
}
func (p *masked) Remembers() bool { return false }
func (p *masked) Close() error    { return nil }

// limits stop an expert at a drawdown of 10 % within 5 days, and cut its exposure to a half at a
// mean of the worst of two days of 2 %.
func limits(c *meta.Config) {
	c.Risk = risk.Config{Drawdown: risk.Drawdown{Limit: 0.1, Window: 5, Resume: 0.05}, CVaR: risk.CVaR{Limit: 0.02, Level: 0.5, Window: 4, Resume: 0.01}}
}

// TestContract runs the suite of environments over discrete, mixed, unmasked and masked choices.
func TestContract(t *testing.T) {
	cases := map[string]func() (envs.Env, error){
		"expert": func() (envs.Env, error) {
			return meta.New(must(corridor.New(corridor.Defaults())), list(choice(0, 0.9), choice(1, 0.9), choice(1, 0.6)), diverse(meta.Expert))
		},
		"mixture": func() (envs.Env, error) {
			return meta.New(must(classic.NewPendulum(classic.PendulumDefaults())), list(force(-1, 0.5), force(1, 0.1)), diverse(meta.Mixture))
		},
		"risk": func() (envs.Env, error) {
			c := diverse(meta.Expert)
			limits(&c)
			return meta.New(weights(market(40, map[int]float64{6: 0.2, 7: 0.1, 20: 0.3})), list(holder(1, 0, 0), holder(0, 1, 0), holder(0, 0.5, 0.5)), c)
		},
		"mixture under risk": func() (envs.Env, error) {
			c := diverse(meta.Mixture)
			limits(&c)
			return meta.New(weights(market(40, map[int]float64{6: 0.2, 7: 0.1, 20: 0.3})), list(holder(1, 0, 0), holder(0, 1, 0)), c)
		},
	}
	stocks := func(change func(c *meta.Config), inside func() envs.Env, experts ...vector.Policy) func() (envs.Env, error) {
		return func() (envs.Env, error) {
			c := meta.Defaults()
			c.Segment, c.Choose = 3, meta.Assets
			if change != nil {
				change(&c)
			}
			return meta.New(inside(), experts, c)
		}
	}
	falling := func() envs.Env { return weights(market(40, map[int]float64{6: 0.2, 7: 0.1, 20: 0.3})) }
	cases["assets"] = stocks(nil, falling, holder(0.5, 0.5, 0))
	cases["assets and experts"] = stocks(func(c *meta.Config) { limits(c); c.Diversity = diverse(meta.Assets).Diversity }, falling, holder(1, 0, 0), holder(0, 1, 0), holder(0, 0.5, 0.5))
	cases["orders"] = stocks(nil, func() envs.Env { return orders(market(40, nil)) }, order(trading.Buy, trading.Buy))
	for _, name := range []string{"expert", "mixture", "risk", "mixture under risk", "assets", "assets and experts", "orders"} {
		t.Run(name, func(t *testing.T) {
			r := envtest.Run(t, cases[name], envtest.Options{Steps: 400})
			if r.Saved == 0 || r.Episodes == 0 {
				t.Errorf("%d episodes were saved, %d played", r.Saved, r.Episodes)
			}
		})
	}
}

// TestSegments: a step is what the environment inside does in so many of its own, the end of an
// episode ends it, and only who is in charge is asked.
func TestSegments(t *testing.T) {
	inside := must(corridor.New(corridor.Config{Cells: 8}))
	left, right := choice(0, 0.9), choice(1, 0.9)
	c := meta.Defaults()
	c.Segment = 5
	e := must(meta.New(inside, list(left, right), c))
	ts := envs.NewTimeStep(e.Spec())
	key := rng.New(3)
	if err := e.Reset(key, ts); err != nil {
		t.Fatal(err)
	}
	at := int(math.Round(float64(ts.Obs[0].Float32s()[0]) * 7))
	steps, sum := 0, 0.0
	for ts.Type != envs.Last {
		if err := e.Step(tensor.Scalar(int64(1)), ts); err != nil {
			t.Fatal(err)
		}
		steps += int(ts.Info[len(ts.Info)-1])
		sum += ts.Reward
		if charge := ts.Obs[1].Float32s(); charge[0] != 0 || charge[2] != 1 {
			t.Errorf("experts %v", charge)
		}
	}
	if steps != 7-at || right.calls != steps || left.calls != 0 || sum != 1 {
		t.Errorf("from cell %d: %d steps, %d and %d calls, a reward of %g", at, steps, left.calls, right.calls, sum)
	}
	if err := e.Close(); err != nil || !left.closed || !right.closed {
		t.Errorf("close: %v, %t, %t", err, left.closed, right.closed)
	}
}

// TestDivergence compares bonuses with what they are by definition.
func TestDivergence(t *testing.T) {
	c := meta.Defaults()
	c.Segment = 1
	c.Diversity = meta.Diversity{KLCoef: 1, KLClip: 10}
	kl := func(e *meta.Env, action *tensor.Tensor) float64 {
		t.Helper()
		ts := envs.NewTimeStep(e.Spec())
		if err := e.Reset(rng.New(1), ts); err != nil {
			t.Fatal(err)
		}
		if err := e.Step(action, ts); err != nil {
			t.Fatal(err)
		}
		spec := e.Spec()
		return ts.Info[spec.InfoIndex("kl")]
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %g, expected %g", what, got, want)
		}
	}
	// Of (0.1, 0.9) from the mean of that and (0.8, 0.2).
	discrete := must(meta.New(must(corridor.New(corridor.Defaults())), list(choice(1, 0.9), choice(0, 0.8)), c))
	near("categorical", kl(discrete, tensor.Scalar(int64(0))), 0.1*math.Log(0.1/0.45)+0.9*math.Log(0.9/0.55))
	same := must(meta.New(must(corridor.New(corridor.Defaults())), list(choice(1, 0.9), choice(1, 0.9)), c))
	near("equal policies", kl(same, tensor.Scalar(int64(1))), 0)
	// N(−1, ½²) from the Gaussian of the mixture with N(1, 0.1²): mean 0, variance 1.13.
	c.Choose = meta.Mixture
	pendulum := must(meta.New(must(classic.NewPendulum(classic.PendulumDefaults())), list(force(-1, 0.5), force(1, 0.1)), c))
	scores := tensor.Of([]float32{5, -5}, 2)
	w := 1 / (1 + math.Exp(-10))
	m, v := -w+(1-w), w*0.25+(1-w)*0.01
	v += w*(-1-m)*(-1-m) + (1-w)*(1-m)*(1-m)
	near("gaussian", kl(pendulum, scores), 0.5*(math.Log(1.13/v)+(v+m*m)/1.13-1))
	near("all alike", kl(pendulum, tensor.Of([]float32{2, 2}, 2)), 0)
	// Policies without a deviation have a quarter of half the range of the torque, 0.25·2.
	c.Choose, c.Diversity.Noise = meta.Expert, 0.25
	actions := list(holder(-1), holder(1))
	certain := must(meta.New(must(classic.NewPendulum(classic.PendulumDefaults())), actions, c))
	near("without a deviation", kl(certain, tensor.Scalar(int64(0))), 0.5*(math.Log(1.25/0.25)+(0.25+1)/1.25-1))
}

// TestUsage: a choice that is seldom made earns more, and the coefficient of the divergence rises
// with how concentrated the choices are.
func TestUsage(t *testing.T) {
	c := meta.Defaults()
	c.Segment = 1
	c.Diversity = meta.Diversity{UsageCoef: 1, UsageWindow: 2}
	e := must(meta.New(must(corridor.New(corridor.Config{Cells: 100})), list(choice(0, 0.9), choice(1, 0.9)), c))
	ts := envs.NewTimeStep(e.Spec())
	if err := e.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	// Counts begin with one each; the window has two decisions.
	for i, row := range []struct {
		action int64
		share  float64
	}{{0, 1. / 2}, {0, 2. / 3}, {0, 3. / 4}, {1, 1. / 4}, {1, 2. / 4}, {1, 3. / 4}} {
		if err := e.Step(tensor.Scalar(row.action), ts); err != nil {
			t.Fatal(err)
		}
		if want := -math.Log(row.share); math.Abs(ts.Reward-want) > 1e-12 {
			t.Errorf("decision %d earns %g, expected %g", i, ts.Reward, want)
		}
	}

	c.Diversity = meta.Diversity{KLCoef: 0.1, KLCoefMax: 0.2, KLClip: 10, UsageWindow: 4}
	e = must(meta.New(must(corridor.New(corridor.Config{Cells: 100})), list(choice(0, 0.9), choice(1, 0.9)), c))
	if err := e.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	kl := 0.9*math.Log(0.9/0.5) + 0.1*math.Log(0.1/0.5)
	for i, share := range []float64{1. / 2, 2. / 3, 3. / 4, 4. / 5, 5. / 6, 5. / 6} {
		if err := e.Step(tensor.Scalar(int64(0)), ts); err != nil {
			t.Fatal(err)
		}
		entropy := -(share*math.Log(share) + (1-share)*math.Log(1-share)) / math.Log(2)
		if want := (0.1 + 0.1*(1-entropy)) * kl; math.Abs(ts.Reward-want) > 1e-6 {
			t.Errorf("decision %d earns %g, expected %g", i, ts.Reward, want)
		}
	}
}

// TestUsageOfTraining: who is trained earns by the decisions of all episodes, also after having been
// saved, and observes those of the episode; each environment counts its own, and one in which nobody
// is trained those of the episode.
func TestUsageOfTraining(t *testing.T) {
	c := meta.Defaults()
	c.Segment = 1
	c.Diversity = meta.Diversity{UsageCoef: 1, UsageWindow: 8}
	open := func() *meta.Env {
		return must(meta.New(must(corridor.New(corridor.Config{Cells: 100})), list(choice(0, 0.9), choice(1, 0.9)), c))
	}
	trained, beside, evaluated := open(), open(), open()
	trained.Train()
	beside.Train()
	ts := envs.NewTimeStep(trained.Spec())
	episode := func(e *meta.Env, key uint64, decisions int) (last float64) {
		if err := e.Reset(rng.New(key), ts); err != nil {
			t.Fatal(err)
		}
		if got := ts.Obs[len(ts.Obs)-1].Float32s()[1]; got != 0.5 {
			t.Errorf("an episode begins with a usage of %g to observe, expected 0.5", got)
		}
		for range decisions {
			if err := e.Step(tensor.Scalar(int64(0)), ts); err != nil {
				t.Fatal(err)
			}
			last = ts.Reward
		}
		return last
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s earns %g, expected %g", what, got, want)
		}
	}
	// The decision is counted by what was chosen before it, and one for each of two experts.
	near("the third decision", episode(trained, 1, 3), -math.Log(3./4))
	near("the second of an evaluation", episode(evaluated, 1, 2), -math.Log(2./3))
	near("the fifth decision, in another episode", episode(trained, 2, 2), -math.Log(5./6))
	near("the first decision in another environment", episode(beside, 2, 1), -math.Log(1./2))
	near("the second of another evaluation", episode(evaluated, 2, 2), -math.Log(2./3))

	saved := must(trained.SaveState())
	again := open()
	again.Train()
	if err := again.LoadState(saved, ts); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*meta.Env{trained, again} {
		if err := e.Step(tensor.Scalar(int64(0)), ts); err != nil {
			t.Fatal(err)
		}
		near("the sixth decision", ts.Reward, -math.Log(6./7))
		// The window has eight decisions.
		near("the eleventh", episode(e, 3, 5), -math.Log(9./10))
		if a, b := must(trained.SaveState()), must(e.SaveState()); !bytes.Equal(a, b) {
			t.Errorf("the state is\n%s\nexpected\n%s", b, a)
		}
	}
}

// TestRisk: a book that falls masks its expert and no other, until what was lost is older than the
// window; where all are masked the least bad one is not.
func TestRisk(t *testing.T) {
	c := meta.Defaults()
	c.Segment = 1
	limits(&c)
	e := must(meta.New(weights(market(40, map[int]float64{5: 0.2, 6: 0.1})), list(holder(1, 0, 0), holder(0, 1, 0)), c))
	ts := envs.NewTimeStep(e.Spec())
	if err := e.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	masked := 0
	for day := 1; day < 30; day++ {
		chosen := int64(1)
		if !ts.Mask.Bools()[1] {
			chosen = 0
			masked++
		}
		if err := e.Step(tensor.Scalar(chosen), ts); err != nil {
			t.Fatal(err)
		}
		if !ts.Mask.Bools()[0] {
			t.Errorf("day %d: the expert that rises is masked", day)
		}
	}
	if masked != 4 {
		t.Errorf("masked for %d days, expected 4: the peak leaves a window of 5 days", masked)
	}

	both := must(meta.New(weights(market(40, map[int]float64{3: 0.3, 6: 0.3})), list(holder(0, 1, 0), holder(0, 0.9, 0.1)), func() meta.Config { c.Choose = meta.Expert; c.Segment = 2; return c }()))
	ts = envs.NewTimeStep(both.Spec())
	if err := both.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	beyond := 0
	for range 19 {
		a := int64(0)
		if !ts.Mask.Bools()[0] {
			a = 1
		}
		if err := both.Step(tensor.Scalar(a), ts); err != nil {
			t.Fatal(err)
		}
		m, of := ts.Mask.Bools(), ts.Obs[len(ts.Obs)-1].Float32s()
		first, second := of[2], of[6] // the drawdowns
		if first > 0.1 && second > 0.1 {
			if beyond++; m[0] != (first <= second) || m[1] != (first > second) {
				t.Errorf("with drawdowns of %g and %g the mask is %v", first, second, m)
			}
		} else if !m[0] && !m[1] {
			t.Error("nobody may be chosen")
		}
	}
	if beyond == 0 {
		t.Error("the drawdowns of both were never beyond the limit at once")
	}
}

// TestPositionCut: an expert whose worst days were too bad may hold half of what the account may,
// and another one all of it.
func TestPositionCut(t *testing.T) {
	c := meta.Defaults()
	c.Segment = 1
	limits(&c)
	c.Risk.Drawdown = risk.Drawdown{}
	inside := weights(market(40, map[int]float64{5: 0.06, 6: 0.06}))
	e := must(meta.New(inside, list(holder(1, 0, 0), holder(0, 1, 0)), c))
	ts := envs.NewTimeStep(e.Spec())
	if err := e.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	invested := func(asset int, chosen int64) float64 {
		t.Helper()
		price := inside.Source().Market().Close[2*inside.Bar()+asset] // at which it is filled
		value := inside.Value()
		if err := e.Step(tensor.Scalar(chosen), ts); err != nil {
			t.Fatal(err)
		}
		return inside.Positions()[asset] * price / value
	}
	for day, row := range []struct {
		chosen int64
		want   float64
	}{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 0.5}, {1, 0.5}, {0, 1}, {1, 0.5}, {0, 1}, {0, 1}, {0, 1}, {1, 1}} {
		if got := invested(int(row.chosen), row.chosen); math.Abs(got-row.want) > 1e-6 {
			t.Errorf("day %d: %.4f of the value is held, expected %g", day, got, row.want)
		}
	}
}

// TestAssets: what is left out of a segment is sold and not bought in it, what cannot be traded
// cannot be chosen, and if nothing can everything may be.
func TestAssets(t *testing.T) {
	c := meta.Defaults()
	c.Segment, c.Choose = 2, meta.Assets
	inside := weights(market(40, nil))
	e := must(meta.New(inside, list(holder(0.5, 0.5, 0), holder(0, 0.25, 0.75)), c))
	spec := e.Spec()
	if spec.Joint || !spec.Masked || spec.Action.String() != "multi-discrete[2 2 2]" {
		t.Errorf("%+v", spec.Action)
	}
	ts := envs.NewTimeStep(spec)
	if err := e.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	shares := func() (list []float64) {
		close := inside.Source().Market().Close
		for i, q := range inside.Positions() {
			list = append(list, q*close[2*(inside.Bar()-1)+i]/inside.Value())
		}
		return list
	}
	told := 0
	e.Watch(func(in meta.Inner) error {
		if len(in.Held) == 2 {
			told++
		}
		return nil
	})
	for _, row := range []struct {
		action []int64
		want   []float64
		held   float64
	}{
		{[]int64{1, 1, 0}, []float64{0.5, 0.5}, 2},
		{[]int64{1, 0, 0}, []float64{1, 0}, 1},
		{[]int64{0, 1, 1}, []float64{0, 0.25}, 1},
		{[]int64{1, 0, 1}, []float64{0, 0}, 1},
		{[]int64{0, 0, 0}, []float64{0, 0}, 0},
		{[]int64{0, 1, 0}, []float64{0, 1}, 1},
	} {
		if err := e.Step(tensor.Of(row.action, 3), ts); err != nil {
			t.Fatal(err)
		}
		for i, s := range shares() {
			// At the prices that were traded at, of a day on which they rise by 1 or 2 %.
			if math.Abs(s-row.want[i]) > 0.02 {
				t.Errorf("%v holds %v, expected %v", row.action, shares(), row.want)
				break
			}
		}
		if n := ts.Info[spec.InfoIndex("held")]; n != row.held {
			t.Errorf("%v: %g may be held", row.action, n)
		}
		if !slices.Equal(ts.Mask.Bools(), []bool{true, true, true, true, true, true}) {
			t.Errorf("the mask is %v", ts.Mask.Bools())
		}
	}
	if told != 12 {
		t.Errorf("told %d times of 12 steps", told)
	}

	// A cannot be traded on days 2 and 3, and neither B on 3.
	m := market(20, nil)
	m.Tradable[7] = 0
	buyer := order(trading.Buy, trading.Buy)
	c.Segment = 1
	inside = orders(m, 2, 3)
	e = must(meta.New(inside, list(buyer), c))
	ts = envs.NewTimeStep(e.Spec())
	if err := e.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	for day, row := range []struct {
		action []int64
		mask   []bool
		held   []bool
	}{
		{[]int64{0, 1}, []bool{true, true, true, true}, []bool{false, true}},
		{[]int64{0, 0}, []bool{true, true, true, true}, []bool{false, true}},
		{[]int64{1, 0}, []bool{true, false, true, true}, []bool{false, true}},
		{[]int64{1, 1}, []bool{true, true, true, true}, []bool{false, true}},
		{[]int64{1, 0}, []bool{true, true, true, true}, []bool{true, true}},
	} {
		if !slices.Equal(ts.Mask.Bools(), row.mask) {
			t.Errorf("day %d: the mask is %v, expected %v", day, ts.Mask.Bools(), row.mask)
		}
		if err := e.Step(tensor.Of(row.action, 2), ts); err != nil {
			t.Fatal(err)
		}
		for i, q := range inside.Positions() {
			if (q > 0) != row.held[i] {
				t.Errorf("day %d: positions %v", day, inside.Positions())
			}
		}
	}
}

// TestMisfits: what cannot be is an error that names the side that does not fit.
func TestMisfits(t *testing.T) {
	inside := must(corridor.New(corridor.Defaults()))
	two := list(choice(0, 0.9), choice(1, 0.9))
	cases := []struct {
		experts []vector.Policy
		change  func(*meta.Config)
		want    string
	}{
		{two[:1], func(*meta.Config) {}, "1 experts, expected at least 2"},
		{two, func(c *meta.Config) { c.Segment = 0 }, "segment: must be at least 1"},
		{two, func(c *meta.Config) { c.Choose = "all" }, "choose: must be one of expert, mixture, assets"},
		{two, func(c *meta.Config) { c.Choose = meta.Assets }, `choose: assets: the agent of environment "corridor" holds no assets`},
		{two[:1], func(c *meta.Config) { c.Choose, c.Diversity.KLCoef = meta.Assets, 0.1 }, "diversity: pays for a choice between experts, and there is one"},
		{two[:1], func(c *meta.Config) { c.Choose, c.Risk.Drawdown.Limit = meta.Assets, 0.1 }, "risk.drawdown: masks experts, and there is one"},
		{nil, func(c *meta.Config) { c.Choose = meta.Assets }, "0 experts, expected at least 1"},
		{two, func(c *meta.Config) { c.Choose = meta.Mixture }, "expected a box of float32"},
		{two, limits, "its agent holds nothing of value"},
		{two, func(c *meta.Config) { c.Risk.MaxWeight = 0.5 }, "limits on positions belong to the risk of the environment inside"},
		{two, func(c *meta.Config) { c.Diversity = meta.Diversity{KLCoef: 0.2, KLCoefMax: 0.1} }, "diversity.kl_coef_max: 0.1, expected at least kl_coef"},
	}
	for _, c := range cases {
		config := meta.Defaults()
		c.change(&config)
		if _, err := meta.New(inside, c.experts, config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
	c := meta.Defaults()
	c.Diversity.KLCoef = 0.1
	e := must(meta.New(inside, list(choice(0, 0.9), &fixed{d: vector.Decision{Actions: tensor.New(tensor.Int64, 1)}}), c))
	ts := envs.NewTimeStep(e.Spec())
	if err := e.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	if err := e.Step(tensor.Scalar(int64(0)), ts); err == nil || !strings.Contains(err.Error(), "expert 1 gives 0 log-probabilities, expected 2") {
		t.Errorf("%v", err)
	}
}
