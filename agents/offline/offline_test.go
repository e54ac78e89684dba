package offline_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/offline/offlinetest"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/cover"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// specs go through everything that a data set can have.
func specs(t *testing.T) map[string]envs.Spec {
	bits := agenttest.Choice()
	bits.Action, bits.Masked = envs.MultiBinary{N: 3}, true
	heads := agenttest.Box()
	heads.Action, heads.Masked = envs.MultiDiscrete{N: []int{2, 3}}, true
	return map[string]envs.Spec{
		"box": agenttest.Box(), "float64": agenttest.Wide(), "discrete": agenttest.Choice(), "multi-binary": bits, "multi-discrete": heads,
		"window": agenttest.Series(t), "costs": agenttest.Costly(agenttest.Box()),
	}
}

// TestRoundTrip reads episodes as they were written, and finds nothing wrong.
func TestRoundTrip(t *testing.T) {
	episodes := 0
	for what, spec := range sorted.All(specs(t)) {
		d := offlinetest.Dataset(t, spec, 30)
		if err := d.Fits(spec); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		seen, transitions := int64(0), int64(0)
		if err := d.Each(t.Context(), func(e *offline.Episode) error {
			if e.Number != seen {
				t.Errorf("%s: episode %d after %d", what, e.Number, seen-1)
			}
			seen++
			transitions += int64(e.Len())
			if e.Truncated == e.Terminated || e.Terminated != (e.Discount[e.Len()-1] == 0) || e.LogProb[0] != -1 {
				t.Errorf("%s: episode %d ends with %v, truncated %t", what, e.Number, e.Discount, e.Truncated)
			}
			return nil
		}); err != nil {
			t.Fatal(what, err)
		}
		if seen != 30 || transitions != d.Transitions {
			t.Errorf("%s: %d episodes, %d transitions of %d", what, seen, transitions, d.Transitions)
		}
		r, err := d.Inspect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Found != 0 || r.Behaviours[0].Episodes != 30 || r.LogProb != 1 || r.Terminated != 0.5 {
			t.Errorf("%s: %+v", what, r)
		}
		episodes += int(seen)
	}
	if episodes != 7*30 {
		t.Errorf("%d episodes", episodes)
	}
}

