package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/livetrade/board"
	"github.com/onnxrl/onnxrl/agents/livetrade/files"
	"github.com/onnxrl/onnxrl/agents/trader"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// alerted is a risk event of a webhook and of the topic, as far as both have it.
type alerted struct {
	Seq       uint64
	Event     string
	On        bool
	Symbol    string
	Value     *float64
	Threshold *float64
	Action    string
}

// String is for comparisons: numbers are there, not where they are.
func (a alerted) String() string {
	number := func(v *float64) any {
		if v == nil {
			return "null"
		}
		return *v
	}
	return fmt.Sprintf("%d %s %v %q %v %v %q", a.Seq, a.Event, a.On, a.Symbol, number(a.Value), number(a.Threshold), a.Action)
}

// alertReceiver is a webhook that may be away.
type alertReceiver struct {
	*httptest.Server
	mu    sync.Mutex
	away  bool
	ids   []string
	list  []alerted
	texts []string
	came  chan struct{}
}

func newAlertReceiver(t *testing.T) *alertReceiver {
	r := &alertReceiver{came: make(chan struct{}, 1000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.away {
			w.WriteHeader(http.StatusServiceUnavailable)
			r.came <- struct{}{}
			return
		}
		body, err := io.ReadAll(q.Body)
		var a struct {
			alerted
			ID, Text string
		}
		if err == nil {
			err = json.Unmarshal(body, &a)
		}
		if err != nil || q.URL.Path != "/in/hush" || q.Header.Get("Authorization") != "Bearer tok-en" || a.ID != q.Header.Get("Idempotency-Key") {
			t.Errorf("%s %v: %s, %v", q.URL, q.Header, body, err)
		}
		if !slices.Contains(r.ids, a.ID) {
			r.ids, r.list, r.texts = append(r.ids, a.ID), append(r.list, a.alerted), append(r.texts, a.Text)
		}
		r.came <- struct{}{}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *alertReceiver) set(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = away
}

// riskEvents are those of the topic, with their numbers.
func riskEvents(t *testing.T, dir string) (list []string) {
	t.Helper()
	for line := range strings.Lines(apptest.ReadText(t, dir, "out", "risk.events.jsonl")) {
		list = append(list, apptest.Decoded[alerted](t, line).String())
	}
	return list
}

// risky gives a service limits that are passed often, and a webhook.
func (d *liveDemo) risky(more string) {
	d.t.Helper()
	d.doc = apptest.Write(d.t, "risky.yaml", apptest.ReadText(d.t, d.doc)+`set: ["env.risk={drawdown: {limit: 0.02, window: 20}, cvar: {limit: 0.01, window: 20}}"]
`+more)
}

// TestLiveAlerts: a webhook receives the kill switch before there is another bar, and all that the
// topic of risk events has, in its order, while it is away and over a kill of the service.
func TestLiveAlerts(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	d, r := newLiveDemo(t), newAlertReceiver(t)
	token := filepath.Join(d.dir, "token")
	if err := os.WriteFile(token, []byte("tok-en\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.risky(fmt.Sprintf("alerts: {webhook: %q, token_file: %s}\n", r.URL+"/in/hush", token))
	d.start()
	d.until("2012-07-03")
	d.decision("2012-07-02")
	d.request(http.MethodPost, "/live/kill", "a test")
	d.says("alert: demo: killed; hold: a test")
	told := func(want string) {
		t.Helper()
		for {
			r.mu.Lock()
			there := slices.Contains(r.texts, want)
			r.mu.Unlock()
			if there {
				return
			}
			<-r.came
		}
	}
	told("demo: killed; hold: a test")
	s := apptest.Decode[board.State](t, d.get("/live/state"))
	if s.Decisions != 22 || s.Seq != 23 || s.Alerts == nil || s.CVaRLevel != 0.95 {
		t.Errorf("%+v", s)
	}
	d.request(http.MethodPost, "/live/resume", "")
	told("demo: killed has ended")
	d.until("2012-08-01")
	d.decision("2012-07-31")
	// It goes away, and the service is killed.
	r.set(true)
	d.request(http.MethodPost, "/live/kill", "while nobody hears")
	d.says("alert: demo: killed; hold: while nobody hears")
	for !strings.Contains(d.said.String(), "status 503; it is tried again") {
		d.says("status 503; it is tried again")
	}
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait() // It was killed.
	r.set(false)
	d.start()
	told("demo: killed; hold: while nobody hears")
	d.request(http.MethodPost, "/live/resume", "")
	d.until("2012-11-01")
	d.decision("2012-10-31")
	sum := d.stop()
	want := riskEvents(t, d.dir)
	r.mu.Lock()
	defer r.mu.Unlock()
	var got []string
	for i, a := range r.list {
		got = append(got, a.String())
		if n := strings.LastIndexByte(r.ids[i], '-'); !strings.HasPrefix(r.ids[i], fmt.Sprintf("demo-%d-", a.Seq)) || r.ids[i][n+1:] == "" {
			t.Errorf("%s: %s", r.ids[i], a)
		}
	}
	if !slices.Equal(got, want) || len(got) < 10 {
		t.Errorf("the webhook was told of %d events:\n%s\nthe topic has %d:\n%s", len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
	}
	if all := d.said.String(); strings.Contains(all, "hush") || strings.Contains(all, "tok-en") || !strings.Contains(all, "alert: demo: drawdown: ") {
		t.Errorf("%s", all)
	}
	n := len(r.came)
	apptest.Says(t, apptest.Succeed(t, "live", d.doc, "--replay", "--engine", portable.Name), fmt.Sprintf("lead to %d decisions", sum.Decisions))
	if len(r.came) != n {
		t.Error("a replay has told the webhook")
	}
}

// TestLiveCallback: a program that embeds a service receives what the topic of risk events has,
// in its order and once, over an orderly end.
func TestLiveCallback(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	d := newLiveDemo(t)
	d.risky("")
	a := &app{kinds: experiment.Kinds{Document: experiment.Document}}
	c, err := a.liveDocument(d.doc, []string{"source.follow=false", "http={}"})
	if err != nil {
		t.Fatal(err)
	}
	var told, said []string
	standing, decided := 0, 0
	run := func() {
		v, done, err := marketAgent(c.Policy, "")
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		trader, err := trader.New(t.Context(), v, portable.New(), c.Set...)
		if err != nil {
			t.Fatal(err)
		}
		defer trader.Close()
		m, err := livetrade.NewMachine(&c, trader, v.Digest, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		var source files.SourceConfig
		var sink files.SinkConfig
		if err := c.Source.Decode(&source); err != nil {
			t.Fatal(err)
		}
		if err := c.Sink.Decode(&sink); err != nil {
			t.Fatal(err)
		}
		in, out := files.NewSource(source), files.NewSink(sink)
		defer in.Close()
		defer out.Close()
		seq := uint64(0)
		err = livetrade.Run(context.Background(), livetrade.Options{
			Config: &c, Machine: m, Source: in, Sink: out, Say: func(text string) { said = append(said, text) },
			OnAlert: func(a *livetrade.Alert) {
				x := alerted{Seq: a.Seq, Event: a.Event, On: a.On, Symbol: a.Symbol, Value: &a.Value, Threshold: &a.Threshold, Action: a.Action}
				told = append(told, x.String())
				if a.Service != "demo" || a.Time.IsZero() || a.Bars.IsZero() || a.Number < 0 {
					t.Errorf("%+v", a)
				}
			},
			OnBatch:    func(b *livetrade.Batch, _, _ time.Duration) { seq = b.Seq },
			OnStanding: func(b *livetrade.Batch) { standing++; checkStanding(t, d.dir, b) },
			OnStatus: func(s livetrade.Status) {
				if s.Policy != v.Digest {
					t.Errorf("the policy is %q", s.Policy)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if seq > 0 {
			decided++
		}
	}
	for _, date := range []string{"2012-08-01", "2012-11-01", "2013-03-02"} {
		d.until(date)
		run()
	}
	run() // Without another bar.
	want := riskEvents(t, d.dir)
	if !slices.Equal(told, want) || len(told) < 10 || decided != 3 || standing != 3 {
		t.Errorf("%d decided, %d stood; told of %d events:\n%s\nthe topic has %d:\n%s", decided, standing, len(told), strings.Join(told, "\n"), len(want), strings.Join(want, "\n"))
	}
	alerts := 0
	for _, text := range said {
		if strings.HasPrefix(text, "alert: demo: ") {
			alerts++
		}
	}
	if alerts != len(told) {
		t.Errorf("%d lines of the log, %d alerts", alerts, len(told))
	}
}

// checkStanding compares what an account stands at with the positions that were published last.
func checkStanding(t *testing.T, dir string, b *livetrade.Batch) {
	t.Helper()
	lines := slices.Collect(strings.Lines(apptest.ReadText(t, dir, "out", "positions.jsonl")))
	got, want := apptest.Decode[map[string]any](t, string(b.Value(&b.Records[0]))), apptest.Decode[map[string]any](t, lines[len(lines)-1])
	want["bound"] = map[string]any{} // These are of a decision.
	if len(b.Records) != 1 || len(want) < 10 || !reflect.DeepEqual(got, want) {
		t.Errorf("it stands at %v, published was %v", got, want)
	}
}
