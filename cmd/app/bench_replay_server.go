package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// servedReplay is what a server's tables are measured with.
type servedReplay struct {
	url     string
	tables  []string
	clients []int
	// transitions are what a table has at least, and prefetch is the number of samples that a
	// client asks for ahead.
	transitions, prefetch int
}

func (s *servedReplay) check() error {
	if len(s.tables) == 0 || len(s.clients) == 0 || slices.Min(s.clients) < 1 || s.transitions < 1000 || s.prefetch < 0 {
		return errors.New("--tables and --clients must be given, --clients positive, --transitions at least 1000 and --prefetch not negative")
	}
	return nil
}

// served measures the tables of a server.
func (b replayBench) served(ctx context.Context, s *servedReplay) (*benchmark.Report, error) {
	r := &benchmark.Report{Machine: benchmark.ThisMachine()}
	r.Machine.ORT = "not used"
	for _, table := range s.tables {
		if err := b.servedTable(ctx, r, s, table); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// servedTable measures a table: transitions a second into it and out of it with each number of
// clients, and how long a table on disk lets writers wait while it is saved. Clients take
// turns with as many samplers of a store in this process that has as many transitions.
func (b replayBench) servedTable(ctx context.Context, r *benchmark.Report, s *servedReplay, table string) (err error) {
	layout := replay.LayoutOf(b.spec(), replay.Column{Name: "action", DType: tensor.Float32, Shape: []int{b.actions}})
	var clients []*flight.Client
	defer func() {
		for _, c := range clients {
			err = errors.Join(err, c.Close())
		}
	}()
	open := func(prefetch int) (replay.Buffer, error) {
		var c replay.Served
		c.SetDefaults()
		c.URL, c.Table, c.Prefetch, c.Rounds = s.url, table, prefetch, batchRounds
		client, err := flight.Dial(c)
		if err != nil {
			return nil, err
		}
		clients = append(clients, client)
		return client.Store().Open(layout, replay.Config{Envs: b.envs, NSteps: 1, Gamma: 0.99})
	}
	first, err := open(0)
	if err != nil {
		return err
	}
	row, err := b.fill(first, s.transitions)
	if err = errors.Join(err, first.Close()); err != nil {
		return err
	}
	if row != nil {
		row.Name = "push/" + table
		r.Rows = append(r.Rows, *row)
	}
	for _, n := range s.clients {
		row, err := b.servedPushes(ctx, n, func() (replay.Buffer, error) { return open(0) })
		if err != nil {
			return err
		}
		row.Name = fmt.Sprintf("push/%s-%d", table, n)
		r.Rows = append(r.Rows, row)
	}
	about, err := clients[0].Stats(table)
	if err != nil {
		return err
	}
	if about.Durable {
		writer, err := open(0)
		if err != nil {
			return err
		}
		row, err := b.servedPause(ctx, writer, func() error {
			_, err := clients[0].Act(flight.ActionCheckpoint, map[string]string{"table": table})
			return err
		})
		if err = errors.Join(err, writer.Close()); err != nil {
			return err
		}
		row.Name = "pause/" + table
		r.Rows = append(r.Rows, row)
	}
	var there []func() error
	draws := rng.New(5)
	for i := range slices.Max(s.clients) {
		store, err := open(s.prefetch)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		stream, batch := draws.Split(fmt.Sprint(i)).Stream(), b.batchOf()
		there = append(there, func() error { return store.Sample(stream, batch) })
	}
	shared, err := replay.NewShared(layout, replay.SharedConfig{Capacity: max(s.transitions, about.Size), ChunkRows: min(1024, chunkOf(s.transitions, b.envs))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	draw := replay.SamplerConfig{Gamma: 0.99}
	if about.Selector == flight.Prioritised {
		draw.Ranked = true
		if err := shared.Prioritise(replay.Priorities{Alpha: 0.6, Eps: 1e-6}); err != nil {
			return err
		}
	}
	writer, err := shared.Writer("bench", 0, b.envs, nil)
	if err != nil {
		return err
	}
	p, err := b.pusher(writer)
	if err != nil {
		return err
	}
	if err := errors.Join(p.push(s.transitions/b.envs+1), p.frame.Close()); err != nil {
		return err
	}
	var here []func() error
	for range there {
		x, err := shared.NewSampler(draw)
		if err != nil {
			return err
		}
		stream, batch := draws.Split("here").Stream(), b.batchOf()
		here = append(here, func() error { return x.Sample(stream, batch) })
	}
	for _, n := range s.clients {
		row := benchmark.Row{Name: fmt.Sprintf("sample/%s-%d", table, n), Measures: fmt.Sprintf("%d clients", n), Against: fmt.Sprintf("%d samplers in this process", n), Unit: "transitions/s", Pass: true}
		var values, references, ratios []float64
		for range b.rounds {
			if err := ctx.Err(); err != nil {
				return err
			}
			x, err := b.together(there[:n])
			if err != nil {
				return err
			}
			y, err := b.together(here[:n])
			if err != nil {
				return err
			}
			values, references, ratios = append(values, x), append(references, y), append(ratios, x/y)
		}
		row.Value, row.Reference, row.Ratio = benchmark.Median(values), benchmark.Median(references), benchmark.Median(ratios)
		r.Rows = append(r.Rows, row)
	}
	return nil
}

// flusher is a replay elsewhere, which waits until that has everything, on its disk where it has
// one.
type flusher interface{ Flush() error }

// batchRounds is how many rounds one batch of a writer has.
const batchRounds = 64

// servedPushes lets n clients write, and counts what was acknowledged.
func (b replayBench) servedPushes(ctx context.Context, n int, open func() (replay.Buffer, error)) (row benchmark.Row, err error) {
	list := make([]*pusher, n)
	for i := range list {
		store, err := open()
		if err != nil {
			return row, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		if list[i], err = b.pusher(store); err != nil {
			return row, err
		}
		defer func() { err = errors.Join(err, list[i].frame.Close()) }()
	}
	var rates []float64
	for range b.rounds {
		counts, errs := make([]int, n), make([]error, n)
		var group sync.WaitGroup
		begun := time.Now()
		for i, p := range list {
			group.Go(func() {
				for time.Since(begun) < b.round && errs[i] == nil {
					errs[i] = p.push(batchRounds)
					counts[i] += batchRounds * b.envs
				}
				errs[i] = errors.Join(errs[i], p.rec.(flusher).Flush())
			})
		}
		group.Wait()
		took := time.Since(begun).Seconds()
		if err := errors.Join(append(errs, ctx.Err())...); err != nil {
			return row, err
		}
		sum := 0
		for _, k := range counts {
			sum += k
		}
		rates = append(rates, float64(sum)/took)
	}
	return benchmark.Row{Measures: fmt.Sprintf("%d writers, acknowledged", n), Value: benchmark.Median(rates), Unit: "transitions/s", Pass: true}, nil
}

// servedPause finds the longest time that a batch waits for its acknowledgement while save saves
// the table, and in as long without that.
func (b replayBench) servedPause(ctx context.Context, store replay.Buffer, save func() error) (row benchmark.Row, err error) {
	p, err := b.pusher(store)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, p.frame.Close()) }()
	longest := func(until <-chan struct{}) (most time.Duration, batches int, err error) {
		for {
			begun := time.Now()
			if err := errors.Join(p.push(batchRounds), store.(flusher).Flush(), ctx.Err()); err != nil {
				return 0, 0, err
			}
			most, batches = max(most, time.Since(begun)), batches+1
			select {
			case <-until:
				return most, batches, nil
			default:
			}
		}
	}
	if _, _, err := longest(closedAfter(b.round)); err != nil {
		return row, err
	}
	saved := make(chan struct{})
	var failed error
	begun := time.Now()
	go func() {
		failed = save()
		close(saved)
	}()
	with, batches, err := longest(saved)
	took := time.Since(begun)
	<-saved
	if err = errors.Join(err, failed); err != nil {
		return row, err
	}
	without, usual, err := longest(closedAfter(took))
	return benchmark.Row{
		Measures: fmt.Sprintf("longest wait for the acknowledgement of %d transitions, while the table is saved", batchRounds*b.envs), Value: with.Seconds() * 1e3, Unit: "ms", Against: "as long without that",
		Reference: without.Seconds() * 1e3, Ratio: with.Seconds() / without.Seconds(), Pass: true, Note: fmt.Sprintf("saved in %.2f s, beside %d batches, and %d without", took.Seconds(), batches, usual),
	}, err
}

// closedAfter is a channel that is closed after a time.
func closedAfter(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}

// fill records transitions until a table has as many, and says how fast; nil where it had them.
func (b replayBench) fill(store replay.Buffer, n int) (*benchmark.Row, error) {
	missing := n - store.Len()
	if missing <= 0 {
		return nil, nil
	}
	p, err := b.pusher(store)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	err = errors.Join(p.push((missing+b.envs-1)/b.envs), p.frame.Close())
	// A sample waits until all is acknowledged, as nothing is asked for ahead.
	if err == nil {
		err = store.Sample(rng.New(1).Stream(), b.batchOf())
	}
	return &benchmark.Row{Measures: "one writer", Value: float64(missing) / time.Since(begun).Seconds(), Unit: "transitions/s", Pass: true}, err
}

// together calls all again and again for a round, each in a goroutine of its own, and returns the
// transitions of all a second.
func (b replayBench) together(list []func() error) (float64, error) {
	counts, errs := make([]int, len(list)), make([]error, len(list))
	var group sync.WaitGroup
	begun := time.Now()
	for i, f := range list {
		group.Go(func() {
			for time.Since(begun) < b.round && errs[i] == nil {
				errs[i] = f()
				counts[i]++
			}
		})
	}
	group.Wait()
	n := 0
	for _, k := range counts {
		n += k
	}
	return float64(n*b.batch) / time.Since(begun).Seconds(), errors.Join(errs...)
}
