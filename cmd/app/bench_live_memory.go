package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/envs/market/stream"
)

// countedSource gives bars as fast as they are taken, and looks at the memory at tenths.
type countedSource struct {
	made        *madeUpBars
	given, left int
	every       int
	heap        []uint64
}

// polledTimes are given at once.
const polledTimes = 32

func (s *countedSource) Start(context.Context, map[int32]int64) ([]int32, error) { return nil, nil }

func (s *countedSource) Poll(ctx context.Context) ([]livetrade.Message, error) {
	if s.given >= s.every*(len(s.heap)+1) {
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		s.heap = append(s.heap, now.HeapAlloc)
	}
	if s.left <= 0 {
		return nil, io.EOF
	}
	var values [][]byte
	for range polledTimes {
		values = s.made.appendTime(values)
	}
	list := make([]livetrade.Message, len(values))
	for i, v := range values {
		list[i] = livetrade.Message{Offset: int64(s.given + i), Value: v}
	}
	s.given, s.left = s.given+len(list), s.left-len(list)
	return list, ctx.Err()
}

func (s *countedSource) Pause([]int32) {}
func (s *countedSource) Close() error  { return nil }

// countedSink counts decisions.
type countedSink struct{ batches int }

func (s *countedSink) Start(context.Context) (uint64, error) { return 0, nil }
func (s *countedSink) Publish(*livetrade.Batch) error {
	s.batches++
	return nil
}
func (s *countedSink) Bad(b *livetrade.Bad) error  { return b }
func (s *countedSink) Flush(context.Context) error { return nil }
func (s *countedSink) Close() error                { return nil }

// flat compares what a service keeps in memory after a tenth of the bars with what it keeps after
// all.
func (b *liveBench) flat(ctx context.Context, s *liveSubject, r *benchmark.Report) (err error) {
	if b.memory == 0 {
		return nil
	}
	m, t, err := s.machine(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close(), t.Close()) }()
	c := s.config
	c.State, c.Snapshot, c.Journal.Keep = s.state("memory"), 1000, 1
	source := &countedSource{made: newMadeUpBars(t.Feed.Pipeline(), s.next, stream.Protobuf), left: b.memory, every: b.memory / 10}
	sink := &countedSink{}
	if err := livetrade.Run(ctx, livetrade.Options{Config: &c, Machine: m, Warm: s.warm, Source: source, Sink: sink, Say: func(string) {}}); err != nil {
		return err
	}
	// Bars that are left out would keep nothing.
	if times := source.given / source.made.assets(); len(source.heap) < 10 || sink.batches < times-times/10-100 {
		return fmt.Errorf("%d decisions at %d bars, and %d looks at the memory", sink.batches, source.given, len(source.heap))
	}
	mb := func(i int) float64 { return float64(source.heap[i]) / (1 << 20) }
	x := benchmark.Row{
		Name: "memory", Measures: fmt.Sprintf("heap after %d bars", source.given), Value: mb(9), Unit: "MiB", Against: fmt.Sprintf("after %d", source.every), Reference: mb(0), Ratio: mb(9) / mb(0), Target: benchmark.AtMost(1.1),
		Note: fmt.Sprintf("%d decisions; after half %.2f MiB", sink.batches, mb(4)),
	}
	r.Rows = append(r.Rows, x)
	return ctx.Err()
}
