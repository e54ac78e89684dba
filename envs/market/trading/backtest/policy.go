package backtest

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Policy decides what is done with each asset. It is not safe for concurrent use.
type Policy interface {
	// Name is what tables call it.
	Name() string
	// Begin is called once before the decisions of a run, with the environment reset. All
	// randomness of the run comes from key.
	Begin(e *trading.Env, key rng.Key) error
	// Decide writes trading.Buy, Sell or Hold for each asset into orders [N], which hold Hold. The
	// step is the environment's present one. It allocates nothing.
	Decide(ctx context.Context, e *trading.Env, ts *envs.TimeStep, orders []int64) error
}

// Weigher is a Policy that can also decide on target weights. Where the actions of the environment
// are weights it is asked for these, and policies that are none trade by orders in the same market.
type Weigher interface {
	Policy
	// Weigh writes target weights [N+1], of the assets and, last, of the cash; they hold all of it
	// in cash. It is otherwise like Decide.
	Weigh(ctx context.Context, e *trading.Env, ts *envs.TimeStep, weights []float64) error
}

// HoldCash returns the policy that does nothing.
func HoldCash() Policy { return holdCash{} }

type holdCash struct{}

func (holdCash) Name() string                                                        { return "cash" }
func (holdCash) Begin(*trading.Env, rng.Key) error                                   { return nil }
func (holdCash) Decide(context.Context, *trading.Env, *envs.TimeStep, []int64) error { return nil }

// RandomSeeds are the seeds of the specification's random baseline.
var RandomSeeds = []uint64{42, 43, 44, 45, 46}

// Random returns the policy that buys each asset with probability 0.2, sells it with 0.2 and else
// holds. It draws from its own seed, so that it is the same baseline in every report, and not from
// the key of the run.
func Random(seed uint64) Policy { return &random{seed: seed} }

type random struct {
	seed   uint64
	stream rng.Stream
}

func (r *random) Name() string { return fmt.Sprintf("random %d", r.seed) }

func (r *random) Begin(*trading.Env, rng.Key) error {
	r.stream.Seed(rng.New(r.seed).Split("random policy"))
	return nil
}

// Decide draws once per asset, tradable or not: orders for an asset that cannot be traded are
// skipped by the environment.
func (r *random) Decide(_ context.Context, _ *trading.Env, _ *envs.TimeStep, orders []int64) error {
	for i := range orders {
		switch u := r.stream.Float64(); {
		case u < 0.2:
			orders[i] = trading.Buy
		case u < 0.4:
			orders[i] = trading.Sell
		}
	}
	return nil
}
