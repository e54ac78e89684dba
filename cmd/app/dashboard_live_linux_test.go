package app

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/onnxrl/onnxrl/agents/livetrade/board"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// livePage is the view of a live service in a browser.
type livePage struct {
	*browser
	compared int
}

// until waits for an expression of the page.
func (p *livePage) until(expression string) {
	p.t.Helper()
	if err := chromedp.Run(p.ctx, chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(2*time.Minute))); err != nil {
		p.t.Fatalf("%v: %s; so far: %v; the page has\n%s", err, expression, p.said(), evaluated[string](p.browser, `document.body.innerText + JSON.stringify(document.body.dataset)`))
	}
}

// tile is what one shows.
func (p *livePage) tile(name string) shown {
	p.t.Helper()
	p.compared++
	return evaluated[shown](p.browser, fmt.Sprintf(`(() => { const c = document.querySelector('[data-tile="%s"] b'); return { Text: c.textContent.replace('+', ''), Value: c.dataset.value ?? '' }; })()`, name))
}

// last are the last values of the curves or the bars of a figure.
func (p *livePage) last(title string) map[string]shown {
	p.t.Helper()
	p.compared++
	return evaluated[map[string]shown](p.browser, fmt.Sprintf(`Object.fromEntries([...document.querySelectorAll('figure[data-title="%s"] li, figure[data-title="%[1]s"] .row')].map((r) => [r.querySelector('.name').textContent, { Text: r.querySelector('.last').textContent, Value: r.querySelector('.last').dataset.value }]))`, title))
}

// check compares all that the page shows of the account with what the service says.
func (p *livePage) check(s board.State, drawdown float64) {
	p.t.Helper()
	t, e := p.t, s.Last
	// The state and the events come by themselves.
	p.until(fmt.Sprintf(`document.querySelector('[data-tile="time"] b')?.textContent === '%s' && document.querySelector('main tbody td')?.textContent === '%[1]s'`, e.Time))
	p.tile("value").check(t, "value", e.Value)
	p.tile("cash").check(t, "cash", e.Cash)
	p.tile("gain of the day").check(t, "gain of the day", e.PnLDay)
	p.tile("gain since the beginning").check(t, "gain since the beginning", e.PnL)
	p.tile("drawdown").check(t, "drawdown", *e.Risk.Drawdown)
	p.tile("CVaR 95.0 %").check(t, "CVaR", *e.Risk.CVaR)
	if text := p.tile("policy").Text; !strings.HasPrefix(s.Policy, strings.TrimSuffix(text, "…")) || len(text) < 15 {
		t.Errorf("the policy is %s, the page says %s", s.Policy, text)
	}
	for title, want := range sorted.All(map[string]map[string]float64{"Positions": e.Positions, "Weights": e.Weights, "Weights now": e.Weights, "Value and cash": {"value": e.Value, "cash": e.Cash}, "Drawdown": {"drawdown": drawdown}}) {
		got := p.last(title)
		if len(got) != len(want) {
			t.Errorf("%s: the page has %v, expected %v", title, got, want)
		}
		for name, v := range sorted.All(want) {
			// The curve of the cash's weight is cash by value, as is the service's.
			got[name].check(t, title+" "+name, v)
		}
	}
}

