package versus_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/cover"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/games"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/versus"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// fake is a policy of connect four that prefers columns by their number.
type fake struct {
	actions *tensor.Tensor
	logs    []float32
	d       vector.Decision
	prefers int
	decided *int
	// bad is what it does wrong: an illegal move.
	bad string
}

func (f *fake) Act(_ context.Context, _ rng.Key, b *vector.Batch) (*vector.Decision, error) {
	*f.decided++
	for row, present := range b.Present {
		mask := b.Mask.Bools()[row*games.Columns:][:games.Columns]
		for a := range games.Columns {
			f.logs[row*games.Columns+a] = float32(math.Inf(-1))
		}
		if !present {
			continue
		}
		best := -1
		for k := range games.Columns {
			if a := (f.prefers + k) % games.Columns; mask[a] && best < 0 {
				best = a
			}
		}
		if f.bad == "illegal" {
			best = slices.Index(mask, false)
		}
		if best < 0 {
			best = 0
		}
		f.actions.Int64s()[row] = int64(best)
		f.logs[row*games.Columns+best] = 0
	}
	return &f.d, nil
}

func (f *fake) Remembers() bool { return f.bad == "remembers" }
func (f *fake) Close() error    { return nil }

// opener opens fakes by what stands in the path.
func opener(decided *int) versus.Opener {
	return func(_ context.Context, path string, _ envs.Factory, _ envs.Split, _ engine.Compiler, rows int) (vector.Policy, error) {
		if path == "missing.onnx" {
			return nil, errors.New("missing.onnx: no such file")
		}
		f := &fake{actions: tensor.New(tensor.Int64, rows), logs: make([]float32, rows*games.Columns), decided: decided, bad: strings.TrimSuffix(path, ".onnx")}
		f.d = vector.Decision{Actions: f.actions, Logits: tensor.Of(f.logs, rows, games.Columns)}
		if _, err := fmt.Sscanf(path, "prefers-%d.onnx", &f.prefers); err == nil {
			f.bad = ""
		}
		return f, nil
	}
}

