package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/livetrade/files"
	"github.com/onnxrl/onnxrl/agents/livetrade/kafka"
	"github.com/onnxrl/onnxrl/agents/livetrade/websocket"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/stream"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// feedFlags are those of onnxrl data feed.
type feedFlags struct {
	store      storeFlag
	bars, to   string
	from       string
	encoding   string
	rate       float64
	partitions int
	ticks      bool
	sets       []string
}

func (a *app) dataFeedCommand() *cobra.Command {
	var f feedFlags
	cmd := &cobra.Command{
		Use:   "feed RUN|REF --bars FILE --to DESTINATION",
		Short: "Write bars as the messages that onnxrl live takes",
		Long: `Writes the bars of a file, of the assets that a published market agent trades, as the messages that onnxrl live takes. They come in the order of time, a message each, and are not cleaned, which the receiver does. The destination is a file, which is appended to, or a topic as kafka://HOST:PORT/TOPIC, which is made where it is missing; messages
have their symbol as key. With ws://localhost:PORT/PATH it is a server on this machine, which waits until somebody connects and sends them by a websocket. How the file is read is said by the agent's manifest, edited with --set.

A message is JSON or Protobuf (envs/market/stream/bar.proto) with the version of its schema; files have JSON. With --rate the messages are written at a steady rate,
whether or not anyone takes them, as an exchange would.

Of an agent whose data are bars of ticks (data.source.bars) the file has ticks. The messages are the bars that are made of them, or with --ticks the ticks themselves, of which
onnxrl live then makes the bars. At their end each symbol has a message without a price, which says that there are no more ticks of the last bar.

` + referenceHelp,
		Example: `  onnxrl data feed runs/demo --bars shipped:market/us5_daily.parquet --to bars.jsonl
  onnxrl data feed runs/demo --bars today.csv --to kafka://localhost:9092/market.bars --rate 100
  onnxrl data feed runs/demo --bars today.csv --to ws://localhost:9466/bars --rate 100`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return saying("data feed", a.dataFeed(cmd.Context(), args[0], &f))
		},
	}
	f.store.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.bars, "bars", "", "file, folder or pattern of bars")
	fl.StringVar(&f.to, "to", "", "file to append to, kafka://HOST:PORT/TOPIC, or ws://localhost:PORT/PATH to listen at")
	fl.StringVar(&f.from, "from", "", "date of the first bars, such as 2024-01-31 (default: all)")
	fl.StringVar(&f.encoding, "encoding", string(stream.JSON), "json or protobuf")
	fl.Float64Var(&f.rate, "rate", 0, "messages a second; 0 is as fast as they are taken")
	fl.BoolVar(&f.ticks, "ticks", false, "write ticks and not the bars that are made of them")
	fl.IntVar(&f.partitions, "partitions", 1, "partitions of a topic that is made")
	fl.StringArrayVar(&f.sets, "set", nil, "edit the agent's configuration of data, for instance --set env.data.source.columns.close=last")
	_ = cmd.MarkFlagRequired("bars") // The flags are there.
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

// messageWriter takes messages.
type messageWriter interface {
	Write(ctx context.Context, symbol string, value []byte) error
	Flush(ctx context.Context) error
	io.Closer
}

// openFeed opens a destination.
func (a *app) openFeed(ctx context.Context, f *feedFlags) (messageWriter, error) {
	if strings.HasPrefix(f.to, "ws://") || strings.HasPrefix(f.to, "wss://") {
		w, err := websocket.NewWriter(ctx, f.to, f.encoding == string(stream.Protobuf))
		if err != nil {
			return nil, fmt.Errorf("--to: %w", err)
		}
		f.to = w.URL()
		a.say("bars on %s, for whoever connects", f.to)
		return w, nil
	}
	rest, ok := strings.CutPrefix(f.to, "kafka://")
	if !ok {
		if f.encoding != string(stream.JSON) {
			return nil, fmt.Errorf("--encoding %s: files have messages as lines of json", f.encoding)
		}
		return files.NewWriter(f.to)
	}
	brokers, topic, ok := strings.Cut(rest, "/")
	if u, err := url.Parse("kafka://" + brokers); !ok || topic == "" || brokers == "" || err != nil || u.User != nil {
		return nil, fmt.Errorf("--to %s: expected kafka://HOST:PORT/TOPIC, of several brokers HOST:PORT,HOST:PORT", f.to)
	}
	return kafka.NewWriter(ctx, kafka.Config{Brokers: strings.Split(brokers, ",")}, topic, f.partitions)
}

// fed is what data feed prints with --json; the keys are stable.
type fed struct {
	To       string `json:"to"`
	Messages int    `json:"messages"`
	First    string `json:"first"`
	Last     string `json:"last"`
}

// feedRow is a row, or a tick, and its place among the assets.
type feedRow struct {
	asset int
	at    time.Time
	rec   *bars.Record
	tick  *bars.Tick
}

