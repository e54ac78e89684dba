package studies

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/livetrade/files"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// shares are of the main boards, whose limits are 10 %, of ChiNext and of STAR, with 20 %.
var shares = []string{"000001.SZ", "300001.SZ", "600000.SH", "688001.SH"}

// shareMarket writes a made-up market of them, of weekdays from 2021 on: prices of cents, between
// the limits of their day and often at them, and factors that change. perDay is the number of bars
// of a day, five minutes each; 1 are daily bars. With ticks each bar is a few ticks instead, D's
// few, and prices are adjusted by nothing. It returns the file and the days.
func shareMarket(t *testing.T, seed uint64, days, perDay int, ticks bool) (path string, dates []string) {
	t.Helper()
	r := rng.New(seed).Stream()
	var b strings.Builder
	if ticks {
		b.WriteString("time,symbol,price,volume\n")
	} else {
		b.WriteString("date,symbol,open,high,low,close,volume,adj_factor,preclose,isST\n")
	}
	cents := func(v float64) float64 { return math.Round(v*100) / 100 }
	price, factor := []float64{12, 25, 8, 40}, []float64{1, 1, 1, 1}
	day := time.Date(2021, 1, 4, 0, 0, 0, 0, time.UTC)
	for len(dates) < days {
		if w := day.Weekday(); w == time.Saturday || w == time.Sunday {
			day = day.AddDate(0, 0, 1)
			continue
		}
		dates = append(dates, day.Format(time.DateOnly))
		previous, limit := make([]float64, 4), []float64{0.1, 0.2, 0.1, 0.2}
		for i := range shares {
			if previous[i] = price[i]; !ticks && r.Float64() < 0.02 {
				// Bonus shares: one for ten.
				factor[i] *= 1.1
				previous[i] = cents(price[i] / 1.1)
			}
			price[i] = previous[i]
		}
		for k := range perDay {
			at := day
			if perDay > 1 {
				if at = day.Add(9*time.Hour + 30*time.Minute + time.Duration(k+1)*5*time.Minute); k >= 24 {
					at = at.Add(90 * time.Minute)
				}
			}
			for i, symbol := range shares {
				low, high := cents(previous[i]*(1-limit[i])), cents(previous[i]*(1+limit[i]))
				move := func(p float64) float64 {
					switch u := r.Float64(); {
					case u < 0.03:
						return high
					case u < 0.06:
						return low
					}
					return min(max(cents(p*math.Exp(0.02*r.Normal())), low), high)
				}
				open := move(price[i])
				price[i] = move(open)
				if ticks {
					if symbol == "688001.SH" && k < perDay-1 && r.Float64() < 0.3 {
						continue // A bar without a tick.
					}
					begin := at.Add(-5 * time.Minute)
					for j, p := range []float64{open, move(open), price[i]} {
						fmt.Fprintf(&b, "%s,%s,%.2f,%d\n", begin.Add(time.Duration(100*j+r.IntN(90))*time.Second).Format(time.DateTime), symbol, p, 100*(1+r.IntN(5000)))
					}
					continue
				}
				fmt.Fprintf(&b, "%s,%s,%.2f,%.2f,%.2f,%.2f,%d,%v,%.2f,0\n", at.Format(time.DateTime), symbol, open, max(open, price[i]), min(open, price[i]), price[i], 100*(1+r.IntN(50_000)), factor[i], previous[i])
			}
		}
		day = day.AddDate(0, 0, 1)
	}
	return apptest.Write(t, "bars.csv", b.String()), dates
}

