package app

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	cdpnetwork "github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/onnxrl/onnxrl/agents/livetrade/board"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/market/stream"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

const (
	// chromiumVar names the browser that visits the dashboard.
	chromiumVar = "ONNXRL_CHROMIUM"
	// screenshotsVar names a folder that pictures of all views are kept in.
	screenshotsVar = "ONNXRL_SCREENSHOTS"
)

// liveDouble is a live trading service as far as the dashboard asks it: it needs the token, tells
// bars, and then says nothing more. A real one is in TestDashboardOfLiveInBrowser.
func liveDouble(t *testing.T, bars int) *httptest.Server {
	t.Helper()
	first := 10000.0
	value := func(i int) float64 { return first + 300*math.Sin(float64(i)/9) + 4*float64(i) }
	event := func(i int) *board.Event {
		v, drawdown, loss := value(i), 0.031, 0.012
		e := &board.Event{
			Seq: uint64(i + 1), Time: fmt.Sprintf("2024-%02d-%02d 16:00:00", i/28+1, i%28+1), Value: v, Cash: 0.25 * v, PnL: v - first, PnLDay: v - value(max(0, i-1)),
			Positions: map[string]float64{"IBM": float64(20 + i%5), "MSFT": 12}, Weights: map[string]float64{"IBM": 0.4 + 0.02*float64(i%5), "MSFT": 0.35 - 0.02*float64(i%5), "cash": 0.25},
			Fills: []board.Fill{}, Orders: map[string]string{"IBM": "buy", "MSFT": "hold"}, Policy: "sha256:0123456789abcdef", Risk: board.Risk{Drawdown: &drawdown, CVaR: &loss, Cut: true},
		}
		if i%40 == 7 {
			e.Limited, e.Because, e.Refused = "hold", []string{"order_rate"}, map[string]string{"MSFT": "buy"}
			e.Risk.Events = []board.RiskEvent{{Event: "order_rate", On: true, Value: 61, Threshold: 60, Action: "hold"}}
		}
		return e
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live/state", func(w http.ResponseWriter, r *http.Request) {
		last := event(bars - 1)
		_ = json.NewEncoder(w).Encode(board.State{Name: "paper", Policy: last.Policy, Seq: last.Seq, Counters: stream.Counters{Messages: int64(2 * bars), Late: 2}, CVaRLevel: 0.95, Last: last})
	})
	mux.HandleFunc("GET /live/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range bars {
			text, err := json.Marshal(event(i))
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "id: %d\ndata: %s\n\n", i+1, text)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer open-live" {
			http.Error(w, "a token is needed", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// browser is a page in Chromium that remembers what goes wrong.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	wrong  []string
	origin string
}

func startBrowser(t *testing.T, program, origin string) *browser {
	t.Helper()
	// Chromium keeps what it needs below HOME and /tmp; it runs as whoever runs the test. Its
	// children write on for a moment after it has ended, in which the folder cannot be removed.
	profile, err := os.MkdirTemp("", "onnxrl-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := os.RemoveAll(profile)
		for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); err = os.RemoveAll(profile) {
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			t.Error(err)
		}
	})
	o := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(profile), chromedp.Flag("disable-dev-shm-usage", true))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), o...)
	t.Cleanup(stop)
	ctx, stopPage := chromedp.NewContext(ctx)
	t.Cleanup(stopPage)
	ctx, stopTime := context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(stopTime)
	b := &browser{t: t, ctx: ctx, origin: origin}
	say := func(format string, args ...any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
	}
	chromedp.ListenTarget(ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			say("exception: %s", e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				say("console: %s %v", e.Type, e.Args)
			}
		case *cdplog.EventEntryAdded:
			if e.Entry.Level == cdplog.LevelError || e.Entry.Level == cdplog.LevelWarning {
				say("log: %s (%s)", e.Entry.Text, e.Entry.URL)
			}
		case *cdpnetwork.EventRequestWillBeSent:
			if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "blob" && u.Scheme != "data" && !b.own(e.Request.URL) {
				say("a request of %s", e.Request.URL)
			}
		}
	})
	// The browser ends with the context of its first task, which has no limit of its own.
	if err := chromedp.Run(ctx); err != nil {
		t.Fatal(err)
	}
	b.do(cdpnetwork.Enable(), cdplog.Enable(), runtime.Enable())
	return b
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatalf("%v; so far: %v", err, b.said())
	}
}

