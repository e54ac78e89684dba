package network_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

const rows = 3

// world is a policy for an environment: what acts, what learns, and what is published.
type world struct {
	frame             *network.Frame
	e                 network.Exploration
	act, learn, whole *program.Program
	params            *models.Params
	stored            *tensor.Tensor
	feeds             []*network.Feed
}

// logStd returns the parameter of a Gaussian's deviation, nil for other policies.
func (w *world) logStd() *tensor.Tensor { return w.params.View("actor." + network.LogStdParam) }

func defaults() network.Config {
	c := encoder.CrossAssetDefaults()
	c.DModel, c.NHeads = 8, 2
	return network.Config{CrossAsset: c, Hidden: []int{7}, Activation: "tanh"}
}

func closing(t testing.TB, c interface{ Close() error }) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func newWorld(t testing.TB, spec envs.Spec, c network.Config, e network.Exploration, eng engine.Compiler) *world {
	t.Helper()
	f, err := network.NewFrame(spec)
	if err != nil {
		t.Fatal(err)
	}
	torso, err := network.NewTorso(c, f, encoder.Kinds(), layer.Orthogonal(math.Sqrt2))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{frame: f, e: e}
	var specs []models.Spec
	compile := func(end func(g *layer.Graph, d network.Distribution) []autodiff.Objective) *program.Program {
		g := layer.New("net", rng.New(1), layer.Options{})
		in := torso.Inputs(g, "")
		z, err := torso.Build(g.In("actor"), in)
		if err != nil {
			t.Fatal(err)
		}
		objectives := end(g, network.NewDistribution(g.In("actor"), f, z, in.Mask, e, layer.Orthogonal(0.5)))
		net, values, err := g.Network(models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if w.params == nil {
			specs = net.Specs
			if w.params, err = models.NewParams(net, nil); err != nil {
				t.Fatal(err)
			}
			closing(t, w.params)
			if err := w.params.Load(values); err != nil {
				t.Fatal(err)
			}
		} else if len(specs) != len(net.Specs) {
			t.Fatalf("%d parameters, expected %d", len(net.Specs), len(specs))
		}
		p, err := program.New(net, w.params, program.Config{Engine: eng, Batch: rows, BatchSymbol: layer.Batch, Objectives: objectives})
		if err != nil {
			t.Fatal(err)
		}
		closing(t, p)
		w.feeds = append(w.feeds, network.NewFeed(f, rows, "", p.Input))
		return p
	}
	w.whole = compile(func(g *layer.Graph, d network.Distribution) []autodiff.Objective {
		g.Output(agents.ActionOutput, d.Mode())
		d.Output()
		return nil
	})
	w.act = compile(func(_ *layer.Graph, d network.Distribution) []autodiff.Objective { d.Acting(); return nil })
	w.learn = compile(func(g *layer.Graph, d network.Distribution) []autodiff.Objective {
		dtype, shape := f.Stored()
		g.Output("log_prob", d.LogProb(g.Batched("stored", dtype, shape...)))
		g.Output("entropy", d.Entropy())
		return []autodiff.Objective{{Losses: []autodiff.Loss{{Value: "log_prob"}}, Stop: d.Stops()}}
	})
	w.stored = w.learn.Input("stored")
	return w
}

func TestSpaces(t *testing.T) {
	box := envs.Box{Of: tensor.Float32, Dims: []int{2, 2}, Low: []float64{-1, -0.5, -0.1, math.Inf(-1)}, High: []float64{1, 0.5, math.Inf(1), math.Inf(1)}}
	gaussian, sde := network.Exploration{LogStdInit: 0.3, SDESampleFreq: -1}, network.Exploration{LogStdInit: -0.2, UseSDE: true, SDESampleFreq: 4}
	mixed := envs.Dict{{Name: "a", Space: envs.Discrete{N: 4}}, {Name: "b", Space: envs.MultiDiscrete{N: []int{2, 3}}}, {Name: "c", Space: envs.MultiBinary{N: 3}}, {Name: "d", Space: envs.Box{Of: tensor.Float64, Dims: []int{2}, Low: []float64{0}, High: []float64{1}}}, {Name: "e", Space: envs.Box{Of: tensor.Uint8, Dims: []int{2, 2}, Low: []float64{0}, High: []float64{255}}}}
	cnn := encoderOf(t, "timecnn", "{d_model: 5, n_layers: 2}")
	mlp := encoderOf(t, "mlp", "{hidden: [6]}")
	cases := []struct {
		name   string
		obs    envs.Dict
		action envs.Space
		masked bool
		joint  bool
		e      network.Exploration
		change func(c *network.Config)
	}{
		{name: "discrete", obs: vectors(), action: envs.Discrete{N: 4}},
		{name: "discrete, masked", obs: vectors(), action: envs.Discrete{N: 5}, masked: true},
		{name: "multi-discrete", obs: mixed, action: envs.MultiDiscrete{N: []int{2, 4, 3}}},
		{name: "multi-discrete, masked", obs: mixed, action: envs.MultiDiscrete{N: []int{3, 3}}, masked: true},
		{name: "multi-binary", obs: envs.Dict{{Name: "s", Space: envs.Discrete{N: 3}}}, action: envs.MultiBinary{N: 3}},
		{name: "multi-binary, masked", obs: vectors(), action: envs.MultiBinary{N: 2}, masked: true},
		{name: "box", obs: vectors(), action: box, e: gaussian},
		{name: "box of bytes", obs: vectors(), action: envs.Box{Of: tensor.Uint8, Dims: []int{2}, Low: []float64{0}, High: []float64{3}}, e: network.Exploration{LogStdInit: 2}},
		{name: "box of doubles, gSDE", obs: vectors(), action: envs.Box{Of: tensor.Float64, Dims: []int{3}, Low: []float64{-0.1}, High: []float64{0.1}}, e: sde},
		{name: "scalar box, no hidden layer, gSDE", obs: vectors(), action: envs.Box{Of: tensor.Float32, Low: []float64{-1}, High: []float64{1}}, e: sde, change: func(c *network.Config) { c.Hidden = nil }},
		{name: "series", obs: series(t), action: envs.Discrete{N: 3}, masked: true},
		{name: "series, box", obs: series(t), action: box, e: sde},
		{name: "one choice for all assets", obs: append(assets(t), envs.Field{Name: "moon", Space: envs.Unbounded(2)}), action: envs.Discrete{N: 4}, masked: true},
		{name: "shares of as many as there are assets", obs: append(assets(t), envs.Field{Name: "moon", Space: envs.Unbounded(2)}), action: envs.NewBox(-5, 5, 3), joint: true, e: gaussian},
		{name: "shares of more than there are assets", obs: assets(t), action: envs.NewBox(-5, 5, 5), joint: true, e: sde},
		{name: "choices of as many as there are assets", obs: assets(t), action: envs.MultiDiscrete{N: []int{2, 2, 2}}, joint: true, masked: true},
		{name: "assets", obs: assets(t), action: envs.MultiDiscrete{N: []int{3, 3, 3}}, masked: true},
		{name: "assets and a choice of the portfolio", obs: append(assets(t), envs.Field{Name: "experts", Space: envs.Unbounded(4)}), action: envs.MultiDiscrete{N: []int{2, 2, 2, 5}}, masked: true},
		{name: "assets, box", obs: assets(t), action: envs.NewBox(0, 1, 3), e: gaussian},
		{name: "assets, box with a component of the portfolio", obs: tradable(t), action: envs.NewBox(0, 1, 4), e: gaussian},
		{name: "assets, gSDE with one", obs: assets(t), action: envs.NewBox(0, 1, 4), e: sde},
		{name: "assets, gSDE", obs: assets(t), action: envs.NewBox(0, 1, 3), e: sde},
		{name: "encoder", obs: mixed, action: envs.Discrete{N: 2}, change: func(c *network.Config) { c.Encoder = mlp }},
		{name: "encoder from a file", obs: vectors(), action: box, e: gaussian, change: func(c *network.Config) { c.Encoder = encoderOf(t, "file", "{path: "+model(t)+"}") }},
	}
	n, decisions := 0, 0
	for _, eng := range testengines.All(t) {
		for _, c := range cases[:longtest.Cases(t, len(cases), 9)] {
			t.Run(eng.Name()+"/"+c.name, func(t *testing.T) {
				spec := envs.Spec{Name: "toy", Observation: c.obs, Action: c.action, Joint: c.joint, Masked: c.masked, Reward: envs.Range{Low: -1, High: 1}, Random: true}
				cfg := defaults()
				if c.obs.Index("window") >= 0 {
					cfg.Encoder = cnn
				}
				if c.change != nil {
					c.change(&cfg)
				}
				decisions += explore(t, newWorld(t, spec, cfg, c.e, eng), spec)
				n++
			})
		}
	}
	if want := longtest.Cases(t, 24, 9) * len(testengines.All(t)); n != want || decisions != want*40*rows {
		t.Errorf("%d cases of %d, %d decisions", n, want, decisions)
	}
}

// explore lets a policy act and compares what it says with the graphs.
func explore(t *testing.T, w *world, spec envs.Spec) (decisions int) {
	v := toys(t, rows, spec)
	b := v.Batch()
	explorer := network.NewSampler(w.frame, w.e, agents.Explore, rows, w.act.Output, w.logStd())
	greedy := network.NewSampler(w.frame, w.e, agents.Greedy, rows, w.act.Output, w.logStd())
	var d, best vector.Decision
	ends := 0
	step := func(round int) {
		for _, f := range w.feeds {
			if err := f.Current(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.act.Run(); err != nil {
			t.Fatal(err)
		}
		key := rng.New(3).Split("round", round)
		if err := greedy.Decide(&best, key, network.Moment{}); err != nil {
			t.Fatal(err)
		}
		if err := explorer.Decide(&d, key, network.Moment{Rollout: int64(round / 16), Round: round % 16}); err != nil {
			t.Fatal(err)
		}
		copy(w.stored.Bytes(), network.StoredOf(&d).Bytes())
		if err := w.learn.Run(); err != nil {
			t.Fatal(err)
		}
		if err := w.whole.Run(); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 40 {
		step(round)
		want := w.learn.Output("log_prob").Float32s()
		for i, got := range d.LogProb {
			if math.Abs(float64(got-want[i])) > 1e-4*(1+math.Abs(float64(want[i]))) {
				t.Fatalf("round %d: the log-probability of row %d is %v, and while learning %v", round, i, got, want[i])
			}
			if n := w.frame.MaskLen(); (d.Logits == nil) != w.frame.Continuous() || d.Logits != nil && !slices.Equal(d.Logits.Shape(), []int{rows, n}) {
				t.Fatalf("logits %v", d.Logits)
			}
			for _, x := range []*vector.Decision{&d, &best} {
				if err := spec.Action.Check(x.Actions.Rows(i, i+1).Reshape(spec.Action.Shape()...)); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
			}
			decisions++
		}
		if !slices.Equal(best.Actions.Bytes(), w.whole.Output(agents.ActionOutput).Bytes()) {
			t.Fatalf("round %d: the greedy action is %v, and that of the graph %v", round, best.Actions, w.whole.Output(agents.ActionOutput))
		}
		if spec.Masked {
			checkMasked(t, spec, b.Mask.Bools(), d.Actions)
			checkMasked(t, spec, b.Mask.Bools(), best.Actions)
		}
		if err := v.Step(d.Actions); err != nil {
			t.Fatal(err)
		}
		if len(b.Ended) > 0 {
			ends++
			if err := w.feeds[0].Final(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	if ends == 0 {
		t.Error("no episode has ended")
	}
	key := rng.New(4)
	if n := testing.AllocsPerRun(20, func() {
		if w.feeds[1].Current(b) != nil || w.act.Run() != nil || explorer.Decide(&d, key, network.Moment{Rollout: 9}) != nil || greedy.Decide(&best, key, network.Moment{Rollout: 9}) != nil {
			t.Fatal("a decision failed")
		}
	}); n != 0 {
		t.Errorf("a decision allocates %v times", n)
	}
	return decisions
}

func checkMasked(t *testing.T, spec envs.Spec, mask []bool, actions *tensor.Tensor) {
	t.Helper()
	for i := range rows {
		for h, k := range envs.Heads(spec.Action) {
			at, choice := i*len(envs.Heads(spec.Action))+h, 0
			if actions.DType() == tensor.Bool {
				if actions.Bools()[at] {
					choice = 1
				}
			} else {
				choice = int(actions.Int64s()[at])
			}
			if !mask[choice] {
				t.Fatalf("row %d, head %d: %d is excluded", i, h, choice)
			}
			mask = mask[k:]
		}
	}
}

func encoderOf(t testing.TB, kind, params string) configs.Kinded {
	t.Helper()
	d, err := configs.Parse("encoder.yaml", []byte("encoder: {kind: "+kind+", "+strings.TrimPrefix(params, "{")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := struct {
		Encoder configs.Kinded `yaml:"encoder"`
	}{}
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c.Encoder
}

// model writes a linear layer from 3 to 5 features as somebody's ONNX file.
func model(t testing.TB) string {
	t.Helper()
	b := onnx.NewBuilder("user", onnx.DefaultOpset)
	weight := tensor.New(tensor.Float32, 3, 5)
	rng.New(8).Stream().FillNormal32(weight.Float32s(), 0, 1)
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(3)}})
	y := b.Rename(b.Op("MatMul", []onnx.Value{x, b.Initializer("weight", weight)}), "y")
	b.Output(y, onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(5)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "user.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestStateDependentExploration checks when the matrices are drawn, that the noise is a function of
// the state between, and its distribution.
func TestStateDependentExploration(t *testing.T) {
	spec := envs.Spec{Name: "toy", Observation: vectors(), Action: envs.Unbounded(2), Random: true}
	e := network.Exploration{LogStdInit: -0.5, UseSDE: true, SDESampleFreq: 4}
	w := newWorld(t, spec, defaults(), e, testengines.Fastest(t))
	rng.New(5).Stream().FillNormal32(w.logStd().Float32s(), -0.5, 0.3)
	s := network.NewSampler(w.frame, e, agents.Explore, rows, w.act.Output, w.logStd())
	copy(w.act.Input("x").Float32s(), []float32{1, 2, -1, 1, 2, -1, 0.5, 0, 0})
	if err := w.act.Run(); err != nil {
		t.Fatal(err)
	}
	var d vector.Decision
	act := func(s *network.Sampler, round int, rollout int64) []float32 {
		if err := s.Decide(&d, rng.New(1).Split("round", round), network.Moment{Key: rng.New(2), Rollout: rollout, Round: round % 10}); err != nil {
			t.Fatal(err)
		}
		return slices.Clone(d.Drawn.Float32s())
	}
	changed := 0
	var before []float32
	for round := range 22 {
		rollout := int64(round / 10)
		x := act(s, round, rollout)
		if slices.Equal(x[:2], x[2:4]) {
			t.Fatal("two environments have the same noise")
		}
		// Rollouts of 10 rounds: drawn in rounds 0, 4 and 8 of each.
		if same := slices.Equal(x, before); same != (round%10%4 != 0) {
			t.Errorf("round %d: the noise is the same as before: %v", round, same)
		}
		if before = x; round%10%4 == 0 {
			changed++
		}
	}
	// Whoever comes in the middle of a rollout draws the same as whoever was there before.
	fresh := network.NewSampler(w.frame, e, agents.Explore, rows, w.act.Output, w.logStd())
	for round := 36; round < 40; round++ {
		if !slices.Equal(act(s, round, 3), act(fresh, round, 3)) {
			t.Fatalf("round %d: the noise depends on what was before the rollout", round)
		}
	}
	mean, logStd := w.act.Output(agents.MeanOutput).Float32s(), w.act.Output(agents.LogStdOutput).Float32s()
	const draws = 20000
	var sums, squares [6]float64
	for i := range draws {
		for k, x := range act(s, 0, int64(100+i)) {
			z := float64(x-mean[k]) / math.Exp(float64(logStd[k]))
			sums[k] += z
			squares[k] += z * z
		}
	}
	for k := range sums {
		if m, v := sums[k]/draws, squares[k]/draws; math.Abs(m) > 5/math.Sqrt(draws) || math.Abs(v-1) > 5*math.Sqrt(2.0/draws) {
			t.Errorf("component %d: mean %v and variance %v of the standardised noise", k, m, v)
		}
	}
	if changed != 7 {
		t.Errorf("the matrices were drawn %d times", changed)
	}
}

// TestDeviationsDoNotShapeTheFeatures checks that gSDE's gradient reaches the features through the
// mean only: with mean weights of 0 nothing does.
func TestDeviationsDoNotShapeTheFeatures(t *testing.T) {
	n := 0
	for _, eng := range testengines.All(t) {
		w := newWorld(t, envs.Spec{Name: "toy", Observation: vectors(), Action: envs.Unbounded(2)}, defaults(), network.Exploration{UseSDE: true, SDESampleFreq: -1}, eng)
		clear(w.params.View("actor.mean.weight").Float32s())
		rng.New(2).Stream().FillNormal32(w.learn.Input("x").Float32s(), 0, 1)
		rng.New(3).Stream().FillNormal32(w.stored.Float32s(), 0, 1)
		if err := w.learn.Run(); err != nil {
			t.Fatal(err)
		}
		g := w.learn.Gradients(0)
		for i, s := range g.Specs() {
			zero := !slices.ContainsFunc(g.View(i).Float32s(), func(x float32) bool { return x != 0 })
			if want := strings.HasPrefix(s.Name, "actor.hidden."); zero != want {
				t.Errorf("%s: the gradient of %s is zero: %v", eng.Name(), s.Name, zero)
			}
			n++
		}
	}
	if n != 5*len(testengines.All(t)) {
		t.Errorf("%d parameters", n)
	}
}

// TestFrequencies draws categorical and Gaussian actions many times.
func TestFrequencies(t *testing.T) {
	eng := testengines.Fastest(t)
	w := newWorld(t, envs.Spec{Name: "toy", Observation: vectors(), Action: envs.MultiDiscrete{N: []int{2, 3}}}, defaults(), network.Exploration{}, eng)
	s := network.NewSampler(w.frame, w.e, agents.Explore, rows, w.act.Output, nil)
	copy(w.act.Input("x").Float32s(), []float32{1, 2, -1, 1, 2, 1, 0.5, 0, 0})
	if err := w.act.Run(); err != nil {
		t.Fatal(err)
	}
	const draws = 20000
	counts := make([]float64, 5*rows)
	var d vector.Decision
	for i := range draws {
		if err := s.Decide(&d, rng.New(2).Split("round", i), network.Moment{}); err != nil {
			t.Fatal(err)
		}
		for r := range rows {
			counts[5*r+int(d.Actions.Int64s()[2*r])]++
			counts[5*r+2+int(d.Actions.Int64s()[2*r+1])]++
		}
	}
	for i, l := range w.act.Output(agents.LogProbsOutput).Float32s() {
		if p := math.Exp(float64(l)); math.Abs(counts[i]/draws-p) > 5*math.Sqrt(p*(1-p)/draws) {
			t.Errorf("probability %d is %v, and its frequency %v", i, p, counts[i]/draws)
		}
	}
	w = newWorld(t, envs.Spec{Name: "toy", Observation: vectors(), Action: envs.NewBox(-0.1, 0.1, 2)}, defaults(), network.Exploration{LogStdInit: 0.7}, eng)
	s = network.NewSampler(w.frame, w.e, agents.Explore, rows, w.act.Output, w.logStd())
	if err := w.act.Run(); err != nil {
		t.Fatal(err)
	}
	var sum, square, logProb float64
	for i := range draws {
		if err := s.Decide(&d, rng.New(2).Split("round", i), network.Moment{}); err != nil {
			t.Fatal(err)
		}
		x := float64(d.Drawn.Float32s()[1] - w.act.Output(agents.MeanOutput).Float32s()[1])
		sum, square, logProb = sum+x, square+x*x, logProb+float64(d.LogProb[0])
	}
	sigma := math.Exp(0.7)
	if m, v := sum/draws, square/draws; math.Abs(m) > 5*sigma/math.Sqrt(draws) || math.Abs(v/sigma/sigma-1) > 5*math.Sqrt(2.0/draws) {
		t.Errorf("mean %v and variance %v", m, v)
	}
	if h := rlmath.GaussianEntropy([]float64{0.7, 0.7}); math.Abs(-logProb/draws-h) > 0.05 {
		t.Errorf("the mean of −log p is %v, and the entropy %v", -logProb/draws, h)
	}
}

// TestUntradableAssetsAreNotSeen changes the window of an asset: those of others depend on it where
// it can be traded, and not where it cannot.
func TestUntradableAssetsAreNotSeen(t *testing.T) {
	spec := envs.Spec{Name: "toy", Observation: tradable(t), Action: envs.NewBox(-9, 9, 4)}
	cfg := defaults()
	cfg.Encoder = encoderOf(t, "timecnn", "{d_model: 8, n_layers: 1}")
	w := newWorld(t, spec, cfg, network.Exploration{LogStdInit: 0, SDESampleFreq: -1}, testengines.Fastest(t))
	act := func(tradable uint8, x float32) []float32 {
		flags, window := tensor.Data[uint8](w.whole.Input("tradable")), w.whole.Input("window").Float32s()
		for i := range flags {
			if flags[i] = 1; i%3 == 1 {
				flags[i] = tradable
			}
		}
		for i := range window {
			if window[i] = float32(i%7) / 7; i/4%3 == 1 {
				window[i] = x * float32(i%5)
			}
		}
		if err := w.whole.Run(); err != nil {
			t.Fatal(err)
		}
		return slices.Clone(w.whole.Output(agents.ActionOutput).Float32s()[:4])
	}
	for k, seen := range []bool{false, true} {
		a, b := act(uint8(k), 1), act(uint8(k), -2)
		for _, i := range []int{0, 2, 3} {
			if (a[i] != b[i]) != seen {
				t.Errorf("component %d is %g and %g, and the asset can be traded: %v", i, a[i], b[i], seen)
			}
		}
	}
}

// TestJoint: where an action is said to be one for all assets no element of it is an asset's,
// though there be as many; otherwise the first are, and the one behind them is the portfolio's.
func TestJoint(t *testing.T) {
	n := 0
	for _, c := range []struct {
		action                   envs.Space
		joint                    bool
		assets, among, portfolio int
	}{
		{envs.NewBox(-5, 5, 3), false, 3, 0, 0},
		{envs.NewBox(-5, 5, 3), true, 0, 3, 0},
		{envs.NewBox(-5, 5, 4), false, 3, 0, 1},
		{envs.NewBox(-5, 5, 4), true, 0, 3, 0},
		{envs.NewBox(-5, 5, 7), true, 0, 3, 0},
		{envs.MultiDiscrete{N: []int{2, 2, 2}}, false, 3, 0, 0},
		{envs.MultiDiscrete{N: []int{2, 2, 2, 3}}, false, 3, 0, 1},
		{envs.MultiDiscrete{N: []int{2, 2, 2}}, true, 0, 3, 0},
		{envs.MultiBinary{N: 3}, false, 3, 0, 0},
		{envs.Discrete{N: 3}, false, 0, 3, 0},
	} {
		f, err := network.NewFrame(envs.Spec{Name: "toy", Observation: assets(t), Action: c.action, Joint: c.joint})
		if err != nil {
			t.Fatal(err)
		}
		if n++; f.Assets != c.assets || f.Among != c.among || f.Portfolio() != c.portfolio {
			t.Errorf("%v, joint: %v: %d assets, among %d, %d of the portfolio", c.action, c.joint, f.Assets, f.Among, f.Portfolio())
		}
	}
	if n != 10 {
		t.Errorf("%d frames", n)
	}
}

// TestMisfits gives what does not fit.
func TestMisfits(t *testing.T) {
	n := 0
	fails := func(err error, parts ...string) {
		t.Helper()
		for _, p := range parts {
			if n++; err == nil || !strings.Contains(err.Error(), p) {
				t.Errorf("%v does not mention %q", err, p)
			}
		}
	}
	frame := func(obs envs.Dict, action envs.Space) error {
		_, err := network.NewFrame(envs.Spec{Name: "toy", Observation: obs, Action: action})
		return err
	}
	two := append(assets(t), envs.Field{Name: "other", Space: envs.Unbounded(4, 2), Series: true})
	fails(frame(two, envs.Discrete{N: 2}), `"window"`, `"other"`, "one is expected")
	fails(frame(assets(t), envs.MultiDiscrete{N: []int{2, 2}}), "3 assets", "multi-discrete[2 2]")
	fails(frame(assets(t), envs.NewBox(0, 1, 2)), "3 assets", "one component for each")
	fails(frame(assets(t), envs.MultiDiscrete{N: []int{2, 2, 3}}), "3 assets", "said to be joint")
	fails(frame(append(assets(t), envs.Field{Name: "moon", Space: envs.Unbounded(3)}), envs.NewBox(0, 1, 3)), `"moon"`, "position [3]")
	fails(network.Config{Hidden: []int{0}, Activation: "soft"}.Validate(), "hidden", "activation")
	fails(network.Exploration{LogStdInit: 30, SDESampleFreq: 0}.Validate(), "log_std_init", "sde_sample_freq")
	f, err := network.NewFrame(envs.Spec{Name: "toy", Observation: vectors(), Action: envs.NewBox(0, 1, 2)})
	if err != nil {
		t.Fatal(err)
	}
	fails(f.Clip(tensor.New(tensor.Float32, 2, 2), tensor.Of([]float32{0, 0, 0, float32(math.NaN())}, 2, 2)), "component 1", "environment 1", "NaN")
	w := newWorld(t, envs.Spec{Name: "toy", Observation: vectors(), Action: envs.Discrete{N: 2}, Masked: true}, defaults(), network.Exploration{}, testengines.Fastest(t))
	s := network.NewSampler(w.frame, w.e, agents.Explore, rows, w.act.Output, nil)
	w.act.Output(agents.LogProbsOutput).Float32s()[2] = float32(math.NaN())
	fails(s.Decide(&vector.Decision{}, rng.New(1), network.Moment{}), "environment 1", "NaN")
	fails(w.feeds[0].Current(toys(t, rows+1, w.frame.Spec).Batch()), "4 environments", "expected 3")
	closed := toys(t, rows, w.frame.Spec)
	copy(closed.Batch().Mask.Bools()[2:], []bool{false, false})
	fails(w.feeds[0].Current(closed.Batch()), "environment 1", "no valid action", "head 0")
	plain := w.frame.Spec
	plain.Masked = false
	fails(w.feeds[0].Current(toys(t, rows, plain).Batch()), "no mask")
	if n != 26 {
		t.Errorf("%d mentions", n)
	}
}