// TestLiveConfigurations trades as a service with agents of daily bars, bars of five minutes, and
// ticks, that give orders or target weights, under the exchanges' rules (limits, lots and T+1) and
// without: decisions, fills, positions and values are to the bit those of the environment over its
// test range, and the journal leads to the same records once more.
func TestLiveConfigurations(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	cases := 0
	for i, k := range []struct {
		name, actions, execution, rules, source string
		days, perDay                            int
		ticks                                   bool
		feed                                    []string
	}{
		{name: "daily, A shares", execution: "{fill: next_open, cash_split: fair}", rules: "ashare", source: "adjust: factor", days: 300, perDay: 1},
		{name: "daily, A shares, weights", actions: "weights", execution: "{fill: next_open}", rules: "ashare", source: "adjust: factor", days: 300, perDay: 1},
		{name: "five minutes, lots", execution: "{fill: next_close, lot: 100}", source: "adjust: factor", days: 12, perDay: 48},
		{name: "five minutes, A shares", execution: "{fill: next_open}", rules: "ashare", source: "adjust: factor", days: 12, perDay: 48},
		{name: "five minutes, A shares, weights", actions: "weights", execution: "{fill: same_close}", rules: "ashare", source: "adjust: factor", days: 12, perDay: 48},
		{name: "ticks", execution: "{fill: next_open}", source: `bars: 5m, sessions: ["09:30-11:30", "13:00-15:00"]`, days: 12, perDay: 48, ticks: true, feed: []string{"--ticks"}},
		{name: "ticks, weights", actions: "weights", execution: "{fill: next_open, lot: 100}", source: `bars: 15m, sessions: ["09:30-11:30", "13:00-15:00"]`, days: 24, perDay: 48, ticks: true, feed: []string{"--ticks"}},
		{name: "bars of ticks", execution: "{fill: next_open}", source: `bars: 5m, sessions: ["09:30-11:30", "13:00-15:00"]`, days: 12, perDay: 48, ticks: true},
	} {
		t.Run(k.name, func(t *testing.T) {
			file, dates := shareMarket(t, uint64(i+1), k.days, k.perDay, k.ticks)
			n := len(dates)
			actions, rules := "", ""
			if k.actions != "" {
				actions = "  actions: " + k.actions + "\n"
			}
			if k.rules != "" {
				rules = "    rules: " + k.rules + "\n"
			}
			doc := apptest.Write(t, "run.yaml", fmt.Sprintf(`seed: 3
publish: {observations: 16, allow_ties: true}
env:
  kind: trading
  window: 4
  initial_cash: 200000
  fee_rate: 0.00025
%s  execution: %s
  costs: {minimum: 5}
  episode: {kind: random, length: 40}
  data:
%s    source: {path: %q, %s}
    features: {prices: relative, volume: log, indicators: {rsi: [5]}}
    split: {train: [%s, %s], valid: [%s, %s], test: [%s, %s]}
agent:
  kind: a2c
  encoder: {kind: timecnn, d_model: 8, n_layers: 1}
  learning_rate: 0.01
  n_steps: 10
train:
  num_envs: 2
  total_env_steps: 40
  validation: {every_steps: 40, metric: sharpe}
`, actions, k.execution, rules, file, k.source, dates[0], dates[n/2], dates[n/2+1], dates[2*n/3], dates[2*n/3+1], dates[n-1]))
			dir := t.TempDir()
			run, messages, out := filepath.Join(dir, "run"), filepath.Join(dir, "bars.jsonl"), filepath.Join(dir, "out")
			apptest.Succeed(t, "train", doc, "--engine", portable.Name, "--quiet", "--out", run)
			apptest.Succeed(t, append([]string{"data", "feed", run, "-q", "--bars", file, "--to", messages}, k.feed...)...)
			service := apptest.Write(t, "live.yaml", fmt.Sprintf("name: demo\npolicy: %q\nfrom: %s\nstate: %q\nsource: {kind: file, path: %q}\nsink: {kind: file, path: %q}\n", run, dates[2*n/3+1], filepath.Join(dir, "state"), messages, out))
			apptest.Succeed(t, "live", service, "-q", "--engine", portable.Name)
			apptest.Says(t, apptest.Succeed(t, "live", service, "--replay", "--engine", portable.Name), "byte for byte")
			decisions, fills := compareWithEnv(t, doc, run, liveRecords(t, out))
			if decisions < 90 || fills < 10 {
				t.Errorf("%d decisions, %d fills", decisions, fills)
			}
			t.Logf("%d decisions, %d fills", decisions, fills)
			cases++
		})
	}
	if cases != 8 {
		t.Errorf("%d cases", cases)
	}
}

