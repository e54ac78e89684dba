package gymnasium_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestContract(t *testing.T) {
	for id, most := range sorted.All(longtest.Few(t, map[string]int{"Walk-v0": 20, "Masked-v0": 20}, 1)) {
		t.Run(id, func(t *testing.T) {
			f := open(t, config(id, nil))
			r := envtest.Run(t, func() (envs.Env, error) { return f.New(envs.Train, 0) }, envtest.Options{Steps: 120})
			if r.Episodes < 5 || r.Saved < 10 || f.Spec().MaxSteps != most || f.Spec().Masked != (id == "Masked-v0") {
				t.Errorf("too little was checked: %+v", r)
			}
		})
	}
}

// photo is everything that a batch says.
func photo(b *vector.Batch) string {
	var out bytes.Buffer
	for f, t := range b.Obs {
		fmt.Fprintf(&out, "%v ", t.Bytes())
		for _, e := range b.Ended {
			n := len(t.Bytes()) / len(b.Type)
			fmt.Fprintf(&out, "final %v ", b.Final[f].Bytes()[e.Env*n:(e.Env+1)*n])
			if b.FinalMask != nil {
				k := b.FinalMask.Shape()[1]
				fmt.Fprintf(&out, "mask %v ", b.FinalMask.Bools()[e.Env*k:(e.Env+1)*k])
			}
		}
	}
	if b.Mask != nil {
		fmt.Fprint(&out, b.Mask.Bools())
	}
	fmt.Fprint(&out, b.Type, b.Reward, b.Discount, b.Costs, b.Info, b.Ended)
	return out.String()
}

// play returns what a vector says in reset and steps, and the number of episodes that ended.
func play(t *testing.T, v vector.Env, seed uint64, steps int) (said []string, ended int) {
	t.Helper()
	reset(t, v, seed)
	said = append(said, photo(v.Batch()))
	for k, a := range script(v, steps) {
		if err := v.Step(a); err != nil {
			t.Fatalf("step %d: %v", k, err)
		}
		said = append(said, photo(v.Batch()))
		ended += len(v.Batch().Ended)
	}
	return said, ended
}

