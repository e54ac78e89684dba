package games

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// open opens a game by the text of its parameters.
func open(t *testing.T, text string) (envs.MultiFactory, error) {
	t.Helper()
	doc, err := configs.Parse("game.yaml", []byte("env: "+text+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Env configs.Kinded `yaml:"env"`
	}
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	f, err := envs.Open(context.Background(), Kinds(), c.Env)
	if err != nil {
		return nil, err
	}
	return f.(envs.MultiFactory), nil
}

// TestContract runs the suite on one player of each game against a random one.
func TestContract(t *testing.T) {
	n := 0
	for _, text := range []string{"{kind: connect_four}", "{kind: connect_four, opening: 12}", "{kind: matrix_game}", "{kind: matrix_game, payoff: [[1, 2, 3], [0, 5, -1]]}"} {
		f, err := open(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if r := envtest.Run(t, func() (envs.Env, error) { return f.New(envs.Train, 0) }, envtest.Options{}); r.Episodes < 5 {
			t.Errorf("%s: too little was checked: %+v", text, r)
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d games", n)
	}
}

// TestConnectFour plays a game whose end is known, and looks at what both see of it.
func TestConnectFour(t *testing.T) {
	w, err := NewConnectFour(ConnectFourConfig{})
	if err != nil {
		t.Fatal(err)
	}
	steps, present := []*envs.TimeStep{envs.NewTimeStep(w.Spec()), envs.NewTimeStep(w.Spec())}, make([]bool, 2)
	if err := w.Reset(rng.New(1), steps, present); err != nil {
		t.Fatal(err)
	}
	actions := []*tensor.Tensor{tensor.New(tensor.Int64), tensor.New(tensor.Int64)}
	over := 0
	for i, m := range []int64{0, 1, 0, 1, 0, 1, 6} {
		actions[i%2].Int64s()[0], actions[1-i%2].Int64s()[0] = m, 3
		if err := w.Step(actions, steps, present); err != nil {
			t.Fatal(err)
		}
		for k, ts := range steps {
			if ts.Mask.Bools()[6] != (k == (i+1)%2) {
				t.Errorf("move %d: player %d may play column 6: %v", i, k, ts.Mask.Bools())
			}
		}
	}
	// Column 0 has three discs of player 0 and column 1 as many of player 1, whose turn it is.
	own, other := steps[1].Obs[0].Float32s(), steps[0].Obs[0].Float32s()
	seen := 0
	for r := range Rows {
		for c := range Columns {
			k := 2 * (Columns*r + c)
			first, second := c == 0 && r >= 3 || c == 6 && r == 5, c == 1 && r >= 3
			for _, x := range []struct {
				got  float32
				want bool
			}{{own[k], second}, {own[k+1], first}, {other[k], first}, {other[k+1], second}} {
				if (x.got == 1) != x.want {
					t.Errorf("row %d, column %d: %g, expected %v", r, c, x.got, x.want)
				}
				seen++
			}
		}
	}
	actions[1].Int64s()[0] = 1
	if err := w.Step(actions, steps, present); err != nil {
		t.Fatal(err)
	}
	for k, ts := range steps {
		if !ts.Terminated() || ts.Reward != float64(2*k-1) {
			t.Errorf("player %d: %v with a reward of %g", k, ts.Type, ts.Reward)
		}
		over++
	}
	if seen != 4*Rows*Columns || over != 2 {
		t.Errorf("%d cells, %d ends", seen, over)
	}
	for _, bad := range []string{"[", `{"moves":[7],"opened":0}`, `{"moves":[0,0,0,0,0,0,0],"opened":0}`, `{"moves":[0,1,0,1,0,1,0],"opened":0}`, `{"moves":[0],"opened":2}`} {
		if err := w.LoadState([]byte(bad), steps, present); err == nil {
			t.Errorf("%s is loaded", bad)
		}
	}
}

// TestOpenings: games begin after some moves, of which none has won, and with either player.
func TestOpenings(t *testing.T) {
	w, err := NewConnectFour(ConnectFourConfig{Opening: 10})
	if err != nil {
		t.Fatal(err)
	}
	steps, present := []*envs.TimeStep{envs.NewTimeStep(w.Spec()), envs.NewTimeStep(w.Spec())}, make([]bool, 2)
	lengths := map[int]int{}
	for i := range 500 {
		if err := w.Reset(rng.New(uint64(i)), steps, present); err != nil {
			t.Fatal(err)
		}
		if four(w.board.discs[0]) || four(w.board.discs[1]) || steps[0].Type != envs.First {
			t.Fatalf("%v", w.moves)
		}
		lengths[len(w.moves)]++
	}
	if len(lengths) != 11 || lengths[0] < 20 {
		t.Errorf("openings of %v moves", lengths)
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := w.Reset(rng.New(1), steps, present); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestExploitability compares games whose equilibrium is known.
func TestExploitability(t *testing.T) {
	n := 0
	for _, c := range []struct {
		game          string
		rows, columns []float64
		want          float64
	}{
		{"rock_paper_scissors", []float64{1. / 3, 1. / 3, 1. / 3}, []float64{1. / 3, 1. / 3, 1. / 3}, 0},
		{"rock_paper_scissors", []float64{1, 0, 0}, []float64{1, 0, 0}, 1},
		{"rock_paper_scissors", []float64{0.5, 0.5, 0}, []float64{1. / 3, 1. / 3, 1. / 3}, 0.25},
		{"biased_rps", []float64{0.25, 0.5, 0.25}, []float64{0.25, 0.5, 0.25}, 0},
		{"biased_rps", []float64{1. / 3, 1. / 3, 1. / 3}, []float64{1. / 3, 1. / 3, 1. / 3}, 1. / 3},
		{"matching_pennies", []float64{0.5, 0.5}, []float64{0.5, 0.5}, 0},
		{"matching_pennies", []float64{0.5, 0.5}, []float64{1, 0}, 0.5},
	} {
		if got := Exploitability((MatrixConfig{Game: c.game}).Matrix(), c.rows, c.columns); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s, %v against %v: %g, expected %g", c.game, c.rows, c.columns, got, c.want)
		}
		n++
	}
	if n != 7 {
		t.Errorf("%d cases", n)
	}
}

// TestRefuses names what does not fit.
func TestRefuses(t *testing.T) {
	n := 0
	for want, text := range sorted.All(map[string]string{
		"opening": "{kind: connect_four, opening: 21}", "unknown key": "{kind: connect_four, rows: 7}", "game": "{kind: matrix_game, game: chess}",
		"payoff[1]: has 1 columns": "{kind: matrix_game, payoff: [[1, 2], [3]]}", "payoff[0][1]": "{kind: matrix_game, payoff: [[1, .nan]]}",
	}) {
		if _, err := open(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", text, err, want)
		}
		n++
	}
	f, err := open(t, "{kind: connect_four}")
	if err != nil {
		t.Fatal(err)
	}
	m, err := open(t, "{kind: matrix_game}")
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range sorted.All(map[string]struct {
		f    envs.MultiFactory
		text string
	}{
		"depth: must be at least 1": {f, "{kind: alpha_beta, depth: 0}"}, "depth: 43": {f, "{kind: alpha_beta, depth: 43}"}, "random": {f, "{kind: alpha_beta, random: 2}"},
		"noise: must be at least 0": {f, "{kind: alpha_beta, noise: -1}"}, "unknown kind \"mixed\"; expected random, alpha_beta": {f, "{kind: mixed}"}, "probabilities: sum to 0": {m, "{kind: mixed}"},
		"probabilities[1]": {m, "{kind: mixed, probabilities: [2, -1]}"},
	}) {
		doc, err := configs.Parse("player.yaml", []byte("player: "+c.text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		var p struct {
			Player configs.Kinded `yaml:"player"`
		}
		if err := doc.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if _, err := envs.NewPlayer(c.f, p.Player); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", c.text, err, want)
		}
		n++
	}
	if n != 12 {
		t.Errorf("%d cases", n)
	}
}
