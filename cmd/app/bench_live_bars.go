package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/livetrade/files"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/stream"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// madeUpBars makes bars of a random walk, an hour after another: in days, ten million would lead
// beyond the years that messages have.
type madeUpBars struct {
	symbols, extra []string
	needs          []bars.QuoteColumn
	next           time.Time
	encoding       stream.Encoding
	r              *rng.Stream
	price          []float64
	buf            []byte
}

func newMadeUpBars(p live.Pipeline, next time.Time, e stream.Encoding) *madeUpBars {
	m := &madeUpBars{symbols: p.Assets, extra: p.Extra, needs: p.Needs(), next: next, encoding: e, r: rng.New(1).Stream(), price: make([]float64, len(p.Assets))}
	for i := range m.price {
		m.price[i] = 50
	}
	return m
}

// assets is how many bars a time has.
func (m *madeUpBars) assets() int { return len(m.symbols) }

// appendTime appends the messages of the next time, one asset after another.
func (m *madeUpBars) appendTime(to [][]byte) [][]byte {
	m.buf = make([]byte, 0, len(m.symbols)*160)
	for i, symbol := range m.symbols {
		open := m.price[i]
		// Prices come back, however many there are.
		m.price[i] *= math.Exp(0.01*m.r.Normal() - 0.001*math.Log(open/50))
		price := m.price[i]
		// Prices are of hundredths, as those of an exchange.
		cents := func(v float64) float64 { return math.Round(100*v) / 100 }
		rec := bars.Record{Factor: 1}
		rec.Bar = bars.Bar{Time: m.next, Open: cents(open), High: cents(1.001 * max(open, price)), Low: cents(0.999 * min(open, price)), Close: cents(price), Volume: math.Round(1e6 * m.r.Float64())}
		for range m.extra {
			rec.Extra = append(rec.Extra, m.r.Float64())
		}
		for _, c := range m.needs {
			switch c {
			case bars.LimitUp:
				rec.Quote[c] = cents(1.1 * open)
			case bars.LimitDown:
				rec.Quote[c] = cents(0.9 * open)
			case bars.PrevClose:
				rec.Quote[c] = cents(open)
			case bars.Spread:
				rec.Quote[c] = 0.01
			case bars.Depth:
				rec.Quote[c] = 1e5
			}
		}
		start := len(m.buf)
		m.buf = m.encoding.Append(m.buf, symbol, &rec, m.extra, m.needs)
		to = append(to, m.buf[start:len(m.buf):len(m.buf)])
	}
	m.next = m.next.Add(time.Hour)
	return to
}

