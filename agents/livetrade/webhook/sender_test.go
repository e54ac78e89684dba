package webhook

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

const secret = "/services/T0/B0/hush"

// receiver notes what is posted to it.
type receiver struct {
	*httptest.Server
	// answer gives the status of the n-th request, from 0; 0 ends the connection without one.
	answer func(n int) int

	mu    sync.Mutex
	asked int
	taken []*http.Request
	texts []string
	came  chan struct{} // once for each request that was answered
}

func newReceiver(t *testing.T, answer func(n int) int) *receiver {
	t.Helper()
	r := &receiver{answer: answer, came: make(chan struct{}, 1000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		n := r.asked
		r.asked++
		r.mu.Unlock()
		code := r.answer(n)
		if code == 0 {
			panic(http.ErrAbortHandler)
		}
		if code < 300 {
			r.mu.Lock()
			r.taken, r.texts = append(r.taken, q), append(r.texts, string(body))
			r.mu.Unlock()
		}
		w.Header().Set("Location", r.URL+"/elsewhere")
		w.WriteHeader(code)
		r.came <- struct{}{}
	}))
	t.Cleanup(r.Close)
	return r
}

// ids are those of what was taken.
func (r *receiver) ids() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.taken {
		list = append(list, q.Header.Get("Idempotency-Key"))
	}
	return list
}

func always(code int) func(int) int { return func(int) int { return code } }

// heard keeps what is said.
type heard struct {
	mu   sync.Mutex
	list []string
}

func (h *heard) say(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, text)
}

// check compares what was said, in order, and looks for what never may be.
func (h *heard) check(t *testing.T, wants ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	all := strings.Join(h.list, "\n")
	if !slices.EqualFunc(h.list, wants, strings.Contains) {
		t.Errorf("%d lines are said, expected %q:\n%s", len(h.list), wants, all)
	}
	if strings.Contains(all, "hush") || strings.Contains(all, "tok-en") {
		t.Errorf("a secret is said:\n%s", all)
	}
}

// sender is one that does not wait long.
func sender(t *testing.T, dir, url string, h *heard, edit ...func(*livetrade.Alerts)) *Sender {
	t.Helper()
	c := livetrade.DefaultAlerts()
	c.Webhook = url + secret
	for _, e := range edit {
		e(&c)
	}
	s, err := Open(c, dir, h.say)
	if err != nil {
		t.Fatal(err)
	}
	s.pause, s.longest, s.grace = time.Millisecond, 4*time.Millisecond, 10*time.Second
	return s
}

var day = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

func alert(seq, number int) *livetrade.Alert {
	return &livetrade.Alert{Service: "demo", Seq: uint64(seq), Number: number, Time: time.Now(), Bars: day.AddDate(0, 0, seq), Event: "drawdown", On: true, Value: 0.25, Threshold: 0.2, Action: "nothing is bought"}
}

// some are the alerts of n decisions, two each, and their names.
func some(n int) (list []*livetrade.Alert, ids []string) {
	for seq := 1; seq <= n; seq++ {
		for number := range 2 {
			list, ids = append(list, alert(seq, number)), append(ids, fmt.Sprintf("demo-%d-%d", seq, number))
		}
	}
	return list, ids
}

// TestDelivers posts alerts in order, over errors of the receiver and lost connections.
func TestDelivers(t *testing.T) {
	r := newReceiver(t, func(n int) int {
		return []int{503, 0, 200, 429, 200, 204, 408, 0, 0, 500, 201}[min(n, 10)]
	})
	h := new(heard)
	t.Setenv("ALERTS_TOKEN", "tok-en")
	s := sender(t, t.TempDir(), r.URL, h, func(c *livetrade.Alerts) { c.TokenEnv = "ALERTS_TOKEN" })
	list, ids := some(10)
	for _, a := range list[:10] {
		s.Alert(a, false)
	}
	s.Start()
	for _, a := range list[10:] {
		s.Alert(a, false)
	}
	for range 25 {
		<-r.came // 20 that are taken and 5 that are not; the others have no answer.
		if len(r.ids()) == 20 {
			break
		}
	}
	s.Close()
	if got := r.ids(); !slices.Equal(got, ids) {
		t.Errorf("delivered %v, expected %v", got, ids)
	}
	if c := s.Counts(); c != (Counts{Delivered: 20}) {
		t.Errorf("%+v", c)
	}
	again := "alerts: " + r.URL + " takes them again"
	h.check(t, "alerts: "+r.URL+": status 503; it is tried again", again, "alerts: "+r.URL+": status 429; it is tried again", again, "alerts: "+r.URL+": status 408; it is tried again", again)
	for _, q := range r.taken {
		if q.Method != http.MethodPost || q.URL.Path != secret || q.Header.Get("Authorization") != "Bearer tok-en" || q.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %v", q.Method, q.URL, q.Header)
		}
	}
}