// own reports whether an address is of the dashboard that is visited.
func (b *browser) own(address string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.HasPrefix(address, b.origin)
}

func (b *browser) said() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wrong
}

// number is what an expression of the page gives.
func evaluated[T any](b *browser, expression string) T {
	b.t.Helper()
	var v T
	b.do(chromedp.Evaluate(expression, &v))
	return v
}

// view goes to a view and waits until it has been drawn.
func (b *browser) view(name string) {
	b.t.Helper()
	b.do(
		chromedp.Evaluate(fmt.Sprintf(`delete document.body.dataset.shown; if (location.hash === '#%[1]s') location.hash = '#%[1]s '.trim() + '-'; location.hash = '#%[1]s'`, name), nil),
		chromedp.Poll(fmt.Sprintf(`(document.body.dataset.shown ?? '').startsWith('%s ')`, name), nil, chromedp.WithPollingTimeout(2*time.Minute)),
	)
}

// parsed reads a number as the page writes it.
func parsed(t *testing.T, text string) float64 {
	t.Helper()
	text = strings.NewReplacer("−", "-", ",", "").Replace(strings.TrimSpace(text))
	scale := 1.0
	for _, s := range []struct {
		ending string
		of     float64
	}{{" %", 0.01}, {" M", 1e6}, {" G", 1e9}} {
		if rest, ok := strings.CutSuffix(text, s.ending); ok {
			text, scale = rest, s.of
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Errorf("the page writes %q, expected a number", text)
	}
	return v * scale
}

// shown is a number on the page: what is written, and the whole of it.
type shown struct{ Text, Value string }

// check compares a number on the page with that of a file.
func (s shown) check(t *testing.T, what string, want float64) {
	t.Helper()
	if v, err := strconv.ParseFloat(s.Value, 64); err != nil || v != want {
		t.Errorf("%s: the page has %s, the file %v", what, s.Value, want)
	}
	if v := parsed(t, s.Text); math.Abs(v-want) > 6e-4*math.Max(math.Abs(want), 1) {
		t.Errorf("%s: the page shows %s, the file has %v", what, s.Text, want)
	}
}

var dashboardViews = []string{"runs", "run", "curves", "report", "trading", "live", "population", "world", "decision", "artefacts", "resources"}

// TestDashboardInBrowser visits every view in Chromium, in light and dark colours, wide and narrow:
// nothing is an error, nothing is asked of another origin, the page is not wider than the window,
// and the numbers on it are those of the runs' files.
func TestDashboardInBrowser(t *testing.T) {
	longtest.Nightly(t)
	program := os.Getenv(chromiumVar)
	if program == "" {
		t.Skip(chromiumVar + " is not set")
	}
	if !ort.Cgo {
		t.Skip("the page is the same in every build; it is visited in the one with ONNX Runtime")
	}
	dir := dashboardRuns(t)
	live := liveDouble(t, 120)
	tokens := t.TempDir()
	for name, text := range sorted.All(map[string]string{"use": "open-page", "live": "open-live"}) {
		if err := os.WriteFile(filepath.Join(tokens, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address, end := startDashboard(t, dir, "runs", "--live", live.URL, "--live-token-file", filepath.Join(tokens, "live"), "--token-file", filepath.Join(tokens, "use"))
	defer end()
	b := startBrowser(t, program, address)

	// Nothing is shown without the token, which the page asks for.
	b.do(chromedp.Navigate(address), chromedp.WaitVisible("#token", chromedp.ByID))
	if n := evaluated[int](b, `document.querySelectorAll('main *').length`); n != 0 {
		t.Errorf("%d elements are shown without a token", n)
	}
	for _, text := range b.said() {
		if !strings.Contains(text, "401") {
			t.Error(text)
		}
	}
	b.mu.Lock()
	b.wrong = nil
	b.mu.Unlock()
	b.do(chromedp.SendKeys("#token", "open-page\n", chromedp.ByID), chromedp.WaitVisible("#runs", chromedp.ByID))
	b.do(chromedp.Poll(`document.querySelectorAll('#runs tbody tr').length === 6 && !document.querySelector('.tag.reading')`, nil, chromedp.WithPollingTimeout(2*time.Minute)))

	pictures := 0
	for _, scheme := range []string{"light", "dark"} {
		for _, size := range []struct {
			name          string
			width, height int64
		}{{"wide", 1360, 900}, {"narrow", 390, 844}} {
			b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}), chromedp.EmulateViewport(size.width, size.height))
			for _, view := range dashboardViews {
				b.view(view)
				what := fmt.Sprintf("%s, %s, %s", view, scheme, size.name)
				var picture []byte
				b.do(chromedp.FullScreenshot(&picture, 100))
				if len(picture) < 5000 {
					t.Errorf("%s: the picture has %d bytes", what, len(picture))
				}
				pictures++
				if dir := os.Getenv(screenshotsVar); dir != "" {
					if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%s-%s.png", view, scheme, size.name)), picture, 0o666); err != nil {
						t.Fatal(err)
					}
				}
				if w := evaluated[int64](b, `document.documentElement.scrollWidth`); w > size.width {
					t.Errorf("%s: the page is %d wide", what, w)
				}
				if text := evaluated[string](b, `document.getElementById('problem').hidden ? '' : document.getElementById('problem').textContent`); text != "" {
					t.Errorf("%s: %s", what, text)
				}
				if n := evaluated[int](b, `document.querySelectorAll('main .empty').length`); n > 2 {
					t.Errorf("%s: %d parts have nothing to show", what, n)
				}
			}
		}
	}
	if pictures != 44 {
		t.Errorf("%d views were visited", pictures)
	}
	b.do(emulation.SetEmulatedMedia(), chromedp.EmulateViewport(1360, 900))
	checkDashboardNumbers(t, b, filepath.Join(dir, "runs"))

	// The keyboard reaches the views, and a chart is read by arrow keys.
	b.do(chromedp.Evaluate(`document.activeElement.blur()`, nil), chromedp.KeyEvent("4"), chromedp.Poll(`(document.body.dataset.shown ?? '').startsWith('report ')`, nil))
	b.do(chromedp.Focus(`figure[data-title="Equity"] svg`, chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowLeft), chromedp.WaitVisible(`figure[data-title="Equity"] .tip`, chromedp.ByQuery))
	for _, text := range b.said() {
		t.Error(text)
	}
	b.hostile()
}

