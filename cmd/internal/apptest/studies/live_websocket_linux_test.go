package studies

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestLiveWebsocket trades the demo's bars from a peer that breaks connections off and sends bars
// again from where it is asked to, while the service is killed: what is published is byte for byte
// what a file of the bars leads to.
func TestLiveWebsocket(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	liveWebsocket(t, 1)
}

// TestLiveWebsocketOften kills more often.
func TestLiveWebsocketOften(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	liveWebsocket(t, longtest.Times(t, liveKills))
}

func liveWebsocket(t *testing.T, kills int) {
	t.Helper()
	run, bars := liveTrader(t)
	dir := t.TempDir()
	document := func(name, source string) string {
		return apptest.Write(t, "live.yaml", "name: demo\npolicy: "+run+"\nfrom: "+liveFrom+"\nsnapshot: 100\nstate: "+filepath.Join(dir, name+"-state")+"\nsource: "+source+"\nsink: {kind: file, path: "+filepath.Join(dir, name+"-out")+"}\n")
	}
	whole := document("whole", "{kind: file, path: "+bars+"}")
	began := time.Now()
	apptest.Succeed(t, "live", whole, "-q", "--engine", portable.Name)
	k := killing{t: t, took: time.Since(began), moments: rng.New(3).Stream()}
	want := liveRecords(t, filepath.Join(dir, "whole-out"))

	lines := strings.Split(strings.TrimSpace(apptest.ReadText(t, bars)), "\n")
	times := make([]string, len(lines))
	for i, line := range lines {
		times[i] = apptest.Decoded[struct{ Time string }](t, line).Time
	}
	cuts := make([]int, 1000)
	moments := rng.New(7).Stream()
	for i := range cuts {
		cuts[i] = 1 + moments.IntN(4000)
	}
	var connections, resumed, cut atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		n := int(connections.Add(1)-1) % len(cuts)
		from := 0
		if since := r.URL.Query().Get("since"); since != "" {
			resumed.Add(1)
			for from < len(times) && times[from] < since {
				from++
			}
		}
		for _, line := range lines[from:] {
			if cuts[n]--; cuts[n] == 0 {
				cut.Add(1)
				return
			}
			if conn.Write(context.Background(), websocket.MessageText, []byte(line)) != nil {
				return // The service was killed.
			}
		}
		_ = conn.Close(websocket.StatusNormalClosure, "") // It may be killed now.
	}))
	defer s.Close()
	doc := document("websocket", "{kind: websocket, url: \"ws"+strings.TrimPrefix(s.URL, "http")+"/bars\", resume: {query: since}, pause: 1ms, end: true}")
	sessions := 0
	for k.left = kills; k.left > 0; sessions++ {
		for _, part := range []string{"-state", "-out"} {
			if err := os.RemoveAll(filepath.Join(dir, "websocket"+part)); err != nil {
				t.Fatal(err)
			}
		}
		k.run(func() []string { return []string{"live", doc, "-q", "--engine", portable.Name} })
		if liveRecords(t, filepath.Join(dir, "websocket-out")) != want {
			t.Fatal("it publishes something else than from a file")
		}
		apptest.Says(t, apptest.Succeed(t, "live", doc, "--replay", "--engine", portable.Name), "byte for byte")
	}
	t.Logf("%d services, %d connections, of which %d were broken off and %d went on from a time", sessions, connections.Load(), cut.Load(), resumed.Load())
	if cut.Load() == 0 || resumed.Load() == 0 {
		t.Errorf("%d connections were broken off, %d went on", cut.Load(), resumed.Load())
	}
}

// TestLiveFeedByWebsocket sends bars from one program to the other, in both encodings.
func TestLiveFeedByWebsocket(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	run, bars := liveTrader(t)
	dir := t.TempDir()
	document := func(name, source string) string {
		return apptest.Write(t, "live.yaml", "name: demo\npolicy: "+run+"\nfrom: "+liveFrom+"\nstate: "+filepath.Join(dir, name+"-state")+"\nsource: "+source+"\nsink: {kind: file, path: "+filepath.Join(dir, name+"-out")+"}\n")
	}
	apptest.Succeed(t, "live", document("file", "{kind: file, path: "+bars+"}"), "-q", "--engine", portable.Name)
	want := liveRecords(t, filepath.Join(dir, "file-out"))
	ran := 0
	for _, encoding := range []string{"json", "protobuf"} {
		feed := apptest.Program(t, "data", "feed", run, "-q", "--bars", "shipped:market/us5_daily.parquet", "--to", "ws://127.0.0.1:0/bars", "--encoding", encoding, "--json")
		var out strings.Builder
		feed.Stdout = &out
		pipe, err := feed.StderrPipe()
		if err == nil {
			err = feed.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(pipe)
		at := regexp.MustCompile(`bars on (ws://127\.0\.0\.1:\d+/bars), for whoever connects`)
		url := ""
		for url == "" {
			line, err := said.ReadString('\n')
			if m := at.FindStringSubmatch(line); m != nil {
				url = m[1]
			} else if err != nil {
				t.Fatal(err)
			}
		}
		s := apptest.Decoded[struct {
			Reconnects int
			Bars       struct{ Messages int }
		}](t, apptest.Succeed(t, "live", document(encoding, "{kind: websocket, url: \""+url+"\", end: true}"), "-q", "--json", "--engine", portable.Name))
		if _, err := said.ReadString(0); err == nil {
			t.Error("it goes on")
		}
		if err := feed.Wait(); err != nil {
			t.Fatal(err)
		}
		if liveRecords(t, filepath.Join(dir, encoding+"-out")) != want || s.Bars.Messages != 12154 || s.Reconnects != 0 {
			t.Errorf("%s: %+v", encoding, s)
		}
		apptest.Says(t, out.String(), `"messages": 12154`, url)
		ran++
	}
	if ran != 2 {
		t.Errorf("%d encodings", ran)
	}
	apptest.Refuse(t, []string{"data", "feed", run, "--bars", "shipped:market/us5_daily.parquet", "--to", "ws://example.com:1/bars"}, "--to: websocket: example.com:1 is not this machine")
	apptest.Refuse(t, []string{"data", "feed", run, "--bars", "shipped:market/us5_daily.parquet", "--to", "wss://localhost:1/bars"}, "--to: websocket: expected ws")
	apptest.Refuse(t, []string{"live", document("none", "{kind: file, path: x}"), "--engine", portable.Name, "--set", "source={kind: websocket, url: \"ws://example.com/bars\"}"}, "source.url: example.com is not this machine: expected wss")
}