// TestMessage has every key, and numbers that are none as null.
func TestMessage(t *testing.T) {
	at := time.Date(2026, 1, 5, 14, 30, 0, 500, time.FixedZone("", 3600))
	cases := 0
	for _, c := range []struct {
		alert livetrade.Alert
		want  string
	}{
		{livetrade.Alert{Service: "demo", Seq: 7, Number: 2, Time: at, Bars: day, Event: "drift", On: true, Symbol: "rsi", Value: 3.5, Threshold: 3, Action: "cut"},
			`{"v":1,"id":"demo-7-2","service":"demo","seq":7,"time":"2026-01-05T13:30:00.0000005Z","bars":"2026-01-05 00:00:00","event":"drift","on":true,"symbol":"rsi","value":3.5,"threshold":3,"action":"cut","text":"demo: drift of rsi: 3.5, the limit is 3; cut"}`},
		{livetrade.Alert{Service: "demo", Seq: 8, Time: at, Event: "killed", On: true, Action: "hold: <!channel>\n\x1b[31m & more"},
			`{"v":1,"id":"demo-8-0","service":"demo","seq":8,"time":"2026-01-05T13:30:00.0000005Z","event":"killed","on":true,"symbol":"","value":0,"threshold":0,"action":"hold: <!channel>\n\u001b[31m & more","text":"demo: killed; hold: &lt;!channel&gt;  [31m &amp; more"}`},
		{livetrade.Alert{Service: "demo", Seq: 9, Time: at, Event: "policy", Value: math.NaN(), Threshold: math.Inf(1)},
			`{"v":1,"id":"demo-9-0","service":"demo","seq":9,"time":"2026-01-05T13:30:00.0000005Z","event":"policy","on":false,"symbol":"","value":null,"threshold":null,"action":"","text":"demo: policy has ended"}`},
	} {
		text, err := encode(&c.alert)
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Errorf("%s\nexpected %s", a, b)
		}
		cases++
	}
	if cases != 3 {
		t.Errorf("%d cases ran", cases)
	}
}

// TestOutage: while the receiver is away alerts wait, and come in order when it is back.
func TestOutage(t *testing.T) {
	back := make(chan struct{})
	tried := make(chan struct{}, 1000)
	r := newReceiver(t, func(int) int {
		select {
		case <-back:
			return 200
		default:
			tried <- struct{}{}
			return 0
		}
	})
	h := new(heard)
	s := sender(t, t.TempDir(), r.URL, h)
	s.Start()
	list, ids := some(4)
	for _, a := range list {
		s.Alert(a, false)
	}
	for range 5 {
		<-tried
	}
	if c := s.Counts(); c != (Counts{Waiting: 8}) {
		t.Errorf("%+v", c)
	}
	close(back)
	for range list {
		<-r.came
	}
	s.Close()
	if got := r.ids(); !slices.Equal(got, ids) {
		t.Errorf("delivered %v", got)
	}
	h.check(t, "it is tried again", "alerts: "+r.URL+" takes them again")
}