// open opens an environment by the text of its parameters.
func open(t *testing.T, text string, decided *int) (envs.Factory, error) {
	t.Helper()
	doc, err := configs.Parse("versus.yaml", []byte("env:\n  kind: versus\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Env configs.Kinded `yaml:"env"`
	}
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	f, err := envs.Open(context.Background(), []envs.Kind{versus.Kind(append(games.Kinds(), cover.Kind), opener(decided))}, c.Env)
	if err != nil {
		return nil, err
	}
	f.(interface {
		UseEngine(func(context.Context) (engine.Compiler, error))
	}).UseEngine(func(context.Context) (engine.Compiler, error) { return nil, nil })
	return f, nil
}

const mixedPool = `
  world: {kind: connect_four, opening: 6}
  opponents:
    - {player: {kind: random}}
    - {name: a, weight: 2, path: prefers-2.onnx}
    - {name: b, path: prefers-5.onnx, greedy: true}
    - {name: search, weight: 0.5, player: {kind: alpha_beta, depth: 2, random: 0.2}}
`

// TestContract runs the suite on games against pools, whose learner has each seat or one.
func TestContract(t *testing.T) {
	n := 0
	for _, text := range []string{mixedPool, "  world: {kind: connect_four}\n  seats: [player_1]\n  opponents: [{player: {kind: random}}]\n", "  world: {kind: matrix_game}\n  opponents: [{player: {kind: mixed, probabilities: [1, 1, 2]}}]\n", "  world: {kind: cover, agents: 3, size: 4, failure: 0.1}\n  opponents: [{player: {kind: random}}]\n"} {
		decided := 0
		f, err := open(t, text, &decided)
		if err != nil {
			t.Fatal(err)
		}
		if r := envtest.Run(t, func() (envs.Env, error) { return f.New(envs.Train, 0) }, envtest.Options{}); r.Episodes < 5 || r.Saved == 0 {
			t.Errorf("%s: too little was checked: %+v", text, r)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d pools", n)
	}
}

// TestVectorIsItsEnvironments compares a vector, whose models decide for all rows at once, with its
// environments one by one, and one that was saved and loaded with one that was not.
func TestVectorIsItsEnvironments(t *testing.T) {
	const rows, rounds = 12, 200
	decided := 0
	f, err := open(t, mixedPool, &decided)
	if err != nil {
		t.Fatal(err)
	}
	v, err := vector.Open(f, envs.Train, rows, vector.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	again, err := vector.Open(f, envs.Train, rows, vector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	list, err := envs.Make(f, envs.Train, rows)
	if err != nil {
		t.Fatal(err)
	}
	one, err := vector.New(list, vector.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	for _, x := range []vector.Env{v, one, again} {
		if err := x.Reset(rng.New(7)); err != nil {
			t.Fatal(err)
		}
	}
	seats, scores, opponents := map[float64]int{}, map[float64]int{}, map[float64]int{}
	together, alone := 0, 0
	for round := range rounds {
		s := rng.New(uint64(round)).Stream()
		mask := v.Batch().Mask.Bools()
		for i := range rows {
			v.Batch().Actions.Int64s()[i] = int64(choose(s, mask[i*games.Columns:(i+1)*games.Columns]))
		}
		decided = 0
		if err := v.Step(v.Batch().Actions); err != nil {
			t.Fatal(err)
		}
		together += decided
		decided = 0
		if err := one.Step(v.Batch().Actions); err != nil {
			t.Fatal(err)
		}
		alone += decided
		if err := again.Step(v.Batch().Actions); err != nil {
			t.Fatal(err)
		}
		if round%20 == 0 {
			state, err := vector.SaveState(v)
			if err != nil {
				t.Fatal(err)
			}
			if err := vector.LoadState(again, state); err != nil {
				t.Fatal(err)
			}
		}
		for _, x := range []vector.Env{one, again} {
			if round%20 == 0 && x == again {
				continue // A loaded state says nothing of the step before.
			}
			if a, b := v.Batch(), x.Batch(); !slices.Equal(a.Obs[0].Float32s(), b.Obs[0].Float32s()) || !slices.Equal(a.Mask.Bools(), b.Mask.Bools()) || !slices.Equal(a.Reward, b.Reward) || !slices.Equal(a.Type, b.Type) || !slices.Equal(a.Ended, b.Ended) {
				t.Fatalf("round %d: the rows differ", round)
			}
		}
		for _, e := range v.Batch().Ended {
			info := v.Batch().Info[e.Env]
			seats[info[0]]++
			opponents[info[1]]++
			scores[info[2]]++
			if want := (e.Return + 1) / 2; info[2] != want {
				t.Errorf("a game with a return of %g has the score %g", e.Return, info[2])
			}
		}
	}
	if len(seats) != 2 || len(opponents) != 4 || opponents[1] <= opponents[3] || scores[0]+scores[1] < 100 {
		t.Errorf("seats %v, opponents %v, scores %v", seats, opponents, scores)
	}
	if 2*together > alone {
		t.Errorf("models ran %d times for all rows, and %d times for each", together, alone)
	}
	if n := testing.AllocsPerRun(50, func() {
		for i := range rows {
			v.Batch().Actions.Int64s()[i] = int64(slices.Index(v.Batch().Mask.Bools()[i*games.Columns:(i+1)*games.Columns], true))
		}
		if err := v.Step(v.Batch().Actions); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations in a step", n)
	}
}

// choose draws an action that is valid.
func choose(s *rng.Stream, mask []bool) int {
	for {
		if a := s.IntN(len(mask)); mask[a] {
			return a
		}
	}
}

// TestAnotherPool: an episode goes on against another opponent where its own is gone.
func TestAnotherPool(t *testing.T) {
	decided, n := 0, 0
	from, err := open(t, mixedPool, &decided)
	if err != nil {
		t.Fatal(err)
	}
	to, err := open(t, "  world: {kind: connect_four, opening: 6}\n  opponents: [{name: c, path: prefers-1.onnx}]\n", &decided)
	if err != nil {
		t.Fatal(err)
	}
	a, err := from.New(envs.Train, 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := to.New(envs.Train, 0)
	if err != nil {
		t.Fatal(err)
	}
	ts, other := envs.NewTimeStep(a.Spec()), envs.NewTimeStep(b.Spec())
	for i := range 20 {
		if err := a.Reset(rng.New(uint64(i)), ts); err != nil {
			t.Fatal(err)
		}
		state, err := envs.SaveState(a)
		if err != nil {
			t.Fatal(err)
		}
		if err := envs.LoadState(b, state, other); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(ts.Obs[0].Float32s(), other.Obs[0].Float32s()) || other.Info[1] != 0 {
			t.Errorf("episode %d goes on differently", i)
		}
		n++
	}
	if n != 20 {
		t.Errorf("%d episodes", n)
	}
	for _, bad := range []string{"{", `{"seat":5}`, `{"seat":0,"players":["",""],"random":[],"returns":[0,0]}`} {
		if err := envs.LoadState(b, []byte(bad), other); err == nil {
			t.Errorf("%s is loaded", bad)
		}
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

// TestRefuses names what does not fit, and who.
func TestRefuses(t *testing.T) {
	const world = "  world: {kind: connect_four}\n"
	n := 0
	for want, text := range sorted.All(map[string]string{
		"opponents: a pool without members":                               world,
		"opponents: all weights are 0":                                    world + "  opponents: [{weight: 0, player: {kind: random}}]\n",
		"opponents[0].weight: is -1, expected":                            world + "  opponents: [{weight: -1, player: {kind: random}}]\n",
		"opponents[0].weight: is NaN, expected":                           world + "  opponents: [{weight: .nan, player: {kind: random}}]\n",
		"opponents[1].name: \"random\" is that of opponents[0]":           world + "  opponents: [{player: {kind: random}}, {player: {kind: random}}]\n",
		"opponents[0]: expected either player":                            world + "  opponents: [{name: nobody}]\n",
		"opponents[0].greedy: is for models":                              world + "  opponents: [{player: {kind: random}, greedy: true}]\n",
		"unknown kind \"alphabeta\"; did you mean \"alpha_beta\"?":        world + "  opponents: [{player: {kind: alphabeta}}]\n",
		"seats[0]: \"player_2\" is no agent of the world":                 world + "  seats: [player_2]\n  opponents: [{player: {kind: random}}]\n",
		"a team of size zero would play against it":                       "  world: {kind: cover, agents: 1}\n  opponents: [{player: {kind: random}}]\n",
		"world.kind: required":                                            "  opponents: [{player: {kind: random}}]\n",
		"opponent \"missing.onnx\": missing.onnx: no such file":           world + "  opponents: [{path: missing.onnx}]\n",
		"opponent \"remembers.onnx\" remembers steps before":              world + "  opponents: [{path: remembers.onnx}]\n",
		"opponent \"illegal.onnx\" as player_":                            world + "  opponents: [{path: illegal.onnx, greedy: true}]\n",
		"probabilities: 2, expected those of matrix_game for each choice": "  world: {kind: matrix_game}\n  opponents: [{player: {kind: mixed, probabilities: [1, 1]}}]\n",
	}) {
		decided := 0
		err := func() error {
			f, err := open(t, text, &decided)
			if err != nil {
				return err
			}
			defer f.Close()
			v, err := vector.Open(f, envs.Train, 2, vector.Options{})
			if err != nil {
				return err
			}
			defer v.Close()
			if err := v.Reset(rng.New(1)); err != nil {
				return err
			}
			for range 60 {
				for i := range 2 {
					v.Batch().Actions.Int64s()[i] = 0
					if m := v.Batch().Mask; m != nil {
						v.Batch().Actions.Int64s()[i] = int64(slices.Index(m.Bools()[i*games.Columns:(i+1)*games.Columns], true))
					}
				}
				if err := v.Step(v.Batch().Actions); err != nil {
					if again := v.Step(v.Batch().Actions); !errors.Is(again, envs.ErrNoEpisode) {
						t.Errorf("%s: after the error a step gives %v", text, again)
					}
					return err
				}
			}
			return nil
		}()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", text, err, want)
		}
		n++
	}
	if n != 15 {
		t.Errorf("%d cases", n)
	}
}

// BenchmarkStep times a step of 64 games of connect four against a pool that needs no model.
func BenchmarkStep(b *testing.B) {
	t := &testing.T{}
	f, err := open(t, "  world: {kind: connect_four}\n  opponents: [{player: {kind: random}}]\n", new(int))
	if err != nil {
		b.Fatal(err)
	}
	v, err := vector.Open(f, envs.Train, 64, vector.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	if err := v.Reset(rng.New(1)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		mask := v.Batch().Mask.Bools()
		for i := range 64 {
			v.Batch().Actions.Int64s()[i] = int64(slices.Index(mask[i*games.Columns:(i+1)*games.Columns], true))
		}
		if err := v.Step(v.Batch().Actions); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(64*b.N)/b.Elapsed().Seconds(), "steps/s")
}