// bad writes a data set of one episode of a box that was spoilt.
func bad(t *testing.T, spoil func(e *offline.Episode)) *offline.Dataset {
	t.Helper()
	spec := agenttest.Box()
	var e offline.Episode
	if err := offlinetest.Dataset(t, spec, 1).Each(t.Context(), func(x *offline.Episode) error {
		e = offline.Episode{Obs: [][]byte{slices.Clone(x.Obs[0]), slices.Clone(x.Obs[1])}, Rows: make([][]int64, 2), Action: slices.Clone(x.Action), Reward: slices.Clone(x.Reward), Discount: slices.Clone(x.Discount), LogProb: slices.Clone(x.LogProb), Truncated: x.Truncated, Terminated: x.Terminated}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	spoil(&e)
	m := offline.Describe(spec)
	m.Behaviours = []offline.Behaviour{{Algorithm: "random"}}
	dir := filepath.Join(t.TempDir(), "bad")
	w, err := offline.Create(dir, m)
	if err == nil {
		err = w.Part(t.Context(), 0, func(add func(*offline.Episode) error) error { return add(&e) })
	}
	if err := errors.Join(err, w.Finish()); err != nil {
		t.Fatal(err)
	}
	d, err := offline.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// nan are the bytes of a float32 that is none.
var nan = []byte{0, 0, 0xc0, 0x7f}

// TestChecks has what an inspection finds and a learner refuses.
func TestChecks(t *testing.T) {
	n := 0
	for want, spoil := range sorted.All(map[string]func(e *offline.Episode){
		`observation "x"`:    func(e *offline.Episode) { copy(e.Obs[0], nan) },
		`observation "kind"`: func(e *offline.Episode) { e.Obs[1][0] = 200 },
		"action":             func(e *offline.Episode) { copy(e.Action, nan) },
		"reward is NaN":      func(e *offline.Episode) { e.Reward[0] = math.NaN() },
		"log-probability":    func(e *offline.Episode) { e.LogProb[0] = math.Inf(-1) },
		"between 0 and 1":    func(e *offline.Episode) { e.Discount[0] = 2 },
		"terminated true":    func(e *offline.Episode) { e.Terminated, e.Truncated = true, false },
		"neither terminated": func(e *offline.Episode) { e.Truncated = false },
	}) {
		d := bad(t, spoil)
		r, err := d.Inspect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Found != 1 || !strings.Contains(r.Problems[0], want) || !strings.Contains(r.Problems[0], "episode 0, step ") {
			t.Errorf("expected a problem with %q, found %q", want, r.Problems)
		}
		s, err := offline.NewStore(t.Context(), d, agenttest.Box(), nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Open(layoutOf(t, agenttest.Box()), replay.Config{Capacity: 1, Envs: 1, Gamma: 1})
		agenttest.Has(t, err, want, d.Dir)
		n++
	}
	if n != 8 {
		t.Errorf("%d checks", n)
	}
}

func layoutOf(t *testing.T, spec envs.Spec) replay.Layout {
	t.Helper()
	l, err := offpolicy.LayoutOf(spec, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestDamage: bytes that were changed, files that are missing or of other columns, and manifests
// that do not agree are found, and never crash.
func TestDamage(t *testing.T) {
	spec := agenttest.Box()
	part := func(d *offline.Dataset) string { return filepath.Join(d.Dir, d.Files[0].Name) }
	cases := map[string]func(t *testing.T, d *offline.Dataset){
		"SHA-256": func(t *testing.T, d *offline.Dataset) { d.Files[0].SHA256 = "0" },
		"no such file": func(t *testing.T, d *offline.Dataset) {
			if err := os.Remove(part(d)); err != nil {
				t.Fatal(err)
			}
		},
		"damaged": func(t *testing.T, d *offline.Dataset) {
			if err := os.Truncate(part(d), 500); err != nil {
				t.Fatal(err)
			}
		},
		`no column "obs.y"`: func(t *testing.T, d *offline.Dataset) { d.Observation[0].Name = "y" },
		"elements, expected 4": func(t *testing.T, d *offline.Dataset) {
			d.Observation[0].Space = agents.DescribeSpace(envs.Unbounded(4))
		},
		"the manifest has 31": func(t *testing.T, d *offline.Dataset) { d.Files[0].Episodes = 31 },
	}
	for want, harm := range sorted.All(cases) {
		d := offlinetest.Dataset(t, spec, 30)
		harm(t, d)
		err := d.Each(t.Context(), func(*offline.Episode) error { return nil })
		if err == nil {
			err = d.VerifyFiles(t.Context())
		}
		agenttest.Has(t, err, want, d.Files[0].Name)
	}
	if len(cases) != 6 {
		t.Errorf("%d cases", len(cases))
	}
	// Each byte of a file, or of a manifest, may be any other.
	d := offlinetest.Dataset(t, spec, 2)
	for _, name := range []string{d.Files[0].Name, offline.ManifestFile} {
		path := filepath.Join(d.Dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found, tried := 0, 0
		for i := 0; i < len(whole); i += 1 + len(whole)/150 {
			b := slices.Clone(whole)
			b[i] ^= 0x55
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			tried++
			x, err := offline.Open(d.Dir)
			if err == nil {
				err = x.Each(t.Context(), func(*offline.Episode) error { return nil })
			}
			if err == nil {
				err = x.VerifyFiles(t.Context())
			}
			if err != nil {
				found++
			}
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
		if tried < 100 || name != offline.ManifestFile && found != tried {
			t.Errorf("%s: %d of %d changes are found", name, found, tried)
		}
	}
}

// TestOtherSpaces: a data set of another environment is refused with both sides.
func TestOtherSpaces(t *testing.T) {
	d := offlinetest.Dataset(t, agenttest.Box(), 2)
	list := specs(t)
	delete(list, "box")
	for what, spec := range sorted.All(list) {
		_, err := offline.NewStore(t.Context(), d, spec, nil, 1)
		if err == nil {
			t.Errorf("%s: it is accepted", what)
			continue
		}
		agenttest.Has(t, err, "the data set has", "and the environment", d.Dir)
	}
	if len(list) != 6 {
		t.Errorf("%d specs", len(list))
	}
}

// TestStore: what a learner draws are the transitions of the episodes that are not held out, all
// alike, with actions in [−1, 1].
func TestStore(t *testing.T) {
	spec := agenttest.Box()
	d := offlinetest.Dataset(t, spec, 40)
	held := d.Split(0.25, 3)
	count := 0
	for _, h := range held {
		if h {
			count++
		}
	}
	if again := d.Split(0.25, 3); count != 10 || !slices.Equal(held, again) || slices.Equal(held, d.Split(0.25, 4)) {
		t.Errorf("%d of 40 episodes are held out", count)
	}
	// Rewards are normal numbers, so they tell transitions apart.
	box, own, rest := spec.Action.(envs.Box), map[float32][2]float32{}, 0
	if err := d.Each(t.Context(), func(e *offline.Episode) error {
		if held[e.Number] {
			rest += e.Len()
			return nil
		}
		for i, r := range e.Reward {
			var a [2]float32
			for k := range a {
				b := box.Bounds(k)
				x := float64(tensor.Of(floats(e.Action), len(e.Action)/4).Float32s()[2*i+k])
				a[k] = float32((x - (b.High+b.Low)/2) / ((b.High - b.Low) / 2))
			}
			own[float32(r)] = a
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s, err := offline.NewStore(t.Context(), d, spec, held, 1)
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Open(layoutOf(t, spec), replay.Config{Capacity: 1, Envs: 1, NSteps: 1, Gamma: 0.9, Action: network.StoredOf})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, u)
	if u.Len() != len(own) || u.Len()+rest != int(d.Transitions) {
		t.Fatalf("%d transitions, expected %d of %d", u.Len(), len(own), d.Transitions)
	}
	b := replay.Batch{Reward: make([]float32, 50), Discount: make([]float32, 50), Action: tensor.New(tensor.Float32, 50, 2)}
	stream, drawn := rng.New(1).Stream(), map[float32]int{}
	for range 400 {
		if err := u.Sample(stream, &b); err != nil {
			t.Fatal(err)
		}
		for i, r := range b.Reward {
			a, ok := own[r]
			if !ok {
				t.Fatalf("the reward %v belongs to no transition that may be drawn", r)
			}
			for k := range a {
				if math.Abs(float64(a[k]-b.Action.Float32s()[2*i+k])) > 1e-5 {
					t.Fatalf("the action is %v, expected %v", b.Action.Float32s()[2*i:][:2], a)
				}
			}
			drawn[r]++
		}
	}
	for r, n := range sorted.All(drawn) {
		if mean := 20000 / float64(len(own)); math.Abs(float64(n)-mean) > 6*math.Sqrt(mean) {
			t.Errorf("the reward %v was drawn %d times, expected about %v", r, n, mean)
		}
	}
	if len(drawn) != len(own) {
		t.Errorf("%d of %d transitions were drawn", len(drawn), len(own))
	}
}

// floats are the numbers of some bytes.
func floats(b []byte) []float32 {
	x := tensor.New(tensor.Float32, len(b)/4)
	copy(x.Bytes(), b)
	return x.Float32s()
}

// pendulum opens a factory.
func pendulum(t *testing.T, text string) envs.Factory {
	t.Helper()
	doc, err := configs.Parse("run.yaml", []byte("env: "+text+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Env configs.Kinded `yaml:"env"`
	}
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	f, err := envs.Open(t.Context(), classic.Kinds(), c.Env)
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, f)
	return f
}

// recorded records with changes, in the folder unless an error stops it.
func recorded(ctx context.Context, t *testing.T, dir string, change func(r *offline.Recording)) error {
	t.Helper()
	f := pendulum(t, "{kind: pendulum, max_steps: 10}")
	spec, err := offline.SpecOf(f, envs.Train, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := offline.Recording{Factory: f, Split: envs.Train, Behaviour: offline.Behaviour{Algorithm: "random", RandomEpisodes: 1, Seed: 4}, Episodes: 150, Envs: 4}
	change(&r)
	m := offline.Describe(spec)
	m.Behaviours = []offline.Behaviour{r.Behaviour}
	w, err := offline.Create(dir, m)
	if err != nil {
		return err
	}
	if err := offline.Record(ctx, r, w); err != nil {
		return err
	}
	return w.Finish()
}

// TestRecordResumes: a recording that is stopped and goes on has the bits of one that was not, and
// until then there is no data set.
func TestRecordResumes(t *testing.T) {
	whole, parts := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "parts")
	if err := recorded(t.Context(), t, whole, func(*offline.Recording) {}); err != nil {
		t.Fatal(err)
	}
	stops := 0
	for {
		ctx, cancel := context.WithCancel(t.Context())
		last := int64(-1)
		err := recorded(ctx, t, parts, func(r *offline.Recording) {
			r.Progress = func(episodes, _ int64) {
				if last < 0 {
					last = episodes
				}
				// A whole file, and something of the next.
				if episodes > last+70 {
					cancel()
				}
			}
		})
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		stops++
		_, err = offline.Open(parts)
		agenttest.Has(t, err, "not been finished")
	}
	if stops != 2 {
		t.Errorf("it was stopped %d times", stops)
	}
	list, err := os.ReadDir(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		a, err1 := os.ReadFile(filepath.Join(whole, f.Name()))
		b, err2 := os.ReadFile(filepath.Join(parts, f.Name()))
		if err := errors.Join(err1, err2); err != nil || string(a) != string(b) {
			t.Errorf("%s differs: %v", f.Name(), err)
		}
	}
	if len(list) != 4 {
		t.Errorf("%d files", len(list))
	}
	if err := recorded(t.Context(), t, whole, func(*offline.Recording) {}); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("over another data set: %v", err)
	}
	// Another seed goes on with nothing.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	other := filepath.Join(t.TempDir(), "other")
	_ = recorded(ctx, t, other, func(*offline.Recording) {})
	agenttest.Has(t, recorded(t.Context(), t, other, func(r *offline.Recording) { r.Behaviour.Seed = 5 }), "other options")
}

// TestRecordAgents: each agent of a world has episodes of its own, up to its end, and each world
// has as many as another, also where a recording was stopped.
func TestRecordAgents(t *testing.T) {
	k, err := configs.NewKinded("cover", cover.Config{Agents: 3, Size: 4, Steps: 9, Failure: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	f, err := envs.Open(t.Context(), []envs.Kind{cover.Kind}, k)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := offline.SpecOf(f, envs.Train, 0)
	if err != nil {
		t.Fatal(err)
	}
	record := func(ctx context.Context, dir string, told func(episodes, transitions int64)) error {
		m := offline.Describe(spec)
		m.Behaviours = []offline.Behaviour{{Algorithm: "random", RandomEpisodes: 1, Seed: 3}}
		w, err := offline.Create(dir, m)
		if err == nil {
			err = offline.Record(ctx, offline.Recording{Factory: f, Split: envs.Train, Behaviour: m.Behaviours[0], Episodes: 100, Envs: 4, Progress: told}, w)
		}
		if err != nil {
			return err
		}
		return w.Finish()
	}
	whole, parts := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "parts")
	if err := record(t.Context(), whole, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = record(ctx, parts, func(episodes, _ int64) {
		if episodes > 80 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := record(t.Context(), parts, nil); err != nil {
		t.Fatal(err)
	}
	d, err := offline.Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := offline.Open(parts); err != nil || again.Digest != d.Digest {
		t.Errorf("a recording that was stopped is another: %v", err)
	}
	if r, err := d.Inspect(t.Context(), nil); err != nil || r.Found != 0 {
		t.Error(r.Problems, err)
	}
	own, at, early := [3]int{}, spec.Observation.Index("agent"), 0
	if err := d.Each(t.Context(), func(e *offline.Episode) error {
		for i := range e.Len() {
			if e.Obs[at][8*i] != e.Obs[at][0] {
				t.Errorf("episode %d is of agents %d and %d", e.Number, e.Obs[at][0], e.Obs[at][8*i])
			}
		}
		own[e.Obs[at][0]]++
		if e.Len() < 9 {
			early++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if own != [3]int{100, 100, 100} || early < 100 || early > 250 {
		t.Errorf("agents have %v episodes, %d end early", own, early)
	}
}

// half always takes half of the highest action.
type half struct{ d vector.Decision }

// TestBehaviours: log-probabilities are those of what was really done.
func TestBehaviours(t *testing.T) {
	cases := 0
	check := func(what string, change func(r *offline.Recording), want func(e *offline.Episode, i int) bool) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "d")
		if err := recorded(t.Context(), t, dir, change); err != nil {
			t.Fatal(what, err)
		}
		d, err := offline.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		bad, n := 0, 0
		if err := d.Each(t.Context(), func(e *offline.Episode) error {
			for i := range e.Len() {
				if n++; !want(e, i) {
					bad++
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if bad > 0 || n != 150*10 {
			t.Errorf("%s: %d of %d transitions are not as expected", what, bad, n)
		}
		if r, err := d.Inspect(t.Context(), nil); err != nil || r.Found > 0 {
			t.Errorf("%s: %v %v", what, r.Problems, err)
		}
		cases++
	}
	uniform := -math.Log(4)
	check("random", func(*offline.Recording) {}, func(e *offline.Episode, i int) bool { return e.LogProb[i] == uniform })
	policy := func(b offline.Behaviour) func(r *offline.Recording) {
		return func(r *offline.Recording) {
			r.Behaviour = b
			r.NewActor = func(n int) (agents.Actor, error) { return newHalf(n), nil }
		}
	}
	action := func(e *offline.Episode, i int) float64 { return float64(floats(e.Action)[i]) }
	check("greedy", policy(offline.Behaviour{}), func(e *offline.Episode, i int) bool {
		return action(e, i) == 1 && math.IsNaN(e.LogProb[i])
	})
	noisy := map[float64]bool{}
	check("noise", policy(offline.Behaviour{Noise: 0.2}), func(e *offline.Episode, i int) bool {
		noisy[action(e, i)] = true
		return math.IsNaN(e.LogProb[i])
	})
	if len(noisy) < 1000 {
		t.Errorf("%d actions with noise", len(noisy))
	}
	random := 0
	check("random episodes", policy(offline.Behaviour{RandomEpisodes: 0.5}), func(e *offline.Episode, i int) bool {
		if e.LogProb[i] == uniform {
			random++
			return action(e, i) != 1
		}
		return action(e, i) == 1
	})
	if random%10 != 0 || random < 500 || random > 1000 {
		t.Errorf("%d random actions", random)
	}
	// The density in units of the environment, of actions in [−1, 1] twice as wide.
	check("drawn", policy(offline.Behaviour{Stochastic: true}), func(e *offline.Episode, i int) bool {
		return math.Abs(e.LogProb[i]-(-3-math.Log(2))) < 1e-6
	})
	if cases != 5 {
		t.Errorf("%d cases", cases)
	}
}

func newHalf(n int) *half {
	x := &half{vector.Decision{Actions: tensor.New(tensor.Float32, n, 1), Drawn: tensor.New(tensor.Float32, n, 1), LogProb: make([]float32, n)}}
	for i := range n {
		x.d.Actions.Float32s()[i], x.d.Drawn.Float32s()[i], x.d.LogProb[i] = 1, 0.5, -3
	}
	return x
}

func (x *half) Act(context.Context, rng.Key, *vector.Batch) (*vector.Decision, error) {
	return &x.d, nil
}
func (x *half) Remembers() bool            { return false }
func (x *half) Sync(context.Context) error { return nil }
func (x *half) Close() error               { return nil }