// TestLiveRetention trades with a journal of which the beginning is removed: records are those of a
// service that keeps all, whether or not it is stopped in between, a replay says where it begins
// and compares the rest, and what was removed is what lies behind a snapshot alone.
func TestLiveRetention(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	file, dates := shareMarket(t, 9, 150, 48, false)
	dir := t.TempDir()
	run, messages := filepath.Join(dir, "run"), filepath.Join(dir, "bars.jsonl")
	doc := apptest.Write(t, "run.yaml", fmt.Sprintf(`seed: 3
publish: {observations: 16, allow_ties: true}
env:
  kind: trading
  window: 4
  episode: {kind: random, length: 40}
  data:
    source: {path: %q, adjust: factor}
    features: {prices: relative, volume: log, indicators: {rsi: [5]}}
    split: {train: [%s, %s], valid: [%s, %s], test: [%s, %s]}
agent: {kind: a2c, encoder: {kind: timecnn, d_model: 8, n_layers: 1}, n_steps: 10}
train: {num_envs: 2, total_env_steps: 40, validation: {every_steps: 40, metric: sharpe}}
`, file, dates[0], dates[9], dates[10], dates[12], dates[13], dates[15]))
	apptest.Succeed(t, "train", doc, "--engine", portable.Name, "--quiet", "--out", run)
	apptest.Succeed(t, "data", "feed", run, "-q", "--bars", file, "--to", messages)
	service := func(name, more, path string) string {
		return apptest.Write(t, name+".yaml", fmt.Sprintf("name: demo\npolicy: %q\nstate: %q\nsource: {kind: file, path: %q}\nsink: {kind: file, path: %q}\nsnapshot: 50\n%s", run, filepath.Join(dir, name+"-state"), path, filepath.Join(dir, name), more))
	}
	apptest.Succeed(t, "live", service("whole", "journal: {file_mb: 1}\n", messages), "-q", "--engine", portable.Name)
	want := liveRecords(t, filepath.Join(dir, "whole"))
	// The file grows, and the service ends with it each time.
	text := apptest.ReadText(t, messages)
	part := filepath.Join(dir, "part.jsonl")
	cut := service("cut", "journal: {keep: 1, file_mb: 1}\n", part)
	sessions := 5
	for i := range sessions {
		end := len(text)
		if i < sessions-1 {
			end = strings.LastIndex(text[:len(text)*(i+1)/sessions], "\n") + 1
		}
		if err := os.WriteFile(part, []byte(text[:end]), 0o600); err != nil {
			t.Fatal(err)
		}
		apptest.Succeed(t, "live", cut, "-q", "--engine", portable.Name)
	}
	if got := liveRecords(t, filepath.Join(dir, "cut")); got != want {
		t.Error("the records are others")
	}
	glob := func(name, pattern string) []string {
		list, err := filepath.Glob(filepath.Join(dir, name, pattern))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	all, kept, bases := glob("whole-state", "events-*.log"), glob("cut-state", "events-*.log"), glob("cut-state", "base-*.json")
	if len(all) < 5 || len(kept) < 2 || len(kept) > 3 || len(bases) == 0 || len(bases) > len(kept) || filepath.Base(kept[0]) == filepath.Base(all[0]) {
		t.Fatalf("%d files of the journal of %d, and the snapshots %v", len(kept), len(all), bases)
	}
	type replayed struct {
		From, Decisions, Records int
		Equal                    bool
	}
	whole := apptest.Decoded[replayed](t, apptest.Succeed(t, "live", service("whole", "journal: {file_mb: 1}\n", messages), "--replay", "--engine", portable.Name, "--json"))
	rest := apptest.Decoded[replayed](t, apptest.Succeed(t, "live", cut, "--replay", "--engine", portable.Name, "--json"))
	if whole.From != 0 || rest.From < 1000 || rest.From+rest.Decisions != whole.Decisions || rest.Records >= whole.Records || rest.Records < 1000 {
		t.Errorf("replayed %+v and %+v", whole, rest)
	}
	apptest.Says(t, apptest.Succeed(t, "live", cut, "--replay", "--engine", portable.Name), fmt.Sprintf("from the snapshot of batch %d on", rest.From))
	// A digit of the last record.
	path := files.Path(filepath.Join(dir, "cut"), livetrade.Positions)
	last := apptest.ReadText(t, path)
	at := strings.LastIndex(last, `"cash":`) + len(`"cash":`)
	if err := os.WriteFile(path, []byte(last[:at]+"9"+last[at:]), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := apptest.Run(t, "live", cut, "--replay", "--engine", portable.Name); r.Code != 1 || !strings.Contains(r.Err, "was published as") {
		t.Errorf("exit status %d: a changed digit is not found", r.Code)
	}
	for _, base := range bases {
		if err := os.Remove(base); err != nil {
			t.Fatal(err)
		}
	}
	apptest.Refuse(t, []string{"live", cut, "--replay", "--engine", portable.Name}, "there is no snapshot base-*.json to begin with")
}

// liveFill is a record of fills.
type liveFill struct {
	Seq                int
	Symbol             string
	Shares, Price, Fee float64
}

// compareWithEnv steps the environment of a run through its test range with what the policy decides
// there, and compares everything with the records of a service.
func compareWithEnv(t *testing.T, doc, run string, got [livetrade.Topics]string) (decisions, filled int) {
	t.Helper()
	a, market, ts := apptest.TestRange(t, doc, run)
	lines := func(topic livetrade.Topic) []string { return strings.Split(strings.TrimSpace(got[topic]), "\n") }
	var fills []liveFill
	for _, line := range lines(livetrade.Fills) {
		fills = append(fills, apptest.Decoded[liveFill](t, line))
	}
	positions, signals := lines(livetrade.Positions), lines(livetrade.Signals)
	type record struct {
		Time            string
		Value, Cash     float64
		Positions       map[string]float64
		Orders          map[string]string
		Targets         map[string]float64
		Limited, Policy string
	}
	for {
		if decisions >= len(positions) || decisions >= len(signals) {
			t.Fatalf("%d positions and %d signals, and the environment goes on", len(positions), len(signals))
		}
		p, signal := apptest.Decoded[record](t, positions[decisions]), apptest.Decoded[record](t, signals[decisions])
		if p.Value != market.Value() || p.Cash != market.Cash() || len(p.Positions) != len(shares) {
			t.Fatalf("decision %d: %s, expected the value %v and the cash %v", decisions+1, positions[decisions], market.Value(), market.Cash())
		}
		for i, symbol := range shares {
			if p.Positions[symbol] != market.Positions()[i] {
				t.Fatalf("decision %d: %s, expected the positions %v", decisions+1, positions[decisions], market.Positions())
			}
		}
		for _, x := range market.Fills() {
			if filled >= len(fills) || fills[filled] != (liveFill{decisions + 1, shares[x.Asset], x.Shares, x.Price, x.Fee}) {
				t.Fatalf("decision %d: fill %d of %d is not %+v", decisions+1, filled, len(fills), x)
			}
			filled++
		}
		if ts.Type == envs.Last {
			return decisions, filled
		}
		if err := a.Observe(0, ts); err != nil {
			t.Fatal(err)
		}
		d, err := a.Decide()
		if err != nil {
			t.Fatal(err)
		}
		if signal.Targets != nil {
			// The published model has the softmax within, in float32; the environment receives
			// the same weights.
			total := 0.0
			for _, x := range d.Actions.Float32s() {
				total += math.Exp(float64(x))
			}
			weights := make([]float64, len(shares)+1)
			for i, x := range d.Actions.Float32s() {
				weights[i] = signal.Targets[append(shares[:4:4], livetrade.CashName)[i]]
				if want := math.Exp(float64(x)) / total; math.Abs(weights[i]-want) > 1e-6 {
					t.Fatalf("decision %d: %s, expected the softmax of %v", decisions+1, signals[decisions], d.Actions.Float32s())
				}
			}
			err = market.Rebalance(weights, ts)
		} else {
			for i, o := range d.Actions.Int64s() {
				if signal.Orders[shares[i]] != [...]string{"buy", "sell", "hold"}[o] {
					t.Fatalf("decision %d: %s, expected the orders %v", decisions+1, signals[decisions], d.Actions)
				}
			}
			err = market.Step(d.Actions.Reshape(d.Actions.Len()), ts)
		}
		if err != nil {
			t.Fatal(err)
		}
		decisions++
	}
}
