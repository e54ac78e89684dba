package seat

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func openThreads(t *testing.T, c ThreadsConfig) envs.MultiFactory {
	t.Helper()
	k, err := configs.NewKinded("scml_threads", c)
	if err != nil {
		t.Fatal(err)
	}
	f, err := envs.Open(context.Background(), []envs.Kind{ThreadsKind}, k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f.(envs.MultiFactory)
}

func TestThreadsContract(t *testing.T) {
	n := 0
	for _, direct := range []bool{false, true}[:longtest.Cases(t, 2, 1)] {
		c := DefaultThreads()
		c.Days, c.Direct = []int{3, 6}, direct
		f := openThreads(t, c)
		r := envtest.Run(t, func() (envs.Env, error) { return f.New(envs.Train, 0) }, envtest.Options{Allocates: true, Steps: 300})
		if r.Episodes < 5 {
			t.Errorf("too little was checked: %+v", r)
		}
		n++
	}
	if n != longtest.Cases(t, 2, 1) {
		t.Errorf("%d modes", n)
	}
}

// TestThreadsResume continues worlds in the middle of days, and compares everything that is seen.
func TestThreadsResume(t *testing.T) {
	c := DefaultThreads()
	c.Days = []int{3, 8}
	f := openThreads(t, c)
	open := func() *vector.Multi {
		var list []envs.Multi
		for i := range 2 {
			w, err := f.NewMulti(envs.Train, i)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, w)
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
	trace := func(v *vector.Multi, rounds, n int) (out []float64) {
		for r := range rounds {
			s := rng.New(uint64(n + r)).Stream()
			for i := range v.Batch().Actions.Float32s() {
				v.Batch().Actions.Float32s()[i] = float32(2*s.Float64() - 1)
			}
			if err := v.Step(v.Batch().Actions); err != nil {
				t.Fatal(err)
			}
			b := v.Batch()
			for _, o := range b.Obs {
				for _, x := range o.Float32s() {
					out = append(out, float64(x))
				}
			}
			for i := range b.Type {
				if b.Present[i] {
					out = append(out, float64(b.Type[i]), b.Reward[i], b.Discount[i])
				}
			}
			out = append(out, float64(len(b.Ended)))
		}
		return out
	}
	whole, saved := open(), 0
	rounds := longtest.Cases(t, 40, 10)
	for n := range rounds {
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
		if copied, own := trace(other, 5, n), trace(whole, 5, n); !slices.Equal(copied, own) {
			t.Fatalf("round %d: worlds that were loaded go on differently", n)
		}
		saved++
	}
	if saved != rounds {
		t.Errorf("%d states", saved)
	}
}

// TestThreadsRewards adds up what agents earn: shared is what the factory's worth has changed by,
// and what belongs to contracts is that of the world's contracts.
func TestThreadsRewards(t *testing.T) {
	worlds, contracts := 0, 0
	for seed := range 12 {
		c := DefaultThreads()
		c.Days = []int{10, 14}
		w, err := openThreads(t, c).NewMulti(envs.Train, 0)
		if err != nil {
			t.Fatal(err)
		}
		e := w.(*Threads)
		spec := w.Spec()
		var steps []*envs.TimeStep
		var actions []*tensor.Tensor
		for range w.Agents() {
			steps, actions = append(steps, envs.NewTimeStep(spec)), append(actions, tensor.New(tensor.Float32, scml.Residual))
		}
		present := make([]bool, len(steps))
		if err := w.Reset(rng.New(uint64(seed)), steps, present); err != nil {
			t.Fatal(err)
		}
		begun, signed := e.s.Worth, len(e.table.Contracts())
		s := rng.New(uint64(seed)).Split("actions").Stream()
		var sums [terms]float64
		shared, reward, earned := 0.0, 0.0, 0.0
		for running := true; running; {
			for _, a := range actions {
				for k := range a.Float32s() {
					a.Float32s()[k] = float32(2*s.Float64() - 1)
				}
			}
			if err := w.Step(actions, steps, present); err != nil {
				t.Fatal(err)
			}
			shared += steps[0].Info[infos+termShared]
			for i, here := range present {
				if !here {
					continue
				}
				if steps[i].Info[infos+termShared] != steps[0].Info[infos+termShared] {
					t.Fatal("agents share different numbers")
				}
				for k := range sums {
					sums[k] += steps[i].Info[infos+k]
				}
				reward += steps[i].Reward
			}
			running = steps[0].Type != envs.Last
		}
		for k, x := range []float64{c.Shared, c.Own, c.Price, c.Liquidity, c.TargetUnits, c.TargetPrices} {
			earned += x * sums[k]
		}
		unit := c.Scale / e.v.InitialBalance()
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("world %d: %s is %v, expected %v", seed, what, got, want)
			}
		}
		near("the reward", reward, earned)
		near("what is shared", shared, unit*(e.table.Balance(e.place)-begun))
		units, money := 0.0, 0.0
		for _, k := range e.table.Contracts()[signed:] {
			if k.Buyer == e.place || k.Seller == e.place {
				units++
				money += float64(k.Quantity * k.Price)
				contracts++
			}
		}
		// Prices are whole numbers about within a tenth of the market's.
		if (sums[termLiquidity] > 0) != (units > 0) || money > 0 && math.Abs(sums[termLiquidity]/unit/money-1) > 0.25 {
			t.Errorf("world %d: %v of %v contracts for %v", seed, sums[termLiquidity]/unit, units, money)
		}
		if sums[termUnits] > 0 || sums[termPrices] > 0 || math.Abs(sums[termPrice]) > 0.25*sums[termLiquidity] {
			t.Errorf("world %d: %v", seed, sums)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		worlds++
	}
	if worlds != 12 || contracts < 100 {
		t.Errorf("%d worlds, %d contracts", worlds, contracts)
	}
}
