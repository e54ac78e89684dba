package live_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/stream"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// sent is a message on its way.
type sent struct {
	partition int32
	at        time.Time
	value     []byte
}

// messages are the rows of all series in the order of time.
func messages(d *bars.Data, e stream.Encoding) (list []sent) {
	for i, s := range d.Series {
		for k := range s.Records {
			rec := &s.Records[k]
			list = append(list, sent{int32(i % 3), rec.Time, e.Append(nil, s.Symbol, rec, d.Extra, s.Quoted)})
		}
	}
	slices.SortStableFunc(list, func(a, b sent) int { return a.at.Compare(b.at) })
	return list
}

// disorder is what messages may suffer on their way without a difference at its end.
type disorder struct {
	name string
	// within is by how many times a message may come too late, lag by how many a partition.
	within, lag int
	duplicates  float64
	restarts    float64
}

var disorders = []disorder{
	{name: "in order"},
	{name: "late by up to 3 times", within: 3},
	{name: "partitions lag by up to 7 times", lag: 7},
	{name: "duplicates", duplicates: 0.3},
	{name: "restarts", restarts: 0.05},
	{name: "everything at once", within: 4, lag: 9, duplicates: 0.2, restarts: 0.03},
}

// apply sends messages so.
func (o disorder) apply(list []sent, step time.Duration, r *rng.Stream) []sent {
	type late struct {
		sent
		when time.Time
	}
	lags, last := [3]time.Duration{}, [3]time.Time{}
	var out []late
	for _, m := range list {
		if o.lag > 0 && r.Float64() < 0.01 {
			lags[r.IntN(3)] = time.Duration(r.IntN(o.lag+1)) * step
		}
		when := m.at.Add(lags[m.partition])
		if when.Before(last[m.partition]) {
			when = last[m.partition] // A partition keeps its order.
		}
		last[m.partition] = when
		if o.within > 0 {
			when = when.Add(time.Duration(r.IntN(o.within*1000)) * step / 1000)
		}
		out = append(out, late{m, when})
		if r.Float64() < o.duplicates {
			out = append(out, late{m, when})
		}
	}
	slices.SortStableFunc(out, func(a, b late) int { return a.when.Compare(b.when) })
	list = list[:0:0]
	for _, m := range out {
		list = append(list, m.sent)
	}
	return list
}

