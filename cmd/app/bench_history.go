package app

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/feed"
	"github.com/onnxrl/onnxrl/envs/market/universe"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// historyBench is what `onnxrl bench history` measures with.
type historyBench struct {
	days, bars              int
	assets, members         int
	features, window, steps int
	dir                     string
}

func (a *app) benchHistoryCommand() *cobra.Command {
	var b historyBench
	var out benchmark.Output
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Memory and speed of a market that is larger than memory",
		Long: `Writes a made-up market of bars within days as a file of columns, opens it as an experiment with env.data.stored does, and steps an environment of slots through it.
By default these are 5-minute bars of 800 assets over ten years, of which 300 belong to the universe at a time. They take about 4.8 GB on disk, which is removed afterwards.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.days < 1 || b.bars < 1 || b.members < 1 || b.assets < b.members || b.features < 1 || b.window < 1 || b.days*b.bars < b.window+2 || b.steps < 0 {
				return errors.New("bench history: --days, --bars, --features and --window must be positive and leave a step, and --assets at least --members")
			}
			r, err := b.run(cmd.Context())
			if err != nil {
				return fmt.Errorf("bench history: %w", err)
			}
			if err := out.Save(r); err != nil {
				return err
			}
			return a.printTable(r, out.Verdict(r.Missed))
		},
	}
	f := cmd.Flags()
	out.AddFlags(f)
	f.IntVar(&b.days, "days", 2430, "days of the market")
	f.IntVar(&b.bars, "bars", 48, "bars of a day")
	f.IntVar(&b.assets, "assets", 800, "assets of the market")
	f.IntVar(&b.members, "members", 300, "assets that belong to the universe at a time, and slots")
	f.IntVar(&b.features, "features", 8, "features")
	f.IntVar(&b.window, "window", 20, "bars of a window")
	f.IntVar(&b.steps, "steps", 0, "steps to take (0: through all bars)")
	f.StringVar(&b.dir, "dir", "", "folder for the file (default: the system's for temporary files)")
	return cmd
}

// at is the time of a bar: days with a morning and an afternoon.
func (b historyBench) at(bar int) time.Time {
	minute := 9*60 + 35 + 5*(bar%b.bars)
	if bar%b.bars >= b.bars/2 {
		minute += 90
	}
	return time.Date(2010, 1, 1+bar/b.bars, 0, minute, 0, 0, time.UTC)
}

// market writes the market and returns the file's name.
func (b historyBench) market(ctx context.Context, dir string) (string, error) {
	t, n := b.days*b.bars, b.assets
	d := &trading.Data{Market: &trading.Market{}, Splits: map[envs.Split]trading.Range{envs.Train: {First: 0, Last: t - 1}}}
	for i := range n {
		d.Market.Assets = append(d.Market.Assets, fmt.Sprintf("asset %d", i))
	}
	for i := range b.features {
		d.Market.Features = append(d.Market.Features, fmt.Sprintf("feature %d", i))
	}
	noise := make([]float64, 1<<16)
	draws := rng.New(7).Stream()
	for i := range noise {
		noise[i] = draws.Normal()
	}
	// rows writes a row of bytes for each bar.
	rows := func(size int, fill func(bar int, row []byte)) func(io.Writer) error {
		return func(w io.Writer) error {
			row := make([]byte, size)
			for bar := range t {
				if bar%b.bars == 0 {
					if err := ctx.Err(); err != nil {
						return err
					}
				}
				fill(bar, row)
				if _, err := w.Write(row); err != nil {
					return err
				}
			}
			return nil
		}
	}
	// Prices return to where they began. The open of a bar is the close of the one before it.
	prices := func(open bool) func(io.Writer) error {
		level := make([]float64, n)
		return rows(8*n, func(bar int, row []byte) {
			for i := range level {
				if v := 50 * (1 + level[i]); open {
					binary.LittleEndian.PutUint64(row[8*i:], math.Float64bits(v))
				}
				level[i] += 0.002*noise[(bar*7919+i*31)&(len(noise)-1)] - 0.001*level[i]
				level[i] = min(max(level[i], -0.5), 0.5)
				if !open {
					binary.LittleEndian.PutUint64(row[8*i:], math.Float64bits(50*(1+level[i])))
				}
			}
		})
	}
	// Those that belong are a run of the assets, which moves on by one each day.
	membership := func(bar, i int) universe.Membership {
		switch from := bar / b.bars % n; {
		case (i-from+n)%n < b.members:
			return universe.Member
		case bar < b.bars:
			return universe.Outside
		}
		return universe.Leaving
	}
	path := filepath.Join(dir, "history.columns")
	return path, feed.WriteColumns(path, d, t, []feed.Column{
		{Name: "date", Write: rows(8, func(bar int, row []byte) { binary.LittleEndian.PutUint64(row, uint64(b.at(bar).UnixNano())) })},
		{Name: "x", Write: rows(4*n*b.features, func(bar int, row []byte) {
			for i := range n * b.features {
				binary.LittleEndian.PutUint32(row[4*i:], math.Float32bits(float32(noise[(bar*104729+i)&(len(noise)-1)])))
			}
		})},
		{Name: "open", Write: prices(true)},
		{Name: "close", Write: prices(false)},
		{Name: "tradable", Write: rows(n, func(bar int, row []byte) {
			for i := range row {
				if row[i] = byte(trading.CanSell); membership(bar, i) == universe.Member {
					row[i] = byte(trading.Both)
				}
			}
		})},
		{Name: "member", Write: rows(n, func(bar int, row []byte) {
			for i := range row {
				row[i] = byte(membership(bar, i))
			}
		})},
	})
}

func (b historyBench) run(ctx context.Context) (_ *benchmark.Report, err error) {
	r := &benchmark.Report{Machine: benchmark.ThisMachine()}
	r.Machine.ORT = "not used"
	dir, err := os.MkdirTemp(b.dir, "onnxrl-history-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path, err := b.market(ctx, dir)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%d bars of %d assets", b.days*b.bars, b.assets)
	add := func(row benchmark.Row, atLeast, atMost float64) {
		if row.Pass = true; atLeast > 0 || atMost > 0 {
			row.Against, row.Reference, row.Target = "target", max(atLeast, atMost), &benchmark.Target{}
			if row.Ratio = row.Value / row.Reference; atLeast > 0 {
				row.Target.AtLeast, row.Pass = 1, row.Ratio >= 1
			} else {
				row.Target.AtMost, row.Pass = 1, row.Ratio <= 1
			}
		}
		if row.Pass = row.Pass && (row.Allocs == nil || *row.Allocs == 0); !row.Pass {
			r.Missed++
		}
		r.Rows = append(r.Rows, row)
	}
	add(benchmark.Row{Name: "history/file", Measures: name, Value: float64(info.Size()) / 1e9, Unit: "GB"}, 0, 0)
	start := time.Now()
	d, err := feed.OpenColumns(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	c := trading.Defaults()
	c.Window, c.Slots = b.window, b.members
	source, err := trading.NewSource(d.Market, c)
	if err != nil {
		return nil, err
	}
	e, err := source.Env(d.Splits[envs.Train])
	if err != nil {
		return nil, err
	}
	add(benchmark.Row{Name: "history/open", Measures: "until the first step", Value: float64(time.Since(start).Milliseconds()), Unit: "ms"}, 0, 0)
	rate, steps, err := b.walk(ctx, e)
	if err != nil {
		return nil, err
	}
	add(benchmark.Row{Name: "history/steps", Measures: fmt.Sprintf("%d slots, %d steps", b.members, steps), Value: rate, Unit: "steps/s", Note: fmt.Sprintf("windows of %d floats are copied", b.window*b.members*b.features)}, 2e4, 0)
	if peak, ok := statusOf("VmHWM"); ok {
		anon, _ := statusOf("RssAnon")
		add(benchmark.Row{Name: "history/memory", Measures: "most resident at a time", Value: peak, Unit: "MiB", Note: fmt.Sprintf("%.0f MiB of it at the end are no pages of files", anon)}, 0, 4096)
	}
	return r, nil
}

// walk steps with random orders.
func (b historyBench) walk(ctx context.Context, e *trading.Env) (rate float64, steps int, err error) {
	draws, ts := rng.New(2).Stream(), envs.NewTimeStep(e.Spec())
	wheel := make([]*tensor.Tensor, 64)
	for i := range wheel {
		wheel[i] = tensor.New(tensor.Int64, b.members)
		e.Spec().Action.Sample(draws, nil, wheel[i])
	}
	if err := e.Reset(rng.New(1), ts); err != nil {
		return 0, 0, err
	}
	start := time.Now()
	for ts.Type != envs.Last && (b.steps == 0 || steps < b.steps) {
		if steps&1023 == 0 {
			if err := ctx.Err(); err != nil {
				return 0, 0, err
			}
		}
		if err := e.Step(wheel[steps&63], ts); err != nil {
			return 0, 0, err
		}
		steps++
	}
	return float64(steps) / time.Since(start).Seconds(), steps, nil
}

// statusOf reads a number of MiB from the process's status where the system tells it.
func statusOf(key string) (mib float64, ok bool) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	lines := strings.Split(string(text), "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, key+":") })
	if i < 0 {
		return 0, false
	}
	kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(lines[i], key+":"), "kB")), 64)
	return kb / 1024, err == nil
}
