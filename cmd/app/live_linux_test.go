package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade/board"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// liveDemo is a service under test, whose source is a file that grows.
type liveDemo struct {
	t       *testing.T
	dir     string
	doc     string
	lines   []string // messages that are to come
	written int
	cmd     *exec.Cmd
	out     strings.Builder
	said    strings.Builder // all that was read of what is said
	url     string
	stderr  *bufio.Reader
	events  *bufio.Reader
}

// shortLive are the flags of a short training of the demo whose agent may trade live.
var shortLive = slices.Concat(shortDemo, []string{"--set", "env.mask=market", "--set", "wrappers.normalize.reward=false"})

func newLiveDemo(t *testing.T, train ...string) *liveDemo {
	t.Helper()
	run := apptest.Trained(t, "demo", slices.Concat(shortLive, train)...)
	dir := filepath.Dir(run)
	apptest.Succeed(t, "data", "feed", run, "-q", "--bars", "shipped:market/us5_daily.parquet", "--to", filepath.Join(dir, "all.jsonl"))
	d := &liveDemo{t: t, dir: dir, lines: strings.SplitAfter(apptest.ReadText(t, dir, "all.jsonl"), "\n")}
	d.doc = apptest.Write(t, "live.yaml", fmt.Sprintf(`name: demo
policy: %s
state: %s
from: 2012-06-01
kill_file: %s
http: {address: "127.0.0.1:0"}
health: "127.0.0.1:0"
source: {kind: file, path: %s, follow: true}
sink: {kind: file, path: %s}
`, run, filepath.Join(dir, "state"), filepath.Join(dir, "stop"), filepath.Join(dir, "bars.jsonl"), filepath.Join(dir, "out")))
	return d
}

// start starts the service and listens to its events.
func (d *liveDemo) start() {
	d.t.Helper()
	d.out.Reset()
	d.cmd = apptest.Program(d.t, "live", d.doc, "--engine", portable.Name, "--json")
	d.cmd.Stdout = &d.out
	pipe, err := d.cmd.StderrPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.stderr = bufio.NewReader(io.TeeReader(pipe, &d.said))
	health := d.says(`health on http://([^/]*)/`)[1]
	at := d.says(`state on (http://[^/]*)/`)
	d.url = at[1]
	d.says("trades with")
	answersProbes(d.t, health, "/livez", 200, "/readyz", 200, "/metrics", 404)
	ctx, cancel := context.WithCancel(d.t.Context())
	d.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"/live/events", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = resp.Body.Close() }) // It is cut off when the service ends.
	d.events = bufio.NewReader(resp.Body)
}

// says reads what is said until a line matches.
func (d *liveDemo) says(pattern string) []string {
	d.t.Helper()
	for {
		line, err := d.stderr.ReadString('\n')
		if m := regexp.MustCompile(pattern).FindStringSubmatch(line); m != nil {
			return m
		}
		if err != nil {
			d.t.Fatalf("nothing says %q: %v", pattern, err)
		}
	}
}

// until writes the messages before a date.
func (d *liveDemo) until(date string) {
	d.t.Helper()
	n := d.written
	for n < len(d.lines) && !(strings.Contains(d.lines[n], `"time":"`) && d.lines[n][strings.Index(d.lines[n], `"time":"`)+8:][:10] >= date) {
		n++
	}
	d.write(strings.Join(d.lines[d.written:n], ""))
	d.written = n
}

func (d *liveDemo) write(text string) {
	d.t.Helper()
	f, err := os.OpenFile(filepath.Join(d.dir, "bars.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		d.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		d.t.Fatal(err)
	}
}

// decision waits for that of a date.
func (d *liveDemo) decision(date string) board.Event {
	d.t.Helper()
	return d.event("decision of "+date, func(e *board.Event) bool { return strings.HasPrefix(e.Time, date) && e.Policy != "" })
}

// event waits for one.
func (d *liveDemo) event(what string, is func(*board.Event) bool) board.Event {
	d.t.Helper()
	for {
		line, err := d.events.ReadString('\n')
		if err != nil {
			d.t.Fatalf("no %s: %v", what, err)
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			if e := apptest.Decode[board.Event](d.t, text); is(&e) {
				return e
			}
		}
	}
}

// limit waits until the service reports that a limit holds, or does no more, beside all decisions.
func (d *liveDemo) limit(name string, on bool) {
	d.t.Helper()
	e := d.event("event "+name, func(e *board.Event) bool { return len(e.Risk.Events) > 0 && e.Policy == "" })
	if x := e.Risk.Events[0]; len(e.Risk.Events) != 1 || x.Event != name || x.On != on || len(e.Positions) == 0 {
		d.t.Errorf("%+v, expected %s: %v", e, name, on)
	}
}

func (d *liveDemo) get(path string) string { return d.request(http.MethodGet, path, "") }

func (d *liveDemo) request(method, path, body string) string {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		d.t.Fatalf("%s: %s %v\n%s", path, resp.Status, err, text)
	}
	return string(text)
}

