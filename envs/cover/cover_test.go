package cover

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestContract runs the suite on one agent among others, which break down or do not.
func TestContract(t *testing.T) {
	n := 0
	for _, c := range []Config{Defaults(), {Agents: 3, Size: 4, Steps: 9, Failure: 0.1}, {Agents: 1, Size: 3, Steps: 5}} {
		k, err := configs.NewKinded("cover", c)
		if err != nil {
			t.Fatal(err)
		}
		f, err := envs.Open(context.Background(), []envs.Kind{Kind}, k)
		if err != nil {
			t.Fatal(err)
		}
		if f.Config() != c {
			t.Errorf("the configuration is %+v, expected %+v", f.Config(), c)
		}
		if r := envtest.Run(t, func() (envs.Env, error) { return f.New(envs.Train, 0) }, envtest.Options{}); r.Episodes < 5 {
			t.Errorf("too little was checked: %+v", r)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d worlds", n)
	}
}

// TestResume continues vectors in the middle of episodes, with agents that have broken down, and
// compares everything that is seen.
func TestResume(t *testing.T) {
	c := Config{Agents: 3, Size: 4, Steps: 9, Failure: 0.1}
	open := func() *vector.Multi {
		list := make([]envs.Multi, 3)
		for i := range list {
			w, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			list[i] = w
		}
		v, err := vector.NewMulti(list, vector.Options{Workers: 1, Check: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := v.Reset(rng.New(3)); err != nil {
			t.Fatal(err)
		}
		return v
	}
	trace := func(v *vector.Multi, rounds, n int) (out []byte) {
		for r := range rounds {
			s := rng.New(uint64(n + r)).Stream()
			for i := range v.Batch().Actions.Int64s() {
				v.Batch().Actions.Int64s()[i] = int64(s.IntN(len(moves)))
			}
			if err := v.Step(v.Batch().Actions); err != nil {
				t.Fatal(err)
			}
			b := v.Batch()
			for _, o := range b.Obs {
				out = append(out, o.Bytes()...)
			}
			for i := range b.Type {
				out = append(out, byte(b.Type[i]), byte(100*b.Reward[i]), byte(b.Discount[i]))
			}
			for _, e := range b.Ended {
				for _, o := range b.Final {
					size := len(o.Bytes()) / len(b.Type)
					out = append(out, o.Bytes()[e.Env*size:(e.Env+1)*size]...)
				}
			}
			out = append(out, b.Mask.Bytes()...)
		}
		return out
	}
	saved, absent := 0, 0
	whole := open()
	for n := range 30 {
		if slices.Contains(whole.Batch().Present, false) {
			absent++
		}
		state, err := whole.SaveState()
		if err != nil {
			t.Fatal(err)
		}
		other := open()
		if err := other.LoadState(state); err != nil {
			t.Fatal(err)
		}
		if b := other.Batch(); !slices.Equal(b.Present, whole.Batch().Present) {
			t.Fatalf("round %d: present are %v, expected %v", n, b.Present, whole.Batch().Present)
		}
		copied, own := trace(other, 12, n), trace(whole, 12, n)
		if !slices.Equal(copied, own) {
			t.Fatalf("round %d: worlds that were loaded go on differently", n)
		}
		saved++
	}
	if saved != 30 || absent < 5 {
		t.Errorf("%d states, %d with an absent agent", saved, absent)
	}
	w := open()
	for _, bad := range []string{`{`, `{"worlds":[]}`} {
		if err := w.LoadState([]byte(bad)); err == nil {
			t.Errorf("%s is loaded", bad)
		}
	}
}

// TestRefuses names what does not fit.
func TestRefuses(t *testing.T) {
	n := 0
	for want, c := range sorted.All(map[string]Config{
		"agents: must be at least 1": {Size: 4, Steps: 3}, "more than the 4 cells": {Agents: 5, Size: 2, Steps: 3}, "size": {Agents: 1, Size: 1, Steps: 3}, "steps": {Agents: 1, Size: 3}, "failure": {Agents: 1, Size: 3, Steps: 3, Failure: 2},
	}) {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v does not say %q", c, err, want)
		}
		n++
	}
	w, err := New(Config{Agents: 2, Size: 3, Steps: 3})
	if err != nil {
		t.Fatal(err)
	}
	steps, present := []*envs.TimeStep{envs.NewTimeStep(w.Spec()), envs.NewTimeStep(w.Spec())}, make([]bool, 2)
	for _, bad := range []string{`{"steps":3,"agents":[0,1],"landmarks":[0,1]}`, `{"steps":0,"agents":[0],"landmarks":[0,1]}`, `{"steps":0,"agents":[0,9],"landmarks":[0,1]}`, `{"steps":0,"agents":[0,1],"landmarks":[-1,1]}`, `[]`} {
		if err := w.LoadState([]byte(bad), steps, present); err == nil {
			t.Errorf("%s is loaded", bad)
		}
		n++
	}
	if n != 10 {
		t.Errorf("%d cases", n)
	}
}

// best is the optimum of a configuration, over all starts, by dynamic programming, and the value of
// each start by the cells of the agents, for one placement of the landmarks at a time.
func best(t *testing.T, c Config, each func(landmarks []int, value []float64)) float64 {
	t.Helper()
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	cells, k := c.Size*c.Size, c.Agents
	states := 1
	for range k {
		states *= cells
	}
	joint := 1
	for range k {
		joint *= len(moves)
	}
	next := make([][]int32, states)
	at := make([]int, k)
	for s := range next {
		next[s] = make([]int32, joint)
		for j := range next[s] {
			to, scale := 0, 1
			for i, rest, act := 0, s, j; i < k; i++ {
				to += scale * w.moved(rest%cells, act%len(moves))
				rest, act, scale = rest/cells, act/len(moves), scale*cells
			}
			next[s][j] = int32(to)
		}
	}
	value, after, reward := make([]float64, states), make([]float64, states), make([]float64, states)
	sum, starts := 0.0, 0
	var place func(list []int)
	place = func(list []int) {
		if len(list) < k {
			for cell := range cells {
				if !slices.Contains(list, cell) {
					place(append(list, cell))
				}
			}
			return
		}
		copy(w.s.Landmarks, list)
		for s := range states {
			for i, rest := 0, s; i < k; i++ {
				w.s.Agents[i], rest = rest%cells, rest/cells
			}
			reward[s] = w.covered()
		}
		clear(value)
		for range c.Steps {
			for s := range states {
				after[s] = math.Inf(-1)
				for _, to := range next[s] {
					after[s] = max(after[s], reward[to]+value[to])
				}
			}
			value, after = after, value
		}
		for s, v := range value {
			for i, rest := 0, s; i < k; i++ {
				at[i], rest = rest%cells, rest/cells
			}
			if slices.Sort(at); len(slices.Compact(slices.Clone(at))) == k {
				sum, starts = sum+v, starts+1
			}
		}
		if each != nil {
			each(list, value)
		}
	}
	place(nil)
	return sum / float64(starts)
}

// straight is what agents earn on average that go to different landmarks, each to its own, the
// straight way, and cover no other one on it.
func straight(c Config) float64 {
	sum, n := 0, 0
	for from := range c.Size * c.Size {
		for to := range c.Size * c.Size {
			d := math.Abs(float64(from%c.Size-to%c.Size)) + math.Abs(float64(from/c.Size-to/c.Size))
			sum, n = sum+c.Steps-max(0, int(d)-1), n+1
		}
	}
	return float64(sum) / float64(n)
}

// TestOptimum computes the optimum of the defaults, and checks in another world that no episode
// exceeds the value of its start and that the greedy way to different landmarks reaches it where
// there is but one agent.
func TestOptimum(t *testing.T) {
	if got := best(t, Defaults(), nil); math.Abs(got-Optimum) > 1e-9 {
		t.Errorf("the optimum is %.12g, expected %.12g", got, Optimum)
	}
	if got := straight(Defaults()); math.Abs(got-9.76) > 1e-9 {
		t.Errorf("agents that settle on who goes where earn %.4g, expected 9.76", got)
	}
	c := Config{Agents: 1, Size: 4, Steps: 6}
	values := map[int][]float64{}
	best(t, c, func(l []int, v []float64) { values[l[0]] = slices.Clone(v) })
	w, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ts, present, action := []*envs.TimeStep{envs.NewTimeStep(w.Spec())}, []bool{false}, tensor.New(tensor.Int64)
	for e := range 200 {
		if err := w.Reset(rng.New(uint64(e)), ts, present); err != nil {
			t.Fatal(err)
		}
		want, got := values[w.s.Landmarks[0]][w.s.Agents[0]], 0.0
		for ts[0].Type != envs.Last {
			a, to := Stay, ts[0].Obs[1].Float32s()
			switch {
			case to[0] < 0:
				a = Left
			case to[0] > 0:
				a = Right
			case to[1] < 0:
				a = Up
			case to[1] > 0:
				a = Down
			}
			action.Int64s()[0] = int64(a)
			if err := w.Step([]*tensor.Tensor{action}, ts, present); err != nil {
				t.Fatal(err)
			}
			got += ts[0].Reward
		}
		if got != want {
			t.Fatalf("episode %d: the straight way earns %g, and the optimum is %g", e, got, want)
		}
	}
}
