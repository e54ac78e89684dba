package backtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Run lets a policy trade a range of bars, from all cash to the last bar, and records it. The range
// begins where the environment does: at its first bar with a whole window behind it. The source
// must have whole-range episodes.
func Run(ctx context.Context, s *trading.Source, bars trading.Range, p Policy, key rng.Key) (*Record, error) {
	r, err := run(ctx, s, bars, p, key)
	if err != nil {
		return nil, fmt.Errorf("back-test %s: %w", p.Name(), err)
	}
	return r, nil
}

func run(ctx context.Context, s *trading.Source, bars trading.Range, p Policy, key rng.Key) (_ *Record, err error) {
	if s.Config().Episode.Kind != trading.Full {
		return nil, errors.New("the source has episodes over parts of the range, expected whole ones")
	}
	weigher, ok := p.(Weigher)
	if !ok {
		s = s.Orders()
	}
	e, err := s.Env(bars)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	ts := envs.NewTimeStep(e.Spec())
	if err := e.Reset(key.Split("episode"), ts); err != nil {
		return nil, err
	}
	m, first, n := s.Market(), e.Bar(), len(e.Positions())
	if err := p.Begin(e, key.Split("policy")); err != nil {
		return nil, err
	}
	r := newRecord(p.Name(), m, trading.Range{First: first, Last: bars.Last}, s.Config().LookAhead())
	if err := r.close(m, first, e.Value(), e.Cash(), e.Positions()); err != nil {
		return nil, err
	}
	action, named := tensor.New(tensor.Int64, e.Spec().Action.Shape()...), make([]int64, n)
	orders, in, out, weights := action.Int64s(), make([]float64, n), make([]float64, n), []float64(nil)
	if s.Config().Actions == trading.Weights {
		action = nil
		orders, weights = named, make([]float64, e.Spec().Action.Shape()[0])
	}
	for ts.Type != envs.Last {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := range orders {
			orders[i] = trading.Hold
		}
		bar := e.Bar()
		if weights == nil {
			if err = p.Decide(ctx, e, ts, orders); err == nil {
				byAsset(named, orders, e.Slots())
				err = e.Step(action, ts)
			}
		} else {
			clear(weights)
			weights[len(weights)-1] = 1
			if err = weigher.Weigh(ctx, e, ts, weights); err == nil {
				err = e.Rebalance(weights, ts)
			}
			for _, f := range e.Fills() {
				orders[f.Asset] = trading.Buy
				if f.Shares < 0 {
					orders[f.Asset] = trading.Sell
				}
			}
		}
		if err != nil {
			return nil, fmt.Errorf("bar %d: %w", bar, err)
		}
		r.Actions = append(r.Actions, named...)
		r.Rewards = append(r.Rewards, ts.Reward)
		r.Fees, r.Turnover = append(r.Fees, ts.Info[trading.InfoFees]), append(r.Turnover, ts.Info[trading.InfoTurnover])
		r.Skipped = append(r.Skipped, int(ts.Info[trading.InfoSkipped]))
		if e.Risk() != nil {
			r.Bound = append(r.Bound, e.Bound())
		}
		if err := r.close(m, e.Bar(), e.Value(), e.Cash(), e.Positions()); err != nil {
			return nil, err
		}
		r.settle(m, bar, e.Fills(), in, out)
	}
	return r, nil
}

// byAsset writes the orders of all assets: those of slots, or what there is for each.
func byAsset(dst, orders []int64, slots []int) {
	if slots == nil {
		copy(dst, orders)
		return
	}
	for i := range dst {
		dst[i] = trading.Hold
	}
	for slot, asset := range slots {
		if asset >= 0 {
			dst[asset] = orders[slot]
		}
	}
}

// Costs runs a policy once for each fee rate, a fraction of the amount of a trade. The policy
// decides again each time: fees change the portfolio that it sees. Each record's name tells the
// rate in basis points.
func Costs(ctx context.Context, s *trading.Source, bars trading.Range, p Policy, key rng.Key, rates []float64) ([]*Record, error) {
	out := make([]*Record, len(rates))
	for i, rate := range rates {
		v, err := s.WithFee(rate)
		if err != nil {
			return nil, fmt.Errorf("back-test %s: %w", p.Name(), err)
		}
		if out[i], err = Run(ctx, v, bars, p, key); err != nil {
			return nil, err
		}
		out[i].Name = fmt.Sprintf("%s at %g bp", p.Name(), rate*1e4)
	}
	return out, nil
}