// TestVectorsAreEqual: any number of workers, and single environments stepped one after the other,
// answer the same.
func TestVectorsAreEqual(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	c := config("Masked-v0", map[string]any{"end": 3})
	c.Info, c.Costs = []string{"wind", "calm", "absent"}, []string{"calm", "wind"}
	f := open(t, c)
	list, err := envs.Make(f, envs.Train, 5)
	if err != nil {
		t.Fatal(err)
	}
	local, err := vector.New(list, vector.Options{Workers: 1, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	want, ended := play(t, local, 3, 60)
	if ended < 10 {
		t.Errorf("only %d episodes ended", ended)
	}
	for k, workers := range []int{2, 1, 9, 3} {
		v := openVector(t, f, 5, vector.Options{Workers: workers, Check: true})
		// Asleep at once, after a look that is too short, and hardly ever.
		v.Watch([]time.Duration{0, time.Nanosecond, time.Minute}[k%3])
		for range 2 {
			if got, _ := play(t, v, 3, 60); !slices.Equal(got, want) {
				t.Errorf("%d workers give other answers than single environments", workers)
			}
		}
		if got, _ := play(t, v, 4, 60); slices.Equal(got, want) {
			t.Errorf("%d workers: another key gives the same answers", workers)
		}
		if n := len(v.Pids()); n != min(workers, 5) {
			t.Errorf("%d processes, expected %d", n, min(workers, 5))
		}
	}
}

// TestCosts: numbers of info, and the value behind the reward of a step of six, are costs, which
// are 0 in a first step.
func TestCosts(t *testing.T) {
	n := 0
	for id, costs := range sorted.All(longtest.Few(t, map[string][]string{"Walk-v0": {"absent", "wind"}, "Costly-v0": {"cost", "wind"}}, 1)) {
		c := config(id, nil)
		c.Costs, c.Info = costs, []string{"wind"}
		f := open(t, c)
		if s := f.Spec(); !slices.Equal(s.Costs, costs) {
			t.Errorf("%s: costs %q, expected %q", id, s.Costs, costs)
		}
		v := openVector(t, f, 3, vector.Options{Workers: 2, Check: true})
		reset(t, v, 3)
		b := v.Batch()
		if sum := b.Costs[0][1] + b.Costs[1][0] + b.Costs[2][1]; sum != 0 {
			t.Errorf("%s: a first step costs %v", id, b.Costs)
		}
		for _, a := range script(v, 40) {
			if err := v.Step(a); err != nil {
				t.Fatal(err)
			}
			for i, x := range b.Costs {
				wind := b.Info[i][0]
				want := []float64{0, wind}
				if id == "Costly-v0" {
					want[0] = math.Abs(wind)
				}
				if !slices.Equal(x, want) || wind == 0 {
					t.Fatalf("%s: costs %v of a wind of %g, expected %v", id, x, wind, want)
				}
				n++
			}
		}
	}
	if n != longtest.Cases(t, 2, 1)*40*3 {
		t.Errorf("%d steps", n)
	}
}

// TestFinalMasks: the mask of a final observation is what that very observation allows, though the
// environment was reset in the same step; after a termination everything counts as valid.
func TestFinalMasks(t *testing.T) {
	for _, limit := range []int{0, 4}[:longtest.Cases(t, 2, 1)] {
		id, kwargs := "Masked-v0", map[string]any{"end": 3}
		if limit > 0 {
			id, kwargs = "EndlessMasked-v0", nil
		}
		v := openVector(t, open(t, config(id, kwargs)), 5, vector.Options{Workers: 2, Limit: limit})
		reset(t, v, 3)
		b := v.Batch()
		excluded, truncated, terminated := 0, 0, 0
		for _, a := range script(v, 200) {
			if err := v.Step(a); err != nil {
				t.Fatal(err)
			}
			for _, e := range b.Ended {
				at, mask := b.Final[0].Float32s()[2*e.Env], b.FinalMask.Bools()[2*e.Env:2*e.Env+2]
				left := !e.Truncated || at >= 0
				if !mask[1] || mask[0] != left {
					t.Fatalf("%s: the final mask at %g is %v (%+v)", id, at, mask, e)
				}
				if !left {
					excluded++
				}
				if e.Truncated {
					truncated++
				} else {
					terminated++
				}
			}
		}
		if excluded < 5 || truncated-excluded < 5 || (terminated > 0) != (limit == 0) {
			t.Errorf("%s: %d truncated, %d of them with an action excluded, %d terminated", id, truncated, excluded, terminated)
		}
	}
}

func TestLimits(t *testing.T) {
	f := open(t, config("Endless-v0", nil))
	if n := f.Spec().MaxSteps; n != 0 {
		t.Errorf("an environment without a limit has the limit %d", n)
	}
	v := openVector(t, f, 3, vector.Options{Workers: 2, Limit: 7})
	if n := v.Spec().MaxSteps; n != 7 {
		t.Errorf("the limit is %d, expected 7", n)
	}
	reset(t, v, 1)
	for k, a := range script(v, 21) {
		if err := v.Step(a); err != nil {
			t.Fatal(err)
		}
		ended := v.Batch().Ended
		if (k+1)%7 != 0 {
			if len(ended) != 0 {
				t.Errorf("step %d: %+v ended", k, ended)
			}
			continue
		}
		if len(ended) != 3 {
			t.Fatalf("step %d: %d episodes ended, expected 3", k, len(ended))
		}
		for i, e := range ended {
			if e.Env != i || e.Number != k/7 || e.Length != 7 || !e.Truncated || v.Batch().Discount[i] != 1 {
				t.Errorf("step %d: %+v", k, e)
			}
		}
	}
	// A limit of the environment's own is not changed.
	walk := openVector(t, open(t, config("Walk-v0", nil)), 1, vector.Options{Limit: 7})
	if n := walk.Spec().MaxSteps; n != 20 {
		t.Errorf("the limit of the environment's own is %d now", n)
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	for _, watch := range []time.Duration{0, time.Minute}[:longtest.Cases(t, 2, 1)] {
		v := openVector(t, open(t, config("Masked-v0", nil)), 4, vector.Options{Workers: 2})
		v.Watch(watch)
		if n := allocations(t, v); n != 0 {
			t.Errorf("looking for %v: %g allocations per step", watch, n)
		}
	}
}
