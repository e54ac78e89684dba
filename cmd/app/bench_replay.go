package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// replayBench is what `onnxrl bench replay` measures with.
type replayBench struct {
	features, actions, batch, large, envs int
	rounds                                int
	round                                 time.Duration
}

func (a *app) benchReplayCommand() *cobra.Command {
	b := replayBench{features: 17, actions: 6}
	var served servedReplay
	var out benchmark.Output
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Transitions per second of replays, and the time of a sample",
		Long: `Records transitions of HalfCheetah's form (17 observations, 6 actions) and samples batches of them.
A sample is compared, in turns, with a bare loop that copies the same bytes of as many rows, drawn beforehand, from a table of the same size and layout. It passes when it is within its target of time, or takes at most 1.2 times as long as the loop. Drawing, and checking what may be drawn, are in its time and not in the loop's.
With --url, the tables of a server (onnxrl replay serve) are measured instead: transitions per second into them, acknowledged, and out of them. Several clients do so at once, each a connection of its own in this process; those that draw are compared with as many samplers of a store in this process. Another row is the longest time that a writer of a table with a journal waits while that is saved.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.batch < 1 || b.large < 20_000 || b.envs < 1 || b.rounds < 1 || b.round <= 0 {
				return errors.New("bench replay: --batch, --envs, --rounds and --round must be positive, and --large at least 20000")
			}
			measure := b.run
			if served.url != "" {
				if err := served.check(); err != nil {
					return fmt.Errorf("bench replay: %w", err)
				}
				measure = func(ctx context.Context) (*benchmark.Report, error) { return b.served(ctx, &served) }
			}
			r, err := measure(cmd.Context())
			if err != nil {
				return fmt.Errorf("bench replay: %w", err)
			}
			if err := out.Save(r); err != nil {
				return err
			}
			return a.printTable(r, out.Verdict(r.Missed))
		},
	}
	f := cmd.Flags()
	out.AddFlags(f)
	f.IntVar(&b.batch, "batch", 256, "transitions of a sample")
	f.IntVar(&b.large, "large", 2_000_000, "transitions of the large replays")
	f.IntVar(&b.envs, "envs", 8, "environments of a writer")
	f.IntVar(&b.rounds, "rounds", 15, "how often each row is measured")
	f.DurationVar(&b.round, "round", 20*time.Millisecond, "time of one measurement")
	f.StringVar(&served.url, "url", "", "measure the server at this URL, grpc://HOST:PORT, instead")
	f.StringSliceVar(&served.tables, "tables", []string{"transitions"}, "tables of the server, whose transitions are HalfCheetah's or which are empty")
	f.IntSliceVar(&served.clients, "clients", []int{1, 4, 16}, "numbers of clients")
	f.IntVar(&served.transitions, "transitions", 100_000, "transitions that a table has at least")
	f.IntVar(&served.prefetch, "prefetch", 4, "samples that a client asks for ahead")
	return cmd
}

// pusher records made-up transitions.
type pusher struct {
	rec   agents.Recorder
	frame *vector.Frame
	d     vector.Decision
	at    int
}

func (b replayBench) spec() envs.Spec {
	return envs.Spec{
		Name: "made up", Observation: envs.Dict{{Name: "observation", Space: envs.Unbounded(b.features)}}, Action: envs.Unbounded(b.actions), Reward: envs.Range{Low: math.Inf(-1), High: math.Inf(1)},
	}
}

func (b replayBench) pusher(rec agents.Recorder) (*pusher, error) {
	f, err := vector.NewFrame(b.spec(), b.envs, false)
	if err != nil {
		return nil, err
	}
	p := &pusher{rec: rec, frame: f, d: vector.Decision{Actions: tensor.New(tensor.Float32, b.envs, b.actions), LogProb: make([]float32, b.envs)}}
	rng.New(1).Stream().FillNormal32(f.Batch().Obs[0].Float32s(), 0, 1)
	for e := range b.envs {
		f.Batch().Type[e], f.Batch().Discount[e] = envs.Mid, 1
	}
	return p, nil
}

// push records n rounds. Episodes have a thousand steps.
func (p *pusher) push(n int) error {
	b := p.frame.Batch()
	for range n {
		if err := p.rec.Begin(b, &p.d); err != nil {
			return err
		}
		p.at++
		t := envs.Mid
		if p.at%1000 == 0 {
			t = envs.Last
		}
		for e := range b.Type {
			b.Type[e], b.Reward[e] = t, float64(p.at)
		}
		// Every observation differs from the one before.
		for e, x := 0, b.Obs[0].Float32s(); e < len(x); e += len(x) / len(b.Type) {
			x[e] = float32(p.at)
		}
		if err := p.rec.End(b); err != nil {
			return err
		}
	}
	return nil
}

// run measures all rows.
func (b replayBench) run(ctx context.Context) (*benchmark.Report, error) {
	r := &benchmark.Report{Machine: benchmark.ThisMachine()}
	r.Machine.ORT = "not used"
	for _, size := range []struct {
		name  string
		n     int
		micro float64
	}{{"10k", 10_000, 6}, {"2M", b.large, 25}} {
		if err := b.stores(ctx, r, size.name, size.n, size.micro); err != nil {
			return nil, err
		}
	}
	for i := range r.Rows {
		if !r.Rows[i].Pass {
			r.Missed++
		}
	}
	return r, nil
}

// stores measures every replay of a size.
func (b replayBench) stores(ctx context.Context, r *benchmark.Report, name string, n int, micro float64) (err error) {
	layout := replay.LayoutOf(b.spec(), replay.Column{Name: "action", DType: tensor.Float32, Shape: []int{b.actions}})
	shared, err := replay.NewShared(layout, replay.SharedConfig{Capacity: n, ChunkRows: min(1024, chunkOf(n, b.envs))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	writer, err := shared.Writer("bench", 0, b.envs, nil)
	if err != nil {
		return err
	}
	uniform, err := replay.NewUniform(layout, replay.Config{Capacity: n, Envs: b.envs, Gamma: 0.99})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, uniform.Close()) }()
	prioritised, err := replay.NewPrioritised(layout, replay.Config{Capacity: n, Envs: b.envs, Gamma: 0.99}, replay.Priorities{Alpha: 0.6, Eps: 1e-6})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prioritised.Close()) }()
	sampler, err := shared.NewSampler(replay.SamplerConfig{Gamma: 0.99})
	if err != nil {
		return err
	}
	recent, err := shared.NewSampler(replay.SamplerConfig{Gamma: 0.99, Mix: map[int32]float64{0: 1}, HalfLife: float64(n) / 2, Beta: 1})
	if err != nil {
		return err
	}
	batch := b.batchOf()
	draws := rng.New(3).Stream()
	g, err := b.gatherer(layout, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.arena.Close()) }()
	for _, s := range []struct {
		name   string
		rec    agents.Recorder
		target float64
		sample map[string]func() error
	}{
		{"shared", writer, 3e6, map[string]func() error{"": func() error { return sampler.Sample(draws, batch) }, "-recent": func() error { return recent.Sample(draws, batch) }}},
		{"uniform", uniform, 3e6, map[string]func() error{"": func() error { return uniform.Sample(draws, batch) }}},
		{"prioritised", prioritised, 0, map[string]func() error{"": func() error { return prioritised.Sample(draws, batch) }}},
	} {
		p, err := b.pusher(s.rec)
		if err != nil {
			return err
		}
		if err := p.push(n/b.envs + 1); err != nil {
			return errors.Join(err, p.frame.Close())
		}
		row, err := b.pushes(ctx, p, s.target)
		if err = errors.Join(err, p.frame.Close()); err != nil {
			return err
		}
		row.Name = fmt.Sprintf("push/%s-%s", s.name, name)
		r.Rows = append(r.Rows, row)
		for _, kind := range slices.Sorted(mapKeys(s.sample)) {
			limit := micro
			if s.name == "prioritised" || kind != "" {
				// No target was set for these.
				limit = 0
			}
			row, err := b.samples(ctx, s.sample[kind], g, limit)
			if err != nil {
				return err
			}
			row.Name = fmt.Sprintf("sample/%s%s-%s", s.name, kind, name)
			r.Rows = append(r.Rows, row)
		}
	}
	if name == "2M" {
		row, err := b.many(ctx, layout, n)
		if err != nil {
			return err
		}
		r.Rows = append(r.Rows, row)
	}
	return nil
}

// chunkOf returns the largest power of two that leaves every environment of a store of n rows
// several chunks.
func chunkOf(n, envs int) int {
	k := 4
	for k*2 <= n/(4*envs) {
		k *= 2
	}
	return k
}

func mapKeys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// batchOf makes room for a sample, outside the Go heap as a program's inputs are.
func (b replayBench) batchOf() *replay.Batch {
	of := func(k int) *tensor.Tensor { return tensor.New(tensor.Float32, b.batch, k) }
	return &replay.Batch{
		Obs: []*tensor.Tensor{of(b.features)}, NextObs: []*tensor.Tensor{of(b.features)}, Action: of(b.actions), Reward: make([]float32, b.batch), Discount: make([]float32, b.batch),
	}
}

// gatherer is the bare loop: a table of rows like the replays', and rows to copy.
type gatherer struct {
	arena                   *tensor.Arena
	data                    []byte
	stride, obs, act        int
	index                   [][]int
	turn                    int
	x, next, action, scalar []byte
}

func (b replayBench) gatherer(l replay.Layout, n int) (*gatherer, error) {
	g := &gatherer{obs: 4 * b.features, act: 4 * b.actions}
	g.stride = tensor.AlignUp(g.obs + g.act + 8)
	var err error
	if g.arena, err = tensor.NewArena((n + 1) * g.stride); err != nil {
		return nil, err
	}
	t, err := g.arena.Tensor(tensor.Uint8, 0, (n+1)*g.stride)
	if err != nil {
		return nil, errors.Join(err, g.arena.Close())
	}
	g.data = t.Bytes()
	replay.AdviseHuge(g.data)
	for i := range g.data {
		g.data[i] = byte(i)
	}
	s := rng.New(9).Stream()
	// So many that the rows of a large table are not still in a cache when it is their turn again.
	for range 1024 {
		list := make([]int, b.batch)
		for i := range list {
			list[i] = s.IntN(n)
		}
		g.index = append(g.index, list)
	}
	g.x, g.next, g.action, g.scalar = make([]byte, b.batch*g.obs), make([]byte, b.batch*g.obs), make([]byte, b.batch*g.act), make([]byte, b.batch*8)
	return g, nil
}

// gather copies one batch.
func (g *gatherer) gather() error {
	for i, row := range g.index[g.turn%len(g.index)] {
		from := g.data[row*g.stride:]
		copy(g.x[i*g.obs:(i+1)*g.obs], from)
		copy(g.next[i*g.obs:(i+1)*g.obs], from[g.stride:])
		copy(g.scalar[8*i:8*i+8], from[g.obs:])
		copy(g.action[i*g.act:(i+1)*g.act], from[g.obs+8:])
	}
	g.turn++
	return nil
}

// calls returns how many calls of f take about as long as a round.
func (b replayBench) calls(f func() error) (int, error) {
	for n := 1; ; n *= 2 {
		start := time.Now()
		for range n {
			if err := f(); err != nil {
				return 0, err
			}
		}
		if took := time.Since(start); took > b.round/4 {
			return max(1, int(float64(n)*float64(b.round)/float64(took))), nil
		}
	}
}

// timed returns the time of one of n calls in nanoseconds.
func timed(n int, f func() error) (float64, error) {
	start := time.Now()
	for range n {
		if err := f(); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Nanoseconds()) / float64(n), nil
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// pushes measures recording.
func (b replayBench) pushes(ctx context.Context, p *pusher, target float64) (row benchmark.Row, err error) {
	n, err := b.calls(func() error { return p.push(1) })
	if err != nil {
		return row, err
	}
	var rates []float64
	before := mallocs()
	for range b.rounds {
		ns, err := timed(1, func() error { return p.push(n) })
		if err = errors.Join(err, ctx.Err()); err != nil {
			return row, err
		}
		rates = append(rates, float64(n*b.envs)/ns*1e9)
	}
	allocs := math.Floor(float64(mallocs()-before) / float64(n*b.rounds))
	row = benchmark.Row{Measures: fmt.Sprintf("one writer of %d environments", b.envs), Value: benchmark.Median(rates), Unit: "transitions/s", Allocs: &allocs, Pass: allocs == 0}
	if target > 0 {
		row.Against, row.Reference, row.Target, row.Ratio = "target", target, &benchmark.Target{AtLeast: 1}, row.Value/target
		row.Pass = row.Pass && row.Ratio >= 1
	}
	return row, nil
}

// samples measures sampling and the bare loop in turns. micro is the target in microseconds, 0 for
// none.
func (b replayBench) samples(ctx context.Context, sample func() error, g *gatherer, micro float64) (row benchmark.Row, err error) {
	n, err := b.calls(sample)
	if err != nil {
		return row, err
	}
	var own, bare, ratios []float64
	before := mallocs()
	for range b.rounds {
		x, err := timed(n, sample)
		if err != nil {
			return row, err
		}
		y, err := timed(n, g.gather)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return row, err
		}
		own, bare, ratios = append(own, x/1e3), append(bare, y/1e3), append(ratios, x/y)
	}
	allocs := math.Floor(float64(mallocs()-before) / float64(2*n*b.rounds))
	row = benchmark.Row{
		Measures: fmt.Sprintf("%d transitions of %d floats", b.batch, b.features), Value: benchmark.Median(own), Unit: "µs", Against: "bare loop", Reference: benchmark.Median(bare), Ratio: benchmark.Median(ratios), Allocs: &allocs, Pass: allocs == 0,
	}
	if micro > 0 {
		row.Target = &benchmark.Target{AtMost: 1.2}
		row.Note = fmt.Sprintf("or at most %g µs", micro)
		row.Pass = row.Pass && (row.Ratio <= 1.2 || row.Value <= micro)
	}
	return row, nil
}

// many lets four writers and two samplers go on at once.
func (b replayBench) many(ctx context.Context, l replay.Layout, n int) (row benchmark.Row, err error) {
	s, err := replay.NewShared(l, replay.SharedConfig{Capacity: n, ChunkRows: min(1024, chunkOf(n, 4*b.envs))})
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	const writers, samplers = 4, 2
	var list []*pusher
	for k := range writers {
		w, err := s.Writer(fmt.Sprint(k), int32(k), b.envs, nil)
		if err != nil {
			return row, err
		}
		p, err := b.pusher(w)
		if err != nil {
			return row, err
		}
		defer func() { err = errors.Join(err, p.frame.Close()) }()
		if err := p.push(100); err != nil {
			return row, err
		}
		list = append(list, p)
	}
	var rates, drawn []float64
	for range b.rounds {
		var wait sync.WaitGroup
		errs := make([]error, writers+samplers)
		counts := make([]float64, writers+samplers)
		start := time.Now()
		until := start.Add(b.round)
		for k := range writers + samplers {
			wait.Go(func() {
				step := func() error { return list[min(k, writers-1)].push(32) }
				if k >= writers {
					p, err := s.NewSampler(replay.SamplerConfig{Gamma: 0.99})
					if err != nil {
						errs[k] = err
						return
					}
					batch, draws := b.batchOf(), rng.New(uint64(k)).Stream()
					step = func() error { return p.Sample(draws, batch) }
				}
				for errs[k] == nil && (counts[k] == 0 || time.Now().Before(until)) {
					errs[k] = step()
					counts[k]++
				}
			})
		}
		wait.Wait()
		took := time.Since(start).Seconds()
		if err := errors.Join(append(errs, ctx.Err())...); err != nil {
			return row, err
		}
		sum := 0.0
		for _, c := range counts[:writers] {
			sum += 32 * float64(b.envs) * c
		}
		rates, drawn = append(rates, sum/took), append(drawn, (counts[writers]+counts[writers+1])/took)
	}
	return benchmark.Row{
		Name: "push/shared-concurrent", Measures: fmt.Sprintf("%d writers beside %d samplers", writers, samplers), Value: benchmark.Median(rates), Unit: "transitions/s", Pass: true,
		Note: fmt.Sprintf("beside %.0f samples/s", benchmark.Median(drawn)),
	}, nil
}
