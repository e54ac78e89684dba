package app

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade/board"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/market/broker/alpaca"
	"github.com/onnxrl/onnxrl/envs/market/broker/brokertest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// brokerDemo is a service whose orders a double of the broker executes.
type brokerDemo struct {
	*liveDemo
	double *brokertest.Double
	rng    *rand.Rand
	kills  int
	days   []string
}

// newBrokerDemo begins with 10,000 dollars. faults is the share of requests that go wrong.
func newBrokerDemo(t *testing.T, faults float64, more string) *brokerDemo {
	t.Helper()
	d := &brokerDemo{liveDemo: newLiveDemo(t, "--set", "env.account.prices=raw"), double: brokertest.New(10_000, time.Date(2012, 6, 1, 12, 0, 0, 0, time.UTC)), rng: rand.New(rand.NewPCG(3, 7))}
	requests := rand.New(rand.NewPCG(5, 1))
	lock := make(chan struct{}, 1)
	d.double.Fault = func(*http.Request) brokertest.Fault {
		lock <- struct{}{}
		defer func() { <-lock }()
		if requests.Float64() >= faults {
			return brokertest.None
		}
		return brokertest.Fault(requests.IntN(int(brokertest.Hang)))
	}
	s := httptest.NewServer(d.double)
	t.Cleanup(s.Close)
	t.Setenv(alpaca.KeyVariable, d.double.Key)
	t.Setenv(alpaca.SecretVariable, d.double.Secret)
	d.doc = apptest.Write(t, "broker.yaml", apptest.ReadText(t, d.doc)+fmt.Sprintf("broker: {kind: alpaca, url: %q, pause: 1ms, max_pause: 3ms}\nexecution: {poll: 3ms, check: 20ms%s}\n", s.URL, more))
	seen := map[string]bool{}
	for _, line := range d.lines {
		if m := regexp.MustCompile(`"time":"(\d{4}-\d\d-\d\d)`).FindStringSubmatch(line); m != nil && m[1] >= "2012-06-01" && !seen[m[1]] {
			seen[m[1]] = true
			d.days = append(d.days, m[1])
		}
	}
	return d
}

// prices sets those of a day's opening, as parts of what its bars say.
func (d *brokerDemo) prices(day string, part float64) {
	d.t.Helper()
	n := 0
	for _, line := range d.lines {
		if strings.Contains(line, `"time":"`+day) {
			b := apptest.Decoded[struct {
				Symbol string
				Open   float64
			}](d.t, line)
			d.double.Price(b.Symbol, int64(b.Open*part*100+0.5))
			n++
		}
	}
	if n == 0 {
		d.t.Fatalf("no prices of %s", day)
	}
}

// state is that of the service, and false while it does not answer.
func (d *brokerDemo) state() (s board.State, ok bool) {
	resp, err := http.Get(d.url + "/live/state")
	if err != nil {
		return s, false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return s, false
	}
	return apptest.Decode[board.State](d.t, string(text)), true
}

// kill ends the service, and starts it again.
func (d *brokerDemo) kill() {
	d.t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		d.t.Fatal(err)
	}
	_ = d.cmd.Wait() // It was killed.
	d.kills++
	d.start()
}

// day brings the bars of a day, and the market of the next, until no order is open. The service may
// be killed at any time meanwhile.
func (d *brokerDemo) day(i int, kills float64, part float64) {
	d.t.Helper()
	before, _ := d.state()
	d.until(d.days[i] + "x")
	d.prices(d.days[i+1], part)
	date, err := time.Parse(time.DateOnly, d.days[i+1])
	if err != nil {
		d.t.Fatal(err)
	}
	opened := false
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s, _ := d.state()
			d.t.Fatalf("%s: orders remain open: %+v", d.days[i], s)
		}
		if d.rng.Float64() < kills {
			d.kill()
		}
		s, ok := d.state()
		switch {
		case !ok || s.Decisions == before.Decisions:
		case s.OpenOrders == 0:
			d.double.Close(date.Add(20 * time.Hour))
			return
		case !opened:
			opened = true
			d.double.Open(date.Add(14 * time.Hour))
		default:
			d.double.Trade(func(string) float64 { return 0.3 + d.rng.Float64() })
		}
	}
}