func (a *app) dataFeed(ctx context.Context, target string, f *feedFlags) (err error) {
	switch {
	case f.encoding != string(stream.JSON) && f.encoding != string(stream.Protobuf):
		return fmt.Errorf("--encoding %s: expected json or protobuf", f.encoding)
	case !(f.rate >= 0) || f.rate > 1e9:
		return fmt.Errorf("--rate %g: expected messages a second", f.rate)
	case f.partitions < 1 || f.partitions > 10_000:
		return fmt.Errorf("--partitions %d: expected at least 1", f.partitions)
	}
	v, done, err := marketAgent(target, f.store.path())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	p, err := live.ParsePipeline(v.Manifest.Features)
	if err == nil {
		p, err = p.Edit(f.sets...)
	}
	if err != nil {
		return err
	}
	c, err := liveConfig(p, f.bars)
	if err != nil {
		return err
	}
	d := &bars.Data{}
	var rows []feedRow
	if f.ticks {
		rows, d.Extra, err = feedTicks(c.Source, p.Assets)
	} else if d, err = bars.Read(c.Source, p.Assets); err == nil {
		rows = feedRecords(d)
	}
	if err == nil {
		rows, err = feedFrom(rows, c.Source.Timezone, f.from)
	}
	if err != nil {
		return err
	}
	to, err := a.openFeed(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	bar := progress.Start(a.err, progress.Options{Label: "feed", Unit: "messages", Total: int64(len(rows)), Quiet: a.quiet})
	defer bar.Finish()
	var text []byte
	encoding, start := stream.Encoding(f.encoding), time.Now()
	for i, r := range rows {
		if f.rate > 0 {
			// By the clock from the beginning: what was late is not shifted.
			due := start.Add(time.Duration(float64(i) / f.rate * float64(time.Second)))
			select {
			case <-ctx.Done():
			case <-time.After(time.Until(due)):
			}
		}
		symbol := p.Assets[r.asset]
		if r.tick != nil {
			text = encoding.AppendTick(text[:0], symbol, r.tick, d.Extra)
		} else {
			text = encoding.Append(text[:0], symbol, r.rec, d.Extra, d.Series[r.asset].Quoted)
		}
		if err := to.Write(ctx, symbol, text); err != nil {
			return errors.Join(err, to.Flush(context.WithoutCancel(ctx)))
		}
		bar.Set(int64(i + 1))
	}
	if err := to.Flush(ctx); err != nil {
		return err
	}
	bar.Finish()
	x := fed{To: f.to, Messages: len(rows), First: rows[0].at.Format(time.DateTime), Last: rows[len(rows)-1].at.Format(time.DateTime)}
	if a.json {
		return a.printJSON(x)
	}
	_, err = fmt.Fprintf(a.out, "%d messages of %s to %s are in %s\n", x.Messages, x.First, x.Last, x.To)
	return err
}

// feedRecords are the rows of a file.
func feedRecords(d *bars.Data) (rows []feedRow) {
	for i, s := range d.Series {
		for k := range s.Records {
			r := &s.Records[k]
			rows = append(rows, feedRow{asset: i, at: r.Time, rec: r})
		}
	}
	return rows
}

// feedTicks are the ticks of a file, and behind them one of each asset without a price.
func feedTicks(s bars.Source, assets []string) (rows []feedRow, names []string, err error) {
	grid, err := bars.NewGrid(s)
	if err != nil {
		return nil, nil, fmt.Errorf("--ticks: %w", err)
	}
	index := map[string]int{}
	for i, symbol := range assets {
		index[symbol] = i
	}
	var until time.Time
	names, err = bars.ReadTicks(s, assets, func(symbol string, t *bars.Tick) {
		one := *t
		one.Extra = slices.Clone(t.Extra)
		rows = append(rows, feedRow{asset: index[symbol], at: t.Time, tick: &one})
		if slot, ok := grid.At(t.Time); ok && slot.Until.After(until) {
			until = slot.Until
		}
	})
	if err != nil {
		return nil, nil, err
	}
	for i := range assets {
		rows = append(rows, feedRow{asset: i, at: until, tick: &bars.Tick{Time: until, Price: math.NaN()}})
	}
	return rows, names, nil
}

// feedFrom are the rows from a date on in the order of time, those of a time in that of the assets.
func feedFrom(rows []feedRow, zone, from string) (_ []feedRow, err error) {
	loc := time.UTC
	if zone != "" {
		if loc, err = time.LoadLocation(zone); err != nil {
			return nil, err
		}
	}
	var first time.Time
	if from != "" {
		if first, err = time.ParseInLocation(time.DateOnly, from, loc); err != nil {
			return nil, fmt.Errorf("--from %s: expected a date such as 2024-01-31", from)
		}
	}
	rows = slices.DeleteFunc(rows, func(r feedRow) bool { return r.at.Before(first) })
	if len(rows) == 0 {
		return nil, fmt.Errorf("--from %s: there are no later bars", from)
	}
	slices.SortStableFunc(rows, func(a, b feedRow) int { return cmp.Or(a.at.Compare(b.at), a.asset-b.asset) })
	return rows, nil
}