// hostile visits a dashboard of a run whose name, metrics and configuration are markup, while the
// run is written.
func (b *browser) hostile() {
	t := b.t
	root := t.TempDir()
	const markup = `<img src=x onerror="document.title='caught'">`
	dir := filepath.Join(root, markup)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	line := func(step int) {
		f, err := os.OpenFile(filepath.Join(dir, "metrics.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
		if err == nil {
			_, err = fmt.Fprintf(f, `{"step":%d,"time":%d,"rollout/ep_rew_mean":%d,%q:1}`+"\n", step, time.Now().Unix(), 2*step, markup)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	line(1000)
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("agent: {kind: '"+strings.ReplaceAll(markup, "'", "''")+"'}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	address, end := startDashboard(t, root, ".")
	defer end()
	b.mu.Lock()
	b.origin = address
	b.mu.Unlock()
	b.do(chromedp.Navigate(address+"#runs"), chromedp.WaitVisible("#runs tbody tr", chromedp.ByQuery))
	cell := func(column string) string {
		return fmt.Sprintf(`document.querySelector('#runs tbody td[data-column="%s"]').textContent`, column)
	}
	if name, agent := evaluated[string](b, cell("run")), evaluated[string](b, cell("agent")); name != markup || agent != markup {
		t.Errorf("the page shows %q, %q", name, agent)
	}
	for _, step := range []int{1512, 2048, 4096} {
		line(step)
		b.do(chromedp.Poll(fmt.Sprintf("%s === '%s' && %s === '%s'", cell("env steps"), thousands(step), cell("return"), thousands(2*step)), nil, chromedp.WithPollingTimeout(2*time.Minute)))
	}
	for _, view := range []string{"run", "curves", "resources"} {
		b.view(view)
		if n := evaluated[int](b, `document.querySelectorAll('img, script:not([src])').length`); n != 0 {
			t.Errorf("%s: %d elements are the run's", view, n)
		}
	}
	if title := evaluated[string](b, "document.title"); strings.Contains(title, "caught") {
		t.Error("markup of a run has done something")
	}
	for _, text := range b.said() {
		t.Error(text)
	}
}

// thousands writes a number below a million as the page does.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}

// checkDashboardNumbers compares what the page shows with the files.
func checkDashboardNumbers(t *testing.T, b *browser, root string) {
	t.Helper()
	compared := 0
	const id = "runs"
	b.view("runs")
	for _, run := range []string{"cartpole/seed-1", "cartpole/seed-2", "cartpole/seed-3", "slow/seed-1", "slow/seed-2", "demo"} {
		var end struct {
			Steps      float64             `json:"env_steps"`
			Metric     string              `json:"metric"`
			Validation map[string]*float64 `json:"validation"`
			Last       map[string]*float64 `json:"validation_last"`
		}
		apptest.ReadJSON(t, filepath.Join(root, run, "finished.json"), &end)
		for column, want := range sorted.All(map[string]*float64{"env steps": &end.Steps, "best": end.Validation[end.Metric], "validation": end.Last[end.Metric]}) {
			s := evaluated[shown](b, fmt.Sprintf(`(() => { const c = document.querySelector('tr[data-run="%s"] td[data-column="%s"]'); return { Text: c.textContent, Value: c.dataset.value }; })()`, id+"/"+run, column))
			if want == nil {
				// The page shows no number that the file lacks.
				if s.Text != "–" || s.Value != "" {
					t.Errorf("%s %s: the page has %q, the file no number", run, column, s.Text)
				}
			} else {
				s.check(t, run+" "+column, *want)
			}
			compared++
		}
	}
	// Curves: the band's last value is the mean over the seeds.
	b.do(chromedp.Evaluate(fmt.Sprintf(`sessionStorage.setItem('onnxrl-choices', JSON.stringify({ runs: ['%[1]s/cartpole/seed-1', '%[1]s/cartpole/seed-2', '%[1]s/cartpole/seed-3'] })); location.reload()`, id), nil), chromedp.WaitVisible("#runs", chromedp.ByID))
	b.view("curves")
	for _, tag := range []string{"rollout/ep_rew_mean", "eval/mean_reward", "train/loss"} {
		sum := 0.0
		for _, seed := range []string{"1", "2", "3"} {
			records, err := metrics.ReadJSONLines(filepath.Join(root, "cartpole", "seed-"+seed, "metrics.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			last := math.NaN()
			for _, r := range records {
				if v, ok := r.Values[tag]; ok {
					last = v
				}
			}
			sum += last
		}
		s := evaluated[shown](b, fmt.Sprintf(`(() => { const c = document.querySelector('figure[data-title="%s"] .last'); return { Text: c.textContent, Value: c.dataset.value }; })()`, tag))
		s.check(t, tag, sum/3)
		compared++
	}
	// The report.
	var report struct {
		Strategies []struct {
			Name    string
			Metrics map[string]float64
		}
	}
	text := apptest.ReadBytes(t, filepath.Join(root, "demo", "report", "test", "summary.json"))
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	b.view("report")
	for i, s := range report.Strategies[:2] {
		for _, key := range []string{"total_return", "sharpe", "max_drawdown"} {
			v := evaluated[shown](b, fmt.Sprintf(`(() => { const c = document.querySelectorAll('main table')[0].querySelectorAll('tbody tr')[%d].querySelector('[data-metric="%s"]'); return { Text: c.textContent, Value: c.dataset.value }; })()`, i, key))
			v.check(t, s.Name+" "+key, s.Metrics[key])
			compared++
		}
	}
	// The world.
	var world struct {
		Final map[string]float64 `json:"final_scores"`
		Days  []json.RawMessage
	}
	apptest.ReadJSON(t, filepath.Join(root, "world.json"), &world)
	b.view("world")
	got := evaluated[map[string]shown](b, `Object.fromEntries([...document.querySelectorAll('figure[data-title="Final scores"] .row')].map((r) => [r.querySelector('.name').textContent.split(' ')[0], { Text: r.querySelector('.last').textContent, Value: r.querySelector('.last').dataset.value }]))`)
	for agent, want := range sorted.All(world.Final) {
		got[agent].check(t, agent, want)
		compared++
	}
	if compared < 30 {
		t.Errorf("%d numbers were compared", compared)
	}
}