// TestDashboardOfLiveInBrowser visits the page of a service that trades, while it trades, is killed
// by its switch, and starts again: what is shown is what the service and its topics have.
func TestDashboardOfLiveInBrowser(t *testing.T) {
	longtest.Nightly(t)
	program := os.Getenv(chromiumVar)
	if program == "" {
		t.Skip(chromiumVar + " is not set")
	}
	if !ort.Cgo {
		t.Skip("the page is the same in every build; it is visited in the one with ONNX Runtime")
	}
	d := newLiveDemo(t)
	d.risky("")
	d.start()
	d.until("2012-08-01")
	d.decision("2012-07-31")
	// A service that starts again has another port: what is between has one.
	var at atomic.Pointer[url.URL]
	move := func() {
		u, err := url.Parse(d.url)
		if err != nil {
			t.Fatal(err)
		}
		at.Store(u)
	}
	move()
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at.Load()) }, FlushInterval: -1, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { _ = recover() }() // An answer that is cut off.
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	empty := t.TempDir()
	address, end := startDashboard(t, empty, "--live", front.URL)
	defer end()
	p := &livePage{browser: startBrowser(t, program, address)}
	p.do(chromedp.Navigate(address + "#live"))
	p.view("live")
	state := func() board.State { return apptest.Decode[board.State](t, d.get("/live/state")) }
	p.check(state(), d.drawdown())
	switches := func(want string) {
		t.Helper()
		p.until(fmt.Sprintf(`document.querySelector('[data-tile="kill switch"] b').textContent === '%s'`, want))
	}
	switches("off")
	p.orders(d)

	// The kill switch shows without a decision, and then what it has left out.
	d.request(http.MethodPost, "/live/kill", "by hand")
	switches("killed")
	p.until(`[...document.querySelectorAll('main p.bad')].some((x) => x.textContent === 'by hand')`)
	refused := 0
	var e board.Event
	for _, date := range []string{"2012-08-01", "2012-08-02", "2012-08-03", "2012-08-06", "2012-08-07", "2012-08-08"} {
		d.until(date + "x")
		e = d.decision(date)
		if len(e.Because) != 1 || e.Because[0] != "killed" || e.Limited != "hold" {
			t.Errorf("%+v", e)
		}
		if refused += min(1, len(e.Refused)); len(e.Refused) > 0 && refused > 1 {
			break
		}
	}
	if refused < 2 {
		t.Fatalf("the policy wants too little: %d decisions with orders", refused)
	}
	p.check(state(), d.drawdown())
	p.last("Rejections by reason")["killed"].number(t, "rejections", float64(refused))
	row := evaluated[[]string](p.browser, `[...[...document.querySelectorAll('main table')][0].querySelectorAll('tbody tr:first-child td')].map((c) => c.textContent)`)
	for symbol, order := range sorted.All(e.Refused) {
		if !strings.Contains(row[4], symbol+": "+order+" (killed)") {
			t.Errorf("the page says %q of %v", row, e.Refused)
		}
	}
	p.orders(d)
	d.request(http.MethodPost, "/live/resume", "")
	switches("off")

	// It stops, and starts again: the page goes on, and a new one has the positions at once.
	before := state()
	d.stop()
	p.until(`document.querySelector('[data-tile="demo"] b').textContent === 'not connected'`)
	d.start()
	move()
	p.until(`document.querySelector('[data-tile="demo"] b').textContent === 'connected'`)
	again := state()
	if again.Last == nil || again.Last.Time != before.Last.Time || again.Policy != before.Policy || len(again.Last.Orders) != 0 {
		t.Fatalf("it stands at %+v, before at %+v", again.Last, before.Last)
	}
	p.check(again, d.drawdown())
	other, endOther := startDashboard(t, empty, "--live", front.URL)
	defer endOther()
	p.mu.Lock()
	p.origin = other
	p.mu.Unlock()
	p.do(chromedp.Navigate(other + "#live"))
	p.view("live")
	p.check(again, 0)
	d.until("2012-08-10")
	e = d.decision("2012-08-09")
	p.check(state(), math.Min(0, e.Value/math.Max(e.Value, again.Last.Value)-1))
	if p.compared < 50 {
		t.Errorf("%d parts of the page were compared", p.compared)
	}
	d.stop()
	for _, text := range p.said() {
		t.Error(text)
	}
}

// number compares one that is written as it is.
func (s shown) number(t *testing.T, what string, want float64) {
	t.Helper()
	if v := parsed(t, s.Text); v != want {
		t.Errorf("%s: the page shows %s, expected %v", what, s.Text, want)
	}
}

// drawdown is the fall of the last value that was published from the highest.
func (d *liveDemo) drawdown() float64 {
	d.t.Helper()
	peak, value := 0.0, 0.0
	for line := range strings.Lines(apptest.ReadText(d.t, d.dir, "out", "positions.jsonl")) {
		value = apptest.Decoded[struct{ Value float64 }](d.t, line).Value
		peak = math.Max(peak, value)
	}
	return value/peak - 1
}

// orders compares the counts of orders with the topic, of which all but those to hold are orders.
func (p *livePage) orders(d *liveDemo) {
	p.t.Helper()
	want := map[string]float64{}
	for line := range strings.Lines(apptest.ReadText(p.t, filepath.Join(d.dir, "out"), "orders.jsonl")) {
		want[apptest.Decoded[struct{ Order string }](p.t, line).Order]++
	}
	got := p.last("Orders")
	if len(got) != len(want) {
		p.t.Errorf("the page has %v, the topic %v", got, want)
	}
	for name, n := range sorted.All(want) {
		got[name].number(p.t, name, n)
	}
}