// speed measures how fast messages are read, and how fast they become features.
func (b *liveBench) speed(ctx context.Context, s *liveSubject, r *benchmark.Report) (err error) {
	m, t, err := s.machine(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close(), t.Close()) }()
	p := t.Feed.Pipeline()
	times := b.bars/len(p.Assets) + 1
	row := func(name, measures string, took time.Duration, target bool) {
		x := benchmark.Row{Name: name, Measures: measures, Value: float64(times*len(p.Assets)) / took.Seconds() / 1e6, Unit: "M bars/s", Note: fmt.Sprintf("%d assets, %d features", len(p.Assets), len(p.Features))}
		if target {
			x.Against, x.Reference, x.Ratio, x.Target = "limit", 1, x.Value, benchmark.AtLeast(1)
		}
		r.Rows = append(r.Rows, x)
	}
	for _, e := range []stream.Encoding{stream.JSON, stream.Protobuf} {
		var values [][]byte
		for made := newMadeUpBars(p, s.next, e); len(values) < times*len(p.Assets); {
			values = made.appendTime(values)
		}
		var msg stream.Message
		start := time.Now()
		for _, v := range values {
			if err := msg.Decode(v); err != nil {
				return err
			}
		}
		row("decode/"+string(e), "messages read from memory", time.Since(start), false)
		g, err := newGathered(p)
		if err != nil {
			return err
		}
		start = time.Now()
		for _, v := range values {
			if err := g.take(v); err != nil {
				return err
			}
		}
		row("features/"+string(e), "messages in memory to features", time.Since(start), true)
		if e != stream.JSON {
			continue
		}
		path := filepath.Join(s.dir, "bars.jsonl")
		if err := writeLines(ctx, path, values); err != nil {
			return err
		}
		if g, err = newGathered(p); err != nil {
			return err
		}
		start = time.Now()
		if err := g.file(ctx, path); err != nil {
			return err
		}
		row("features/file", "lines of a file to features", time.Since(start), true)
		if g.feed.Rows() == 0 {
			return fmt.Errorf("--bars %d: too few for a window of features", b.bars)
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// writeLines writes messages as a source of files reads them.
func writeLines(ctx context.Context, path string, values [][]byte) (err error) {
	w, err := files.NewWriter(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, v := range values {
		if err := w.Write(ctx, "", v); err != nil {
			return err
		}
	}
	return w.Flush(ctx)
}

// gathered makes features of messages.
type gathered struct {
	msg    stream.Message
	gather *stream.Gatherer
	feed   *live.Feed
	came   time.Time
}

func newGathered(p live.Pipeline) (*gathered, error) {
	f, err := live.New(p)
	if err != nil {
		return nil, err
	}
	g, err := stream.NewGatherer(stream.DefaultRules(), p, func(string) {})
	return &gathered{gather: g, feed: f, came: time.Now()}, err
}

// take takes a message.
func (g *gathered) take(value []byte) error {
	if err := g.msg.Decode(value); err != nil {
		return err
	}
	if err := g.gather.Take(0, &g.msg, g.came); err != nil {
		return err
	}
	for {
		at, rows, ok, err := g.gather.Next()
		if err != nil || !ok {
			return err
		}
		if err := g.feed.Append(at, rows); err != nil {
			return err
		}
	}
}

// file takes the lines of a file.
func (g *gathered) file(ctx context.Context, path string) (err error) {
	source := files.NewSource(files.SourceConfig{Path: path})
	defer func() { err = errors.Join(err, source.Close()) }()
	if _, err := source.Start(ctx, nil); err != nil {
		return err
	}
	for {
		list, err := source.Poll(ctx)
		for i := range list {
			if err := g.take(list[i].Value); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// decisions measures journal and machine without waiting, and counts what they allocate.
func (b *liveBench) decisions(ctx context.Context, s *liveSubject, r *benchmark.Report) (err error) {
	m, t, err := s.machine(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close(), t.Close()) }()
	if err := m.WarmUp(s.warm); err != nil {
		return err
	}
	dir := s.state("decisions")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	j, err := livetrade.OpenJournal(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	p := t.Feed.Pipeline()
	made := newMadeUpBars(p, s.next, stream.Encoding(b.encoding))
	const warm = 200
	times := min(b.times, 2000) + warm
	var values [][]byte
	for range times {
		values = made.appendTime(values)
	}
	n := len(p.Assets)
	events := make([]livetrade.Event, n)
	published := 0
	publish := func(*livetrade.Batch) error { published++; return nil }
	came := time.Now()
	var before, after runtime.MemStats
	var start time.Time
	for k := range times {
		if k == warm {
			published = 0
			runtime.ReadMemStats(&before)
			start = time.Now()
		}
		for i := range events {
			events[i] = livetrade.Event{Kind: livetrade.Bar, Came: came, Offset: int64(k*n + i), Value: values[k*n+i]}
		}
		if err := j.Append(events...); err != nil {
			return err
		}
		for i := range events {
			if err := m.Apply(&events[i], publish); err != nil {
				return err
			}
		}
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if published == 0 {
		return errors.New("the bars led to no decision")
	}
	// The program around may have allocated a little meanwhile.
	allocs := math.Floor(float64(after.Mallocs-before.Mallocs) / float64(published))
	r.Rows = append(r.Rows, benchmark.Row{Name: "decision", Measures: "journal, features, policy and records, without waiting", Value: took.Seconds() * 1e6 / float64(published), Unit: "µs", Allocs: &allocs, Note: fmt.Sprintf("%d assets, %.2f allocations", n, float64(after.Mallocs-before.Mallocs)/float64(published))})
	return ctx.Err()
}
