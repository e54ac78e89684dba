package assess

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Request is what a full assessment is about.
type Request struct {
	Env    trading.Opened
	Split  envs.Split
	Config evaluate.Config
	// Agents are the policies to evaluate: the one that the report is about and, where it was
	// trained with several seeds, those of the other seeds. Their names differ.
	Agents []backtest.Policy
	// Index is the record of an index over at least the split's dates, or nil.
	Index *Series
	// LookAhead says what the policies know of the future besides what the environment tells, such
	// as statistics of their own; sentences that are there twice count once.
	LookAhead []string
	// Trained and Chosen are the bars that the policies learnt from and were chosen by, as far as
	// it is known; where they are not given, they are the environment's train and valid splits.
	Trained, Chosen evaluate.Period
	// Key is where the randomness of policies that draw their actions descends from.
	Key rng.Key
}

// Assessment holds the records of one request, all over the same dates, which makes them
// comparable.
type Assessment struct {
	Split envs.Split
	// Config is that of the request with the number of bars in a year, and PeriodsFrom what the
	// number is made of.
	Config      evaluate.Config
	PeriodsFrom string
	// DataNotes are what the data's loader says of them.
	DataNotes []string
	// Agents are in the order of the request. Benchmark is equal-weight buy-and-hold; Baselines are
	// the others, in the order of the configuration, after buy-and-hold of the listed where some
	// stock is not listed at the start.
	Agents    []*backtest.Record
	Benchmark *backtest.Record
	Baselines []Baseline
	// Lag and Costs are records of the first agent under other assumptions, HoldCosts those of the
	// benchmark at the same fees.
	Lag              []Variant
	Costs, HoldCosts []Variant
	// Rules are what the records other than Costs were traded by.
	Rules trading.Config
	// Actions says that the data have dividends or bonus shares, which accounts book as they are.
	Actions bool
	// LookAhead says what in the run knows the future, one sentence each.
	LookAhead []string
	// Seen says what of the evaluated bars the agent has learnt from or was chosen by.
	Seen []string
	// ChosenHere says that the agent was chosen by its results on some of the evaluated bars.
	ChosenHere bool
}

// Baseline is a record with the rule behind it in one line. Those of one Group, unless empty,
// differ by their seeds only.
type Baseline struct {
	*backtest.Record
	Note  string
	Group string
}

// Variant is a record under another assumption: bars of lag, or basis points of fees.
type Variant struct {
	X      float64
	Record *backtest.Record
}

// Run evaluates agents on one split, next to the baselines, with the sensitivity analyses of the
// configuration.
func Run(ctx context.Context, r Request) (*Assessment, error) {
	a, err := r.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("evaluate on the split %q: %w", r.Split, err)
	}
	return a, nil
}

func (r *Request) run(ctx context.Context) (*Assessment, error) {
	if len(r.Agents) == 0 {
		return nil, errors.New("no policy is given")
	}
	bars, err := split(r.Env, r.Split)
	if err != nil {
		return nil, err
	}
	s, err := charged(r.Env.Source(), r.Config)
	if err != nil {
		return nil, err
	}
	a := &Assessment{Split: r.Split, DataNotes: r.Env.Data().Notes, Rules: s.Config(), Actions: s.Market().Dividend != nil, LookAhead: r.lookAhead()}
	a.Config, a.PeriodsFrom = annual(r.Config, s.Market())
	a.Seen, a.ChosenHere = r.seen(bars)
	for _, p := range r.Agents {
		rec, err := backtest.Run(ctx, s, bars, p, r.Key)
		if err != nil {
			return nil, err
		}
		a.Agents = append(a.Agents, rec)
	}
	if a.Benchmark, err = backtest.Accounts(ctx, s, bars, backtest.BuyAndHold()); err != nil {
		return nil, err
	}
	if err := r.baselines(ctx, a, s, bars); err != nil {
		return nil, err
	}
	return a, r.sensitivity(ctx, a, s, bars)
}

// baselines adds what the configuration names.
func (r *Request) baselines(ctx context.Context, a *Assessment, s *trading.Source, bars trading.Range) error {
	add := func(note, group string, rec *backtest.Record, err error) error {
		if err == nil {
			a.Baselines = append(a.Baselines, Baseline{rec, note, group})
		}
		return err
	}
	if unlisted(a.Benchmark) > 0 {
		rec, err := backtest.Accounts(ctx, s, bars, backtest.BuyListed())
		if err := add("an equal share of the cash in each stock that can be traded at the start, never sold", "", rec, err); err != nil {
			return err
		}
	}
	for _, n := range r.Config.Baselines.MovingAverage {
		rule, err := backtest.MovingAverage(n)
		if err != nil {
			return err
		}
		rec, err := backtest.Accounts(ctx, s, bars, rule)
		if err := add(fmt.Sprintf("an equal share of the cash per stock, in it while its close is above the mean of the last %d closes", n), "", rec, err); err != nil {
			return err
		}
	}
	for _, seed := range r.Config.Baselines.Random {
		rec, err := backtest.Run(ctx, s, bars, backtest.Random(seed), r.Key)
		if err := add("buys with probability 0.2, sells with 0.2, holds with 0.6", "random", rec, err); err != nil {
			return err
		}
	}
	if r.Config.Baselines.Cash {
		rec, err := backtest.Run(ctx, s, bars, backtest.HoldCash(), r.Key)
		if err := add("never invested, no interest", "", rec, err); err != nil {
			return err
		}
	}
	if r.Index == nil {
		return nil
	}
	prices, err := r.Index.At(a.Benchmark.Dates)
	if err != nil {
		return err
	}
	rec, err := backtest.Index(r.Index.Name, a.Benchmark.Dates, prices, s.Config().InitialCash)
	note := "the index, held from the first close without costs"
	if r.Index.Note != "" {
		note += "; " + r.Index.Note
	}
	return add(note, "", rec, err)
}

// sensitivity adds the agent's records with a lag and at other fees.
func (r *Request) sensitivity(ctx context.Context, a *Assessment, s *trading.Source, bars trading.Range) error {
	for _, k := range r.Config.Lag {
		p, err := backtest.Lagged(r.Agents[0], k)
		if err != nil {
			return err
		}
		rec, err := backtest.Run(ctx, s, bars, p, r.Key)
		if err != nil {
			return err
		}
		a.Lag = append(a.Lag, Variant{float64(k), rec})
	}
	rates := make([]float64, len(r.Config.CostSweepBP))
	for i, bp := range r.Config.CostSweepBP {
		rates[i] = bp / 1e4
	}
	recs, err := backtest.Costs(ctx, s, bars, r.Agents[0], r.Key, rates)
	if err != nil {
		return err
	}
	for i, rec := range recs {
		v, err := s.WithFee(rates[i])
		if err != nil {
			return err
		}
		hold, err := backtest.Accounts(ctx, v, bars, backtest.BuyAndHold())
		if err != nil {
			return err
		}
		hold.Name = fmt.Sprintf("%s at %g bp", hold.Name, r.Config.CostSweepBP[i])
		a.Costs, a.HoldCosts = append(a.Costs, Variant{r.Config.CostSweepBP[i], rec}), append(a.HoldCosts, Variant{r.Config.CostSweepBP[i], hold})
	}
	return nil
}
