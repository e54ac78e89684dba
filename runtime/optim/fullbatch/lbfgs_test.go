package fullbatch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// copied is a journal as one that was saved and read.
func copied(j *Journal) *Journal {
	c := *j
	c.Start, c.Pairs.X, c.Pairs.Grads = slices.Clone(j.Start), slices.Clone(j.Pairs.X), slices.Clone(j.Pairs.Grads)
	return &c
}

// TestPairsResume stops L-BFGS after every iteration and in the middle of the next, and requires
// the points, losses and evaluations of the run that never stopped from what is kept, which stays
// bounded.
func TestPairsResume(t *testing.T) {
	const n = 12
	compared := 0
	for _, c := range []Config{
		{Method: "lbfgs", MaxIterations: 45, Memory: 4}, {Method: "lbfgs", MaxIterations: 30}, {Method: "lbfgs", MaxIterations: 30, Restart: 7, Memory: 3}, {Method: "lbfgs", FuncIterations: 4, FuncTol: 0.2},
	} {
		start := make([]float32, n)
		for i := range start {
			start[i] = -1.2 + 0.1*float32(i)
		}
		most := c.Memory + 1
		if c.Memory == 0 {
			most = defaultMemory + 1
		}
		type stop struct {
			journal *Journal
			told    []Iteration
		}
		var stops []stop
		var told []Iteration
		j := &Journal{}
		params := slices.Clone(start)
		want, err := Minimize(context.Background(), params, rosenbrock, c, Hooks{Journal: j, Iteration: func(it Iteration) error {
			told = append(told, it)
			if k := len(j.Pairs.X) / n; k > most || len(j.Pairs.Grads) != len(j.Pairs.X) || len(j.Points)+len(j.Grads)+len(j.Losses) > 0 {
				t.Errorf("%+v: after iteration %d the journal has %d points, want at most %d, and %d evaluations", c, it.Number, k, most, len(j.Points))
			}
			stops = append(stops, stop{copied(j), slices.Clone(told)})
			return nil
		}})
		if err != nil || len(stops) < 15 {
			t.Fatalf("%+v: %d iterations, %v", c, len(stops), err)
		}
		for _, s := range stops[:len(stops)-1] {
			for _, more := range []int{0, 1} {
				// A run that is stopped after so many more evaluations, and goes on.
				boom, calls, journal, list := errors.New("boom"), 0, copied(s.journal), slices.Clone(s.told)
				hooks := Hooks{Journal: journal, Iteration: func(it Iteration) error { list = append(list, it); return nil }}
				if more > 0 {
					_, err := Minimize(context.Background(), slices.Clone(start), func(p, g []float32) (float64, error) {
						if calls++; calls > more {
							return 0, boom
						}
						return rosenbrock(p, g)
					}, c, hooks)
					if err != nil && !errors.Is(err, boom) {
						t.Fatal(err)
					}
					hooks.Journal = copied(journal)
				}
				got := slices.Clone(start)
				r, err := Minimize(context.Background(), got, rosenbrock, c, hooks)
				if err != nil || r != want || !slices.Equal(got, params) || !slices.Equal(list, told) {
					t.Fatalf("%+v resumed after iteration %d and %d evaluations: %+v, %v, want %+v; the points are equal: %v, the iterations: %v", c, len(s.told), more, r, err, want, slices.Equal(got, params), slices.Equal(list, told))
				}
				compared++
			}
		}
	}
	if compared < 150 {
		t.Errorf("%d runs compared", compared)
	}
}

// TestPairsThatDoNotFit: they are an error.
func TestPairsThatDoNotFit(t *testing.T) {
	for want, j := range sorted.All(map[string]*Journal{
		"3 coordinates":     {Start: []float32{1, 2}, Pairs: Pairs{X: []float64{1, 2, 3}, Grads: []float32{1, 2, 3}, PairsState: PairsState{Scale: 1}}},
		"2 of gradients":    {Start: []float32{1, 2}, Pairs: Pairs{X: []float64{1, 2, 3, 4}, Grads: []float32{1, 2}, PairsState: PairsState{Scale: 1}}},
		"4 of gradients":    {Start: []float32{1, 2}, Pairs: Pairs{X: []float64{1, 2, 3, 4}, Grads: []float32{1, 2, 3, 4}}},
		"of another method": {Start: []float32{1, 2}, Points: []uint64{1}, Losses: []uint64{1}, Grads: []float32{1, 2}},
	}) {
		if _, err := Minimize(context.Background(), []float32{1, 2}, rosenbrock, Config{Method: "lbfgs"}, Hooks{Journal: j}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
