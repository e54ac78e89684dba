package live_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// trade is a tick with its book.
type trade struct {
	symbol   string
	at       time.Time
	price    float64
	size     int
	bid, ask float64
	depth    int
}

// tickDay is the first day of randomTrades.
var tickDay = time.Date(2024, 3, 4, 0, 0, 0, 0, time.UTC)

// tickDays are days with two sessions, 09:30 to 11:30 and 13:00 to 15:00.
const tickDays = 12

// randomTrades are those of four symbols, D's rare, no two of a symbol at one time, in the order of
// time: prices are of sixty-fourths, so that sums of money are exact in any order. Some belong to
// no session, and some are reported after its end.
func randomTrades(seed uint64) (list []trade) {
	r := rng.New(seed).Stream()
	for i, symbol := range []string{"A", "B", "C", "D"} {
		price := 64 * 20 * (i + 1)
		for day := range tickDays {
			for second := 9*3600 + 29*60; second < 15*3600+120; second++ {
				chance := 1.0 / 30
				if symbol == "D" {
					chance = 1.0 / 900
				}
				if lunch := second > 11*3600+30*60+90 && second < 12*3600+59*60; lunch || r.Float64() > chance {
					continue
				}
				price = max(64, price+r.IntN(33)-16)
				x := trade{symbol: symbol, at: tickDay.AddDate(0, 0, day).Add(time.Duration(second)*time.Second + time.Duration(r.IntN(1000))*time.Millisecond), price: float64(price) / 64, size: 1 + r.IntN(500)}
				x.bid, x.ask, x.depth = x.price-0.25, x.price+0.5*float64(1+r.IntN(2)), 100*(1+r.IntN(9))
				if r.Float64() < 0.1 {
					x.ask = 0 // One side is empty.
				}
				list = append(list, x)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b trade) int { return a.at.Compare(b.at) })
	return list
}

// plainBar is a bar of trades as this test makes it.
type plainBar struct {
	open, high, low, close, volume, amount, mid, spread, depth float64
}

// plainBars makes bars of trades that are in the order of time, with no help from package bars, by
// the time that names them and by symbol. minutes are their length; 0 is a day.
func plainBars(list []trade, minutes int) (byTime map[time.Time]map[string]*plainBar, outside int64) {
	byTime = map[time.Time]map[string]*plainBar{}
	book := map[string][2]float64{}
	for _, x := range list {
		midnight := time.Date(x.at.Year(), x.at.Month(), x.at.Day(), 0, 0, 0, 0, time.UTC)
		ms := int(x.at.Sub(midnight) / time.Millisecond)
		open, end := (9*60+30)*60_000, (11*60+30)*60_000
		if ms >= 13*3600_000 {
			open, end = 13*3600_000, 15*3600_000
		}
		if ms < open || ms >= end+60_000 {
			outside++
			continue
		}
		name := midnight
		if minutes > 0 {
			n := (min(ms, end-1) - open) / (minutes * 60_000)
			name = midnight.Add(time.Duration(min(open+(n+1)*minutes*60_000, end)) * time.Millisecond)
		}
		if byTime[name] == nil {
			byTime[name] = map[string]*plainBar{}
		}
		b := byTime[name][x.symbol]
		if b == nil {
			b = &plainBar{open: x.price, high: x.price, low: x.price}
			byTime[name][x.symbol] = b
		}
		b.high, b.low, b.close = max(b.high, x.price), min(b.low, x.price), x.price
		b.volume += float64(x.size)
		b.amount += x.price * float64(x.size)
		if _, ok := book[x.symbol]; !ok {
			book[x.symbol] = [2]float64{math.NaN(), math.NaN()}
		}
		if x.ask > 0 {
			book[x.symbol] = [2]float64{(x.bid + x.ask) / 2, x.ask - x.bid}
		}
		b.mid, b.spread, b.depth = book[x.symbol][0], book[x.symbol][1], float64(x.depth)
	}
	return byTime, outside
}

// ticksFile writes trades as a file of ticks.
func ticksFile(t *testing.T, list []trade) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("time,symbol,price,volume,bid,ask,bid_size1\n")
	for _, x := range list {
		fmt.Fprintf(&b, "%s,%s,%v,%d,%v,%v,%d\n", x.at.Format("2006-01-02 15:04:05.000"), x.symbol, x.price, x.size, x.bid, x.ask, x.depth)
	}
	path := filepath.Join(t.TempDir(), "ticks.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tickSet prepares a set of the bars that package bars makes of a file.
func tickSet(t *testing.T, path, size string) (prepared.Config, *bars.Data, *prepared.Set) {
	t.Helper()
	doc, err := configs.Parse("test.yaml", []byte("source: {path: "+path+", bars: "+size+", sessions: [\"09:30-11:30\", \"13:00-15:00\"]}\nwindow: 3\nfeatures: {extra: [mid, spread], indicators: {sma: [3]}}\nsplit: {train: [2024-03-04, 2024-03-09], valid: [2024-03-10, 2024-03-12], test: [2024-03-13, 2024-03-15]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := prepared.Default()
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	d, err := bars.Read(c.Source, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, d, mustBuild(t, c, d)
}

// tickMessages are the ticks of a file, A's and D's in one partition, and at their end one without
// a price of each symbol, a day later.
func tickMessages(t *testing.T, s bars.Source, e stream.Encoding) (list []sent) {
	t.Helper()
	type kept struct {
		symbol string
		tick   bars.Tick
	}
	var all []kept
	names, err := bars.ReadTicks(s, nil, func(symbol string, x *bars.Tick) {
		one := *x
		one.Extra = slices.Clone(x.Extra)
		all = append(all, kept{symbol, one})
	})
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1].tick.Time
	for _, symbol := range []string{"A", "B", "C", "D"} {
		all = append(all, kept{symbol, bars.Tick{Time: last.AddDate(0, 0, 1), Price: math.NaN()}})
	}
	for _, x := range all {
		list = append(list, sent{int32(x.symbol[0]-'A') % 3, x.tick.Time, e.AppendTick(nil, x.symbol, &x.tick, names)})
	}
	return list
}

// Bars that are gathered from ticks, in whatever order they come within what the rules wait for,
// are those of the file to the bit, which are those that the test makes; and so are the features.
func TestTickedRowsEqualTheSet(t *testing.T) {
	longtest.Slow(t)
	cases, rows, values, missing := 0, 0, 0, 0
	var total stream.Counters
	for i, size := range []string{"5m", "7m", "60m", "1d"} {
		seed := uint64(i + 1)
		trades := randomTrades(seed)
		minutes := map[string]int{"5m": 5, "7m": 7, "60m": 60}[size]
		want, outside := plainBars(trades, minutes)
		c, d, set := tickSet(t, ticksFile(t, trades), size)
		p := live.NewPipeline(&set.Manifest)
		for i, o := range []disorder{
			{name: "in order"},
			{name: "late by up to 3 seconds", within: 3},
			{name: "partitions lag by up to 7 seconds", lag: 7},
			{name: "restarts", restarts: 0.02},
			{name: "everything at once", within: 4, lag: 9, restarts: 0.01},
		} {
			r := rng.New(10*seed + uint64(i)).Stream()
			rules := stream.DefaultRules()
			rules.OutOfOrder = time.Duration(o.within+o.lag) * time.Second
			g, err := stream.NewGatherer(rules, p, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			m, f := newMatcher(t, c, d, set), mustFeed(t, set)
			given := 0
			var msg stream.Message
			for _, x := range o.apply(tickMessages(t, c.Source, [...]stream.Encoding{stream.JSON, stream.Protobuf}[i%2]), time.Second, r) {
				if err := msg.Decode(x.value); err != nil {
					t.Fatal(err)
				}
				if err := g.Take(x.partition, &msg, x.at); err != nil {
					t.Fatal(err)
				}
				if r.Float64() < o.restarts {
					block := g.SaveState()
					if g, err = stream.NewGatherer(rules, p, func(string) {}); err == nil {
						err = g.LoadState(block)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				for {
					at, list, ok, err := g.Next()
					if err != nil {
						t.Fatal(err)
					}
					if !ok {
						break
					}
					given++
					for k, symbol := range p.Assets {
						row, b := &list[k], want[at][symbol]
						if b == nil {
							missing++
							if row.Status == bars.Traded {
								t.Fatalf("%s, %s at %v: a bar without ticks", o.name, symbol, at)
							}
							continue
						}
						rows++
						got := plainBar{row.Open, row.High, row.Low, row.Close, row.Volume, row.Quote[bars.Amount], row.Extra[0], row.Extra[1], row.Extra[2]}
						if w := *b; got != w && (got.mid == got.mid || w.mid == w.mid) {
							t.Fatalf("%s, %s at %v: %+v, expected %+v", o.name, symbol, at, got, w)
						}
					}
					if err := f.Append(at, list); err != nil {
						t.Fatal(err)
					}
					m.match(t, f)
				}
			}
			n := g.Counters()
			if given != len(want) || f.Rows() != set.Manifest.T || n.Outside != outside || n.Late+n.Malformed+n.Unknown+n.Impossible > 0 || int(n.Messages) != len(trades)+4 {
				t.Errorf("%s, %s: %d times of %d, %d rows of %d; %d outside; %+v", size, o.name, given, len(want), f.Rows(), set.Manifest.T, outside, n)
			}
			total.Outside, total.OutOfOrder = total.Outside+n.Outside, total.OutOfOrder+n.OutOfOrder
			cases, values = cases+1, values+m.values
		}
	}
	if cases != 20 || rows < 15_000 || missing < 500 || values < 1_000_000 || total.Outside < 1000 || total.OutOfOrder < 1000 {
		t.Errorf("%d cases, %d rows, %d missing, %d values; %+v", cases, rows, missing, values, total)
	}
}

// TestTickRules has what does not come as it should.
func TestTickRules(t *testing.T) {
	trades := randomTrades(1)
	_, _, set := tickSet(t, ticksFile(t, trades), "5m")
	rules := stream.DefaultRules()
	rules.Grace = 2 * time.Second
	var said []string
	g, err := stream.NewGatherer(rules, live.NewPipeline(&set.Manifest), func(text string) { said = append(said, text) })
	if err != nil {
		t.Fatal(err)
	}
	clock := func(text string) time.Time {
		at, err := time.Parse("15:04:05", text)
		if err != nil {
			t.Fatal(err)
		}
		return tickDay.Add(at.Sub(at.Truncate(24 * time.Hour)))
	}
	var msg stream.Message
	take := func(partition int32, symbol, at, rest string) {
		t.Helper()
		text := fmt.Sprintf(`{"v":1,"symbol":%q,"time":%q,%s}`, symbol, clock(at).Format(time.RFC3339), rest)
		if err := msg.Decode([]byte(text)); err != nil {
			t.Fatal(err)
		}
		// The clock is a second ahead.
		if err := g.Take(partition, &msg, clock(at).Add(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	next := func(want string) []live.Row {
		t.Helper()
		at, rows, ok, err := g.Next()
		if err != nil || ok != (want != "") || ok && !at.Equal(clock(want)) {
			t.Fatalf("the bars of %v, %v, %v, expected %s", at, ok, err, want)
		}
		return rows
	}
	take(0, "A", "09:31:00", `"price":10,"size":100`)
	take(0, "A", "09:32:00", `"price":101,"size":100`) // A decimal point.
	take(0, "A", "09:32:30", `"price":11,"size":50`)
	take(1, "B", "09:31:00", `"price":20`)
	take(0, "A", "09:32:40", `"open":11,"high":11,"low":11,"close":11`) // No tick.
	take(0, "A", "12:00:00", `"price":11,"size":50`)                    // Between the sessions.
	take(2, "C", "09:29:00", `"size":0`)
	next("") // B may go on.
	if due, ok := g.Due(); !ok || !due.Equal(clock("09:35:03")) {
		t.Fatalf("due at %v, %v: expected two seconds after the end by the clock that is one ahead", due, ok)
	}
	if g.Expire(clock("09:35:02")) || !g.Expire(clock("09:35:03")) {
		t.Fatal("it expires at another time")
	}
	rows := next("09:35:00")
	if r := rows[0]; r.Open != 10 || r.High != 11 || r.Close != 11 || r.Volume != 150 || r.Quote[bars.Amount] != 1550 {
		t.Errorf("A: %+v", r)
	}
	if r := rows[1]; r.Close != 20 || r.Volume != 0 || rows[2].Status == bars.Traded {
		t.Errorf("B: %+v; C: %+v", r, rows[2])
	}
	take(1, "B", "09:34:59", `"price":21,"size":5`) // Late.
	take(1, "B", "09:36:00", `"price":21,"size":5`)
	take(1, "B", "09:40:00", `"size":0`)
	take(2, "C", "09:39:59", `"size":0`)
	next("") // C's partition may have one of 09:39:59.5.
	take(2, "C", "09:40:00", `"size":0`)
	// D may be in any partition, and all are past.
	if r := next("09:40:00")[1]; r.Open != 21 || r.Volume != 5 {
		t.Errorf("B: %+v", r)
	}
	if n := g.Counters(); n.Impossible != 1 || n.Late != 1 || n.Malformed != 1 || n.Outside != 1 || n.Expired != 1 || n.Times != 2 {
		t.Errorf("%+v", n)
	}
	for _, want := range []string{"its bar was decided on", "messages before it are ticks", "a tenth of the one before", "belongs to no session"} {
		if !slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("%q is not said: %q", want, said)
		}
	}

	// Bars of other sizes come with ticks of a file alone.
	_, _, set = tickSet(t, ticksFile(t, trades), "60m")
	p := live.NewPipeline(&set.Manifest)
	if p, err = p.Edit("source.bars=volume=1000"); err == nil {
		g, err = stream.NewGatherer(rules, p, func(text string) { said = append(said, text) })
	}
	if err != nil {
		t.Fatal(err)
	}
	take(0, "A", "09:31:00", `"price":10,"size":100`)
	if n := g.Counters(); n.Malformed != 1 || !strings.Contains(said[len(said)-1], "are of a time") {
		t.Errorf("%+v: %q", n, said)
	}
	for _, text := range []string{`"price":10,"open":3`, `"price":0`, `"price":-1`, `"price":1,"size":-1`, `"size":3`, `"price":1,"amount":-1`} {
		if err := msg.Decode([]byte(`{"v":1,"symbol":"A","time":"2024-03-04",` + text + `}`)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}
