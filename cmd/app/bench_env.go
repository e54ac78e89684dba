package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// envBench is what `onnxrl bench env` measures with.
type envBench struct {
	assets, bars, features int
	count, workers         int
	rounds                 int
	round                  time.Duration
	sets                   []string
}

// envRow is a row of the table before it is measured.
type envRow struct {
	name, measures string
	make           func(index int) (envs.Env, error)
	count          int // 0 is an environment without a vector
	windows        bool
	target         float64 // 0 is none
	note           string
	allocates      bool // is allowed to
}

func (a *app) benchEnvCommand() *cobra.Command {
	b := envBench{bars: 2768, features: 30}
	var out benchmark.Output
	cmd := &cobra.Command{
		Use:   "env [CONFIG]",
		Short: "Steps per second of environments with random actions",
		Long: `Steps the trading environment on a random market, CartPole, and the smallest environment there is, with actions drawn beforehand. The ends of episodes and the resets after them are part of the time.
The figure is the median of several rounds. The targets are for one core, so a vector has one worker unless --workers says otherwise.

With a configuration, or the name of a shipped experiment, the environment of its training split is stepped instead, alone and in a vector.`,
		Example: `  onnxrl bench env --check
  onnxrl bench env demo --set env.window=60`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if b.assets < 1 || b.count < 1 || b.rounds < 1 || b.workers < 1 || b.round <= 0 {
				return errors.New("bench env: --assets, --envs, --rounds, --workers and --round must be positive")
			}
			var r *benchmark.Report
			var err error
			if len(args) == 0 {
				r, err = b.ours(cmd.Context())
			} else {
				r, err = b.configured(cmd.Context(), a.kinds, args[0])
			}
			if err != nil {
				return fmt.Errorf("bench env: %w", err)
			}
			if err := out.Save(r); err != nil {
				return err
			}
			return a.printTable(r, out.Verdict(r.Missed))
		},
	}
	f := cmd.Flags()
	out.AddFlags(f)
	f.IntVar(&b.assets, "assets", 16, "assets of the market")
	f.IntVar(&b.count, "envs", 64, "environments in a vector")
	f.IntVar(&b.workers, "workers", 1, "goroutines that step a vector")
	f.IntVar(&b.rounds, "rounds", 15, "how often each row is measured")
	f.DurationVar(&b.round, "round", 50*time.Millisecond, "time of one measurement")
	f.StringArrayVar(&b.sets, "set", nil, "edit the configuration, for instance --set env.window=60")
	return cmd
}

// stepper takes n steps.
type stepper func(n int) error