// killed waits until the kill switch is on or off.
func (d *liveDemo) killed(on bool) board.State {
	d.t.Helper()
	for {
		if s := apptest.Decode[board.State](d.t, d.get("/live/state")); s.Killed == on {
			return s
		}
		time.Sleep(10 * time.Millisecond) // There is nothing else to wait for.
	}
}

// stop ends the service by SIGTERM.
func (d *liveDemo) stop() liveSummary {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	rest, err := io.ReadAll(d.stderr)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.cmd.Wait(); err != nil {
		d.t.Fatalf("%v\n%s", err, rest)
	}
	return apptest.Decode[liveSummary](d.t, d.out.String())
}

// TestLiveService watches a service, kills it by every switch there is, and starts it again.
func TestLiveService(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	d := newLiveDemo(t)
	d.start()
	d.until("2012-07-03")
	e := d.decision("2012-07-02")
	if e.Seq != 22 || len(e.Positions) != 5 || len(e.Orders) != 5 || e.Limited != "" {
		t.Errorf("%+v", e)
	}
	s := apptest.Decode[board.State](t, d.get("/live/state"))
	if s.Seq != 22 || s.Killed || s.Counters.Messages != int64(d.written) || s.Counters.Times == 0 || s.Last == nil || s.Last.Value != e.Value || s.Name != "demo" || !strings.HasPrefix(s.Policy, "sha256:") {
		t.Errorf("%+v", s)
	}
	d.risk(e)
	apptest.Says(t, d.get("/metrics"), fmt.Sprintf("onnxrl_portfolio_value %v\n", e.Value), fmt.Sprintf("onnxrl_portfolio_drawdown %v\n", *e.Risk.Drawdown), fmt.Sprintf("onnxrl_portfolio_cvar %v\n", *e.Risk.CVaR), fmt.Sprintf("onnxrl_portfolio_cvar95 %v\n", *e.Risk.CVaR95), "onnxrl_killed 0\n", fmt.Sprintf("onnxrl_bars_total{rule=\"used\"} %d\n", d.written), "onnxrl_decision_seconds_count 22\n", "onnxrl_data_staleness_seconds ")

	// A message that cannot be read is kept.
	d.write("{\"v\":1,\"symbol\":\"IBM\"}\nnonsense\n")
	d.says("decode bar: time: it is missing")
	d.says("decode bar: ")
	if dead := apptest.ReadText(t, d.dir, "out", "dead.jsonl"); strings.Count(dead, "\n") != 2 {
		t.Errorf("dead.jsonl is %s", dead)
	}

	// Each switch holds, and is taken back.
	switches := 0
	for _, x := range []struct {
		reason, first, second string
		on, off               func()
	}{
		{"a test", "2012-07-03", "2012-07-05", func() { d.request(http.MethodPost, "/live/kill", "a test") }, func() { d.request(http.MethodPost, "/live/resume", "") }},
		{"file " + filepath.Join(d.dir, "stop"), "2012-07-06", "2012-07-09", func() { apptest.Copy(t, d.doc, filepath.Join(d.dir, "stop")) }, func() {
			if err := os.Remove(filepath.Join(d.dir, "stop")); err != nil {
				t.Fatal(err)
			}
		}},
		{"signal", "2012-07-10", "2012-07-11", func() { d.signal(syscall.SIGUSR1) }, func() { d.signal(syscall.SIGUSR2) }},
	} {
		x.on()
		if s := d.killed(true); s.Reason != x.reason {
			t.Errorf("%+v, expected the reason %q", s, x.reason)
		}
		d.limit("killed", true)
		d.until(x.first + "x")
		if e := d.decision(x.first); e.Limited != "hold" {
			t.Errorf("killed by %s: %+v", x.reason, e)
		}
		x.off()
		d.killed(false)
		d.limit("killed", false)
		d.until(x.second + "x")
		if e := d.decision(x.second); e.Limited != "" || len(e.Risk.Events) != 0 {
			t.Errorf("after %s: %+v", x.reason, e)
		}
		switches++
	}
	if switches != 3 {
		t.Errorf("%d switches", switches)
	}
	orders := apptest.ReadText(t, d.dir, "out", "orders.jsonl")
	for line := range strings.Lines(orders) {
		if o := apptest.Decoded[struct{ Time, Order string }](t, line); (strings.HasPrefix(o.Time, "2012-07-03") || strings.HasPrefix(o.Time, "2012-07-06") || strings.HasPrefix(o.Time, "2012-07-10")) && o.Order != "hold" {
			t.Errorf("an order while it is killed: %s", line)
		}
	}

	// It stays on over a stop, and so does all else.
	d.request(http.MethodPost, "/live/kill", "over night")
	d.killed(true)
	sum := d.stop()
	if !sum.Killed || sum.Decisions != 28 || sum.Bars.Malformed != 2 {
		t.Errorf("%+v", sum)
	}
	d.start()
	if s := d.killed(true); s.Reason != "over night" || s.Decisions != 28 || s.Seq != 35 {
		t.Errorf("after a stop: %+v", s)
	}
	d.until("2012-07-12x")
	if e := d.decision("2012-07-12"); e.Limited != "hold" || e.Seq != 36 {
		t.Errorf("%+v", e)
	}
	d.request(http.MethodPost, "/live/resume", "")
	d.killed(false)
	d.until("9")
	d.risk(d.decision("2013-03-01"))
	sum = d.stop()
	apptest.Says(t, apptest.Succeed(t, "live", d.doc, "--replay", "--engine", portable.Name), fmt.Sprintf("lead to %d decisions", sum.Decisions))
}