// TestLiveBroker trades through a double of a broker's protocol whose requests go wrong, is killed
// by kill -9 meanwhile, and has each order once, each fill, and the broker's positions and cash.
func TestLiveBroker(t *testing.T) {
	longtest.Slow(t)
	d := newBrokerDemo(t, 0.1, "")
	d.start()
	const days = 60
	for i := range days {
		d.day(i, 0.01, 1)
	}
	// The record has what was sent, once.
	type record struct {
		ID, Symbol, Order string
		Quantity, Shares  float64
		Price             float64
	}
	read := func(topic string) (list []record) {
		for line := range strings.Lines(apptest.ReadText(t, d.dir, "out", topic+".jsonl")) {
			list = append(list, apptest.Decoded[record](t, line))
		}
		return list
	}
	s := d.stop()
	orders, fills := read("orders"), read("fills")
	ids := map[string]bool{}
	for _, o := range orders {
		if ids[o.ID] {
			t.Errorf("%s is ordered twice", o.ID)
		}
		ids[o.ID] = true
	}
	for _, id := range d.double.ClientIDs() {
		if !ids[id] {
			t.Errorf("the broker has %s, which is not recorded", id)
		}
	}
	if n := len(d.double.ClientIDs()); n != len(orders) || n < days {
		t.Errorf("the broker has %d orders, %d are recorded\n%s", n, len(orders), apptest.ReadText(t, d.dir, "out", "risk.events.jsonl"))
	}
	executed := map[string]bool{}
	held, cash := map[string]float64{}, 10_000.0
	for _, f := range fills {
		if executed[f.ID] || !ids[f.Order] {
			t.Errorf("the fill %+v", f)
		}
		executed[f.ID] = true
		held[f.Symbol] += f.Shares
		cash -= f.Shares * f.Price
	}
	last := apptest.Decoded[struct {
		Cash      float64
		Positions map[string]float64
	}](t, lastLine(apptest.ReadText(t, d.dir, "out", "positions.jsonl")))
	some := 0
	for symbol, q := range sorted.All(last.Positions) {
		if have := d.double.Shares(symbol); !near(have, q) || !near(held[symbol], q) {
			t.Errorf("%s: %v, the broker has %v, and fills lead to %v", symbol, q, have, held[symbol])
		}
		if q > 0 {
			some++
		}
	}
	if have := d.double.Cash(); !near(have, last.Cash) || !near(have, cash) || have < 0 {
		t.Errorf("cash %v, the broker has %v, and fills lead to %v", last.Cash, have, cash)
	}
	if some == 0 || len(fills) < days || d.kills < 3 || s.Decisions != days {
		t.Errorf("%d positions, %d fills, %d kills, %d decisions", some, len(fills), d.kills, s.Decisions)
	}
	t.Logf("%d orders, %d fills, %d kills", len(orders), len(fills), d.kills)
	apptest.Says(t, apptest.Succeed(t, "live", d.doc, "--replay", "--engine", portable.Name), fmt.Sprintf("lead to %d decisions", days), "byte for byte")
}

// TestLiveBrokerDiffers: what the broker has beside what is expected ends trading, before the first
// order or while it trades, unless it is to be adopted; refusals are reported.
func TestLiveBrokerDiffers(t *testing.T) {
	longtest.Slow(t)
	d := newBrokerDemo(t, 0, "")
	d.double.Give("XYZ", 3)
	apptest.Refuse(t, []string{"live", d.doc, "--engine", portable.Name, "-q"}, "the account has 3 XYZ, which the policy does not trade")
	d.double.Give("XYZ", -3)
	d.double.Give("IBM", 2)
	d.start()
	for i := range 4 {
		d.day(i, 0, 1)
	}
	s, _ := d.state()
	if s.Last == nil || s.Last.Positions["IBM"] == 0 || s.Differs != 0 {
		t.Errorf("%+v", s)
	}
	// Purchases at twice the price cannot be paid.
	refused := false
	for i := 4; i < 30 && !refused; i++ {
		d.day(i, 0, 2)
		refused = strings.Contains(apptest.ReadText(t, d.dir, "out", "risk.events.jsonl"), `"event":"order_refused"`)
	}
	if !refused {
		t.Error("no order was refused")
	}
	// Somebody puts shares into the account.
	d.double.Give("AAPL", 1000)
	if s := d.killed(true); s.Reason != "holdings" || s.Differs == 0 {
		t.Errorf("%+v", s)
	}
	apptest.Says(t, d.get("/metrics"), "onnxrl_position_mismatch 1\n")
	d.stop()
	apptest.Refuse(t, []string{"live", d.doc, "--engine", portable.Name, "-q"}, "reconcile with the broker: AAPL: ", "execution.differences: adopt")
	d.doc = apptest.Write(t, "adopt.yaml", strings.Replace(apptest.ReadText(t, d.doc), "check: 20ms", "check: 20ms, differences: adopt", 1))
	d.start()
	s, _ = d.state()
	if !s.Killed || s.Differs != 0 {
		t.Errorf("%+v", s)
	}
	d.request(http.MethodPost, "/live/resume", "")
	d.killed(false)
	d.double.Give("AAPL", -1)
	for strings.Count(apptest.ReadText(t, d.dir, "out", "risk.events.jsonl"), "adopt: reconcile with the broker: AAPL: quantity") < 2 {
		time.Sleep(time.Millisecond) // There is nothing else to wait for.
	}
	d.stop()
	last := apptest.Decoded[struct{ Positions map[string]float64 }](t, lastLine(apptest.ReadText(t, d.dir, "out", "positions.jsonl")))
	if have := d.double.Shares("AAPL"); !near(last.Positions["AAPL"], have) || have < 900 {
		t.Errorf("%+v, the broker has %v AAPL", last, have)
	}
	apptest.Says(t, apptest.Succeed(t, "live", d.doc, "--replay", "--engine", portable.Name), "byte for byte")
	// The journal of a service with a broker is not one of a service without.
	text := regexp.MustCompile(`(?m)^broker: .*$`).ReplaceAllString(apptest.ReadText(t, d.doc), "")
	apptest.Refuse(t, []string{"live", apptest.Write(t, "without.yaml", text), "--engine", portable.Name, "-q"}, filepath.Join(d.dir, "state"), "with a broker cannot go on without")
}

func near(a, b float64) bool { return a-b < 1e-4 && b-a < 1e-4 }

func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}