// ours steps the environments that have targets.
func (b envBench) ours(ctx context.Context) (*benchmark.Report, error) {
	market, err := trading.NewSource(b.market(), trading.Defaults())
	if err != nil {
		return nil, err
	}
	many, err := trading.NewSource(b.crowd(), slotsOf(crowdSlots))
	if err != nil {
		return nil, err
	}
	first, last := trading.Range{First: 0, Last: b.bars - 1}, trading.Range{First: 0, Last: many.Market().Len() - 1}
	trade := func(int) (envs.Env, error) { return market.Env(first) }
	places := func(int) (envs.Env, error) { return many.Env(last) }
	under := func(m *trading.Market, slots int, r trading.Range) (func(int) (envs.Env, error), error) {
		m, err := ruled(m)
		if err != nil {
			return nil, err
		}
		c := ruledConfig()
		c.Slots = slots
		s, err := trading.NewSource(m, c)
		return func(int) (envs.Env, error) { return s.Env(r) }, err
	}
	shares, err := under(market.Market(), 0, first)
	if err != nil {
		return nil, err
	}
	crowd, err := under(many.Market(), crowdSlots, last)
	if err != nil {
		return nil, err
	}
	walk := func(int) (envs.Env, error) { return corridor.New(corridor.Config{Cells: 64}) }
	pole := func(int) (envs.Env, error) { return classic.NewCartPole(classic.CartPoleDefaults()) }
	name := fmt.Sprintf("%d assets", b.assets)
	return b.run(ctx, []envRow{
		{"trading/single", name + ", one environment", trade, 0, false, 1e6, "windows are views", false},
		{"trading/vector", fmt.Sprintf("%s, vector of %d", name, b.count), trade, b.count, false, 1e6, "windows are views", false},
		{"trading/vector-copy", fmt.Sprintf("%s, vector of %d", name, b.count), trade, b.count, true, 0, fmt.Sprintf("windows of %d floats are copied", market.Config().Window*b.assets*b.features), false},
		{"trading/slots", fmt.Sprintf("%d of %d assets, one environment", crowdSlots, crowdAssets), places, 0, false, 2e4, fmt.Sprintf("windows of %d floats are copied", market.Config().Window*crowdSlots*crowdFeatures), false},
		{"trading/ashare", name + " by the rules of A shares", shares, 0, false, 1e6, "limits, lots, T+1, dated taxes, slippage, participation, raw prices", false},
		{"trading/ashare-slots", fmt.Sprintf("%d of %d assets by the rules of A shares", crowdSlots, crowdAssets), crowd, 0, false, 2e4, "", false},
		{"cartpole/vector", fmt.Sprintf("CartPole-v1, vector of %d", b.count), pole, b.count, false, 5e6, "", false},
		{"corridor/single", "the smallest environment", walk, 0, false, 0, "", false},
		{"corridor/vector", fmt.Sprintf("the smallest environment, vector of %d", b.count), walk, b.count, false, 5e6, "", false},
	})
}

// configured steps the environment of a document, without its wrappers.
func (b envBench) configured(ctx context.Context, kinds experiment.Kinds, path string) (r *benchmark.Report, err error) {
	cfg, _, err := kinds.Load(path, b.sets)
	if err != nil {
		return nil, err
	}
	f, err := envs.Open(ctx, kinds.Envs, cfg.Env)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, several := f.(envs.MultiFactory); several {
		return nil, fmt.Errorf("%s: worlds of several agents cannot be stepped with actions drawn beforehand", cfg.Env.Kind)
	}
	open := func(index int) (envs.Env, error) { return f.New(envs.Train, index) }
	return b.run(ctx, []envRow{
		{name: cfg.Env.Kind + "/single", measures: "one environment", make: open, allocates: true},
		{name: cfg.Env.Kind + "/vector", measures: fmt.Sprintf("vector of %d", b.count), make: open, count: b.count, allocates: true},
		{name: cfg.Env.Kind + "/vector-copy", measures: fmt.Sprintf("vector of %d", b.count), make: open, count: b.count, windows: true, note: "windows are copied", allocates: true},
	})
}