// The rows that are gathered from messages, in whatever order they come within what the rules wait
// for, lead to the features of the prepared set, bit for bit.
func TestGatheredRowsEqualTheSet(t *testing.T) {
	longtest.Slow(t)
	cases, values := 0, 0
	var total stream.Counters
	forVariants(t, func(t *testing.T, seed uint64, v variant) {
		c, d := market(t, seed, v)
		set := mustBuild(t, c, d)
		p := live.NewPipeline(&set.Manifest)
		for i, o := range disorders {
			encoding := [...]stream.Encoding{stream.JSON, stream.Protobuf}[i%2]
			r := rng.New(100*seed + uint64(i)).Stream()
			rules := stream.DefaultRules()
			if o.within > 0 {
				// Rows that have lagged come all at once.
				rules.OutOfOrder = time.Duration(o.within+o.lag) * v.step
			}
			rules.Grace = time.Hour
			rules.Pending = 1000
			say := func(string) {}
			g, err := stream.NewGatherer(rules, p, say)
			if err != nil {
				t.Fatal(err)
			}
			m, f := newMatcher(t, c, d, set), mustFeed(t, set)
			came := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			take := func() {
				t.Helper()
				for {
					at, rows, ok, err := g.Next()
					if err != nil {
						t.Fatal(err)
					}
					if !ok {
						return
					}
					if err := f.Append(at, rows); err != nil {
						t.Fatal(err)
					}
					m.match(t, f)
				}
			}
			var msg stream.Message
			for _, x := range o.apply(messages(d, encoding), v.step, r) {
				if err := msg.Decode(x.value); err != nil {
					t.Fatal(err)
				}
				if err := g.Take(x.partition, &msg, came); err != nil {
					t.Fatal(err)
				}
				if r.Float64() < o.restarts {
					block := g.SaveState()
					if g, err = stream.NewGatherer(rules, p, say); err == nil {
						err = g.LoadState(block)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				take()
			}
			g.Expire(came.Add(rules.Grace))
			take()
			if f.Rows() != set.Manifest.T {
				t.Errorf("%s: %d rows, expected %d", o.name, f.Rows(), set.Manifest.T)
			}
			n := g.Counters()
			if n.Late > 0 || n.Malformed > 0 || n.Unknown > 0 || n.Revised > 0 {
				t.Errorf("%s: %+v", o.name, n)
			}
			total.Messages += n.Messages
			total.Duplicate += n.Duplicate
			total.OutOfOrder += n.OutOfOrder
			cases, values = cases+1, values+m.values
		}
	})
	if cases != 21*len(disorders) || values < 30_000_000 || total.Duplicate < 5000 || total.OutOfOrder < 2000 {
		t.Errorf("%d cases, %d values compared; %+v", cases, values, total)
	}
}

// TestFarAheadClosesNothing: a row that is more than a day ahead of the clock says nothing about the
// time that is open, unless the rules do not look; it is counted and told.
func TestFarAheadClosesNothing(t *testing.T) {
	c, d := market(t, 1, variants[0])
	set := mustBuild(t, c, d)
	for _, x := range []struct {
		ahead  time.Duration
		far    time.Duration
		counts int64
	}{{24 * time.Hour, 25 * time.Hour, 1}, {24 * time.Hour, 23 * time.Hour, 0}, {0, 200 * 365 * 24 * time.Hour, 0}} {
		rules := stream.DefaultRules()
		if x.ahead != rules.Ahead {
			rules.Ahead = x.ahead
		}
		said := 0
		g, err := stream.NewGatherer(rules, live.NewPipeline(&set.Manifest), func(string) { said++ })
		if err != nil {
			t.Fatal(err)
		}
		now := d.Series[0].Records[10].Time
		var msg stream.Message
		for _, at := range []time.Time{now, now.Add(x.far)} {
			rec := d.Series[0].Records[10]
			rec.Time = at
			if err := msg.Decode(stream.JSON.Append(nil, "A", &rec, nil, nil)); err != nil {
				t.Fatal(err)
			}
			if err := g.Take(0, &msg, now); err != nil {
				t.Fatal(err)
			}
		}
		_, _, closed, err := g.Next()
		if err != nil || closed != (x.counts == 0) || g.Counters().Ahead != x.counts || int64(said) < x.counts {
			t.Errorf("%v: closed %v, %+v, %d said, error %v", x, closed, g.Counters(), said, err)
		}
	}
}

// TestGatheredDividends: factors that dividends and bonus shares make are those of the set, bar by bar.
func TestGatheredDividends(t *testing.T) {
	r := rng.New(4).Stream()
	text, price := "date,symbol,open,high,low,close,volume,cash,new\n", 20.0
	for i := range 120 {
		cash, bonus := 0.0, 0.0
		if r.Float64() < 0.1 {
			cash, bonus = price*0.1*r.Float64(), r.Float64()
		}
		price = (price - cash) / (1 + bonus) * (0.98 + 0.04*r.Float64())
		text += fmt.Sprintf("%s,A,%[2]v,%[2]v,%[2]v,%[2]v,5,%[3]v,%[4]v\n", time.Date(2024, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), price, cash, bonus)
	}
	path := filepath.Join(t.TempDir(), "bars.csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	doc, err := configs.Parse("test.yaml", fmt.Appendf(nil, "window: 3\nsource: {path: %q, columns: {dividend: cash, bonus: new}}\nfeatures: {indicators: {sma: [3]}}\nsplit: {train: [2024-01-01, 2024-02-28], valid: [2024-03-01, 2024-03-31], test: [2024-04-01, 2024-04-29]}\n", path))
	if err != nil {
		t.Fatal(err)
	}
	c := prepared.Default()
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	d, err := prepared.Read(c)
	if err != nil {
		t.Fatal(err)
	}
	set := mustBuild(t, c, d)
	p := live.NewPipeline(&set.Manifest)
	g, err := stream.NewGatherer(stream.DefaultRules(), p, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	plain := c
	plain.Source.Adjust = "none"
	arriving, err := prepared.Read(plain)
	if err != nil {
		t.Fatal(err)
	}
	m, f := newMatcher(t, c, d, set), mustFeed(t, set)
	var msg stream.Message
	for _, x := range messages(arriving, stream.JSON) {
		if err := msg.Decode(x.value); err != nil {
			t.Fatal(err)
		}
		if err := g.Take(0, &msg, x.at); err != nil {
			t.Fatal(err)
		}
		at, rows, ok, err := g.Next()
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if err := f.Append(at, rows); err != nil {
			t.Fatal(err)
		}
		m.match(t, f)
	}
	if p.Adjusted != bars.ByActions || m.values < 100 {
		t.Errorf("adjusted by %s, %d values", p.Adjusted, m.values)
	}
}