// TestRestarts: what was delivered is not sent again, and what waited is, over ends of every kind.
func TestRestarts(t *testing.T) {
	list, ids := some(5)
	tell := func(s *Sender, from, to, published int) {
		for _, a := range list[from:to] {
			s.Alert(a, a.Seq <= uint64(published))
		}
	}
	ends := 0
	for _, c := range []struct {
		name string
		// end ends the first service, which was told of the first 6 alerts, of which 3 were
		// delivered.
		end func(s *Sender)
		// told is the first alert that the second one sends.
		told int
	}{
		{"orderly", func(s *Sender) { s.Close() }, 0},
		{"after a snapshot, orderly", func(s *Sender) { s.Close() }, 6},
		// A program that was killed has written after each delivery; the journal tells the rest.
		{"killed", func(*Sender) {}, 0},
		{"killed after a snapshot", func(s *Sender) { s.Save() }, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, h := t.TempDir(), new(heard)
			refused := make(chan struct{}, 1000)
			first := newReceiver(t, func(n int) int {
				if n < 3 {
					return 200
				}
				refused <- struct{}{}
				return 503
			})
			s := sender(t, dir, first.URL, h)
			s.pause, s.longest = time.Hour, time.Hour
			s.Start()
			tell(s, 0, 6, 0)
			<-refused
			c.end(s)
			files := t.TempDir()
			text, err := os.ReadFile(filepath.Join(dir, fileName))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(files, fileName), text, 0o600); err != nil {
				t.Fatal(err)
			}
			select {
			case <-s.done:
			default:
				s.Close() // Work that a program that was killed does not do, besides its file.
			}
			if got := first.ids(); !slices.Equal(got, ids[:3]) {
				t.Fatalf("delivered %v", got)
			}
			second := newReceiver(t, always(200))
			again := sender(t, files, second.URL, h)
			tell(again, c.told, 8, 3)
			again.Start()
			tell(again, 8, 10, 3)
			for range 7 {
				<-second.came
			}
			again.Close()
			if got := second.ids(); !slices.Equal(got, ids[3:]) {
				t.Errorf("delivered %v, expected %v", got, ids[3:])
			}
			third := sender(t, files, second.URL, h)
			tell(third, 0, 10, 5)
			if c := third.Counts(); c != (Counts{}) {
				t.Errorf("%+v", c)
			}
			third.Close()
			ends++
		})
	}
	if ends != 4 {
		t.Errorf("%d ends", ends)
	}
	// A webhook that a service gets later is not told what was before.
	r := newReceiver(t, always(200))
	s := sender(t, t.TempDir(), r.URL, new(heard))
	tell(s, 0, 10, 4)
	s.Start()
	<-r.came
	<-r.came
	s.Close()
	if got := r.ids(); !slices.Equal(got, ids[8:]) {
		t.Errorf("delivered %v", got)
	}
	// A file that is none is refused.
	dir := t.TempDir()
	for text, want := range sorted.All(map[string]string{"{": "alerts.json: unexpected end", `{"version":2}`: "alerts.json: its version is 2, this program knows 1"}) {
		if err := os.WriteFile(filepath.Join(dir, fileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(s.config, dir, s.say); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestQueue: where too many wait, the oldest but that which is tried are left out.
func TestQueue(t *testing.T) {
	tried, goOn := make(chan struct{}), make(chan struct{})
	r := newReceiver(t, func(n int) int {
		if n == 0 {
			close(tried)
			<-goOn
		}
		return 200
	})
	h := new(heard)
	s := sender(t, t.TempDir(), r.URL, h, func(c *livetrade.Alerts) { c.Queue = 4 })
	s.Start()
	list, ids := some(6)
	s.Alert(list[0], false)
	<-tried
	for _, a := range list[1:] {
		s.Alert(a, false)
	}
	if c := s.Counts(); c != (Counts{Dropped: 8, Waiting: 4}) {
		t.Errorf("%+v", c)
	}
	close(goOn)
	for range 4 {
		<-r.came
	}
	s.Close()
	if got, want := r.ids(), append(ids[:1:1], ids[9:]...); !slices.Equal(got, want) {
		t.Errorf("delivered %v, expected %v", got, want)
	}
	if c := s.Counts(); c != (Counts{Delivered: 4, Dropped: 8}) {
		t.Errorf("%+v", c)
	}
	h.check(t, "alerts: 4 wait for "+r.URL+": the oldest are left out")
}

// TestCloses ends while a receiver does not answer, and while a pause goes on.
func TestCloses(t *testing.T) {
	ways := 0
	for _, code := range []int{0, 503} {
		dir, tried, ended := t.TempDir(), make(chan struct{}, 10), make(chan struct{})
		r := newReceiver(t, func(int) int {
			tried <- struct{}{}
			if code == 0 {
				<-ended
			}
			return 503
		})
		h := new(heard)
		s := sender(t, dir, r.URL, h)
		s.pause, s.longest, s.grace = time.Hour, time.Hour, time.Millisecond
		s.Start()
		list, _ := some(1)
		for _, a := range list {
			s.Alert(a, false)
		}
		<-tried
		s.Close()
		close(ended)
		again, err := readState(s.path)
		if err != nil || len(again.Waiting) != 2 || again.Told != (mark{1, 1}) || s.Counts() != (Counts{Waiting: 2}) {
			t.Errorf("%+v, %v", again, err)
		}
		ways++
	}
	if ways != 2 {
		t.Errorf("%d ways", ways)
	}
	// One that never began changes nothing.
	dir := t.TempDir()
	s := sender(t, dir, "http://127.0.0.1:1", new(heard))
	s.Alert(alert(1, 0), false)
	s.Close()
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestFails goes on after alerts that are refused or given up, and follows no redirection.
func TestFails(t *testing.T) {
	r := newReceiver(t, func(n int) int { return []int{404, 307, 503, 200}[min(n, 3)] })
	h := new(heard)
	s := sender(t, t.TempDir(), r.URL, h)
	list, ids := some(3)
	list[2].Time = time.Now().Add(-2 * time.Hour) // It is older than it is tried for.
	for _, a := range list {
		s.Alert(a, false)
	}
	s.Start()
	for range 6 {
		<-r.came
	}
	s.Close()
	if got := r.ids(); !slices.Equal(got, ids[3:]) {
		t.Errorf("delivered %v, expected %v", got, ids[3:])
	}
	if c := s.Counts(); c != (Counts{Delivered: 3, Failed: 3}) {
		t.Errorf("%+v", c)
	}
	h.check(t, "alerts: demo-1-0 was not delivered to "+r.URL+": status 404", "alerts: demo-1-1 was not delivered to "+r.URL+": status 307: redirections are not followed",
		"alerts: demo-2-0 was not delivered to "+r.URL+": given up at attempt 1: status 503")
	// A state that cannot be written is reported once and holds nothing back.
	h = new(heard)
	s = sender(t, filepath.Join(t.TempDir(), "none"), r.URL, h)
	s.Start()
	for _, a := range list {
		s.Alert(a, false)
	}
	for range list {
		<-r.came
	}
	s.Close()
	if c := s.Counts(); c != (Counts{Delivered: 6}) {
		t.Errorf("%+v", c)
	}
	h.check(t, "alerts: they may be delivered again or be lost after a restart")
}