func (b envBench) run(ctx context.Context, rows []envRow) (*benchmark.Report, error) {
	r := &benchmark.Report{Machine: benchmark.ThisMachine()}
	r.Machine.ORT = "not used"
	for _, w := range rows {
		step, per, done, err := b.stepper(w.make, w.count, w.windows)
		if err != nil {
			return nil, err
		}
		row, err := b.measure(ctx, step, per)
		if err = errors.Join(err, done()); err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		row.Name, row.Measures, row.Note = w.name, w.measures, w.note
		if w.target > 0 {
			row.Against, row.Reference, row.Target = "target", w.target, &benchmark.Target{AtLeast: 1}
			row.Ratio = row.Value / w.target
		}
		row.Pass = (*row.Allocs == 0 || w.allocates) && (row.Target == nil || row.Ratio >= row.Target.AtLeast)
		if !row.Pass {
			r.Missed++
		}
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

// stepper returns a function that steps an environment, or a vector of count of them, per
// environment steps at once.
func (b envBench) stepper(open func(int) (envs.Env, error), count int, windows bool) (step stepper, per int, done func() error, err error) {
	key, draws := rng.New(1), rng.New(2).Stream()
	list := make([]envs.Env, max(count, 1))
	for i := range list {
		if list[i], err = open(i); err != nil {
			return nil, 0, nil, err
		}
	}
	spec := list[0].Spec()
	// Drawing is not what is measured: the actions come from a wheel of random ones. It is so long
	// that a processor does not learn what comes next, as it does of 64.
	wheel := make([]*tensor.Tensor, max(4096/len(list), 64))
	draw := func(shape ...int) {
		one := tensor.New(spec.Action.DType(), spec.Action.Shape()...)
		for i := range wheel {
			wheel[i] = tensor.New(spec.Action.DType(), shape...)
			for rest := wheel[i].Bytes(); len(rest) > 0; {
				spec.Action.Sample(draws, nil, one)
				rest = rest[copy(rest, one.Bytes()):]
			}
		}
	}
	turn := 0
	if count == 0 {
		e, ts := list[0], envs.NewTimeStep(spec)
		ts.Type = envs.Last
		draw(spec.Action.Shape()...)
		return func(n int) error {
			for range n {
				var err error
				if ts.Type == envs.Last {
					err = e.Reset(key, ts)
				} else {
					err = e.Step(wheel[turn%len(wheel)], ts)
				}
				if err != nil {
					return err
				}
				turn++
			}
			return nil
		}, 1, e.Close, nil
	}
	v, err := vector.New(list, vector.Options{Workers: b.workers, Windows: windows})
	if err != nil {
		return nil, 0, nil, err
	}
	draw(append([]int{count}, spec.Action.Shape()...)...)
	if err := v.Reset(key); err != nil {
		return nil, 0, nil, err
	}
	return func(n int) error {
		for range n {
			if err := v.Step(wheel[turn%len(wheel)]); err != nil {
				return err
			}
			turn++
		}
		return nil
	}, count, v.Close, nil
}

// measure returns a row with the median rate of the rounds and the allocations per call.
func (b envBench) measure(ctx context.Context, step stepper, per int) (row benchmark.Row, err error) {
	calls := 1
	for {
		start := time.Now()
		if err := step(calls); err != nil {
			return row, err
		}
		if took := time.Since(start); took > b.round/4 {
			calls = max(1, int(float64(calls)*float64(b.round)/float64(took)))
			break
		}
		calls *= 2
	}
	rates := make([]float64, 0, b.rounds)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range b.rounds {
		if err := ctx.Err(); err != nil {
			return row, err
		}
		start := time.Now()
		if err := step(calls); err != nil {
			return row, err
		}
		rates = append(rates, float64(calls*per)/time.Since(start).Seconds())
	}
	runtime.ReadMemStats(&after)
	slices.Sort(rates)
	// Allocations of the runtime's own, a handful in all the rounds, are not the steps'.
	allocs := math.Floor(float64(after.Mallocs-before.Mallocs) / float64(calls*b.rounds))
	return benchmark.Row{Value: rates[len(rates)/2], Unit: "steps/s", Allocs: &allocs}, nil
}

// market returns a random market whose prices return to where they began, so that portfolios
// neither vanish nor explode.
func (b envBench) market() *trading.Market {
	s, t, n := rng.New(7).Stream(), b.bars, b.assets
	m := &trading.Market{
		X: make([]float32, t*n*b.features), Open: make([]float64, t*n), Close: make([]float64, t*n), Tradable: slices.Repeat([]trading.Sides{trading.Both}, t*n),
		Assets: make([]string, n), Features: make([]string, b.features), Dates: make([]time.Time, t),
	}
	s.FillNormal32(m.X, 0, 1)
	for i := range m.Assets {
		m.Assets[i] = fmt.Sprintf("asset %d", i)
	}
	for i := range m.Features {
		m.Features[i] = fmt.Sprintf("feature %d", i)
	}
	level := make([]float64, n)
	for bar := range t {
		m.Dates[bar] = time.Date(2000, 1, 1+bar, 0, 0, 0, 0, time.UTC)
		for a := range n {
			level[a] += 0.02*s.Normal() - 0.01*level[a]
			m.Open[bar*n+a] = 50 * math.Exp(level[a])
			level[a] += 0.02 * s.Normal()
			m.Close[bar*n+a] = 50 * math.Exp(level[a])
		}
	}
	return m
}