// risk compares the drawdown and the CVaR of an event with the values that were published up to it.
func (d *liveDemo) risk(e board.Event) {
	d.t.Helper()
	var values []float64
	day := ""
	for line := range strings.Lines(apptest.ReadText(d.t, d.dir, "out", "positions.jsonl")) {
		p := apptest.Decoded[struct {
			Seq   uint64
			Time  string
			Value float64
		}](d.t, line)
		if p.Seq > e.Seq {
			break
		}
		if p.Time != day {
			day, values = p.Time, append(values, 0)
		}
		values[len(values)-1] = p.Value
	}
	checkLosses(d.t, e.Time, values, e.Risk.Drawdown, e.Risk.CVaR, e.Risk.CVaR95)
}

func (d *liveDemo) signal(s syscall.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

// TestLiveRefuses: what cannot be is said before anything begins.
func TestLiveRefuses(t *testing.T) {
	d := newLiveDemo(t)
	n := 0
	for _, x := range []struct{ set, want string }{
		{"name=a b", `name: "a b": expected letters, digits, _, - and .`},
		{"source.kind=kafak", `source.kind: unknown kind "kafak"; did you mean "kafka"?`},
		{"source={kind: kafka}", "source.brokers: required"},
		{"sink={kind: file}", "sink.path: required"},
		{"bars.revised=newest", `bars.revised: `},
		{"risk={stale: {then: kill}}", "risk.stale.after: is missing"},
		{"risk={orders: {per_minute: 5, then: panic}}", `risk.orders.then: `},
		{"http.address=0.0.0.0:0", "everyone who reaches the address could use the kill switch"},
		{"http={token_file: x}", "http.address: is missing"},
		{"policy=nothing", "nothing"},
		{"from=tomorrow", "from: "},
		{"snapshot=0", "snapshot: 0, expected a number of batches"},
	} {
		apptest.Refuse(t, []string{"live", d.doc, "--engine", portable.Name, "-q", "--set", x.set}, x.want)
		n++
	}
	if n != 12 {
		t.Errorf("%d cases", n)
	}
	apptest.Refuse(t, []string{"live", d.doc, "--engine", portable.Name, "--replay"}, "fills.jsonl")
	apptest.Refuse(t, []string{"data", "feed", filepath.Join(d.dir, "run"), "--bars", "shipped:market/us5_daily.parquet", "--to", "kafka://x"}, "expected kafka://HOST:PORT/TOPIC")
	apptest.Refuse(t, []string{"data", "feed", filepath.Join(d.dir, "run"), "--bars", "shipped:market/us5_daily.parquet", "--to", "x", "--encoding", "xml"}, "expected json or protobuf")
}

// TestLiveSwaps moves the alias of a policy while it trades: the version that it names then decides
// beside, over a kill, and trades after so many decisions. One that cannot trade is reported and
// left.
func TestLiveSwaps(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	d := newLiveDemo(t)
	store := filepath.Join(d.dir, "store")
	digests := map[string]string{}
	for _, x := range [][2]string{{"one", "seed=4"}, {"two", "seed=9"}, {"other", "env.window=7"}} {
		apptest.Succeed(t, slices.Concat([]string{"train", "demo", "-q", "--store", store, "--out", filepath.Join(d.dir, x[0])}, shortLive, []string{"--set", x[1]})...)
		digests[x[0]] = apptest.Decoded[struct{ Digest string }](t, apptest.Succeed(t, "models", "show", "--json", store+"//demo:"+x[0])).Digest
	}
	name := func(version string) { apptest.Succeed(t, "models", "alias", "--store", store, "demo:"+version, "prod") }
	name("one")
	text := apptest.ReadText(t, d.doc)
	d.doc = apptest.Write(t, "swaps.yaml", regexp.MustCompile(`(?m)^policy: .*$`).ReplaceAllString(text, "policy: "+store+"//demo:prod\nswap: {every: 50ms, shadow: 3}"))
	d.start()
	d.until("2012-07-02x")
	if e := d.decision("2012-07-02"); e.Policy != digests["one"] || e.Shadow != nil {
		t.Fatalf("%+v", e)
	}
	name("other")
	d.says("its features, with their window and their scales, are others")
	name("two")
	shadowed := func() {
		for apptest.Decode[board.State](t, d.get("/live/state")).Shadow != digests["two"] {
			time.Sleep(10 * time.Millisecond) // There is nothing else to wait for.
		}
	}
	shadowed()
	d.until("2012-07-03x")
	if e := d.decision("2012-07-03"); e.Policy != digests["one"] || e.Shadow == nil || e.Shadow.Policy != digests["two"] {
		t.Errorf("%+v", e)
	}
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait() // It was killed.
	d.start()
	shadowed()
	days := 0
	for _, x := range []struct{ date, policy, event string }{{"2012-07-05", "one", ""}, {"2012-07-06", "one", "policy"}, {"2012-07-09", "two", ""}} {
		d.until(x.date + "x")
		e := d.decision(x.date)
		if e.Policy != digests[x.policy] || (e.Shadow == nil) != (x.policy == "two") || (len(e.Risk.Events) == 1) != (x.event != "") {
			t.Errorf("%s: %+v", x.date, e)
		}
		if x.event != "" && (e.Risk.Events[0].Event != x.event || e.Risk.Events[0].Action != "trades with "+digests["two"]+" instead of "+digests["one"]) {
			t.Errorf("%s: %+v", x.date, e.Risk.Events)
		}
		days++
	}
	if s := d.stop(); s.Policy != digests["two"] || days != 3 {
		t.Errorf("%+v", s)
	}
	// The alias has come back: the one that trades is that of the snapshot until it has decided
	// beside.
	name("one")
	d.start()
	for apptest.Decode[board.State](t, d.get("/live/state")).Shadow != digests["one"] {
		time.Sleep(10 * time.Millisecond)
	}
	d.until("2012-07-12x")
	if e := d.decision("2012-07-12"); e.Policy != digests["two"] {
		t.Errorf("%+v", e)
	}
	d.stop()
	apptest.Says(t, apptest.Succeed(t, "live", d.doc, "--replay", "--engine", portable.Name), "byte for byte")
}
