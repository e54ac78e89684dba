package websocket

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// peer is a server whose connections do what a test says, the number n from 0.
type peer struct {
	t   *testing.T
	url string
	*httptest.Server
	connections atomic.Int64
}

func newPeer(t *testing.T, secure bool, serve func(n int64, r *http.Request, conn *websocket.Conn)) *peer {
	t.Helper()
	p := &peer{t: t}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := p.connections.Add(1) - 1
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		serve(n, r, conn)
	}))
	if secure {
		p.StartTLS()
		p.url = "wss" + strings.TrimPrefix(p.URL, "https")
	} else {
		p.Start()
		p.url = "ws" + strings.TrimPrefix(p.URL, "http")
	}
	t.Cleanup(p.Close)
	return p
}

// said are the texts that a source tells.
type said struct {
	mu   sync.Mutex
	list []string
}

func (s *said) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, text)
}

func (s *said) has(part string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.list, func(text string) bool { return strings.Contains(text, part) })
}

// quick is a configuration that does not wait for long.
func quick(url string) SourceConfig {
	c := DefaultSource()
	c.URL, c.Pause, c.MaxPause = url, time.Millisecond, 4*time.Millisecond
	return c
}

// begin starts a source behind some offset, and closes it when the test ends.
func begin(t *testing.T, s *Source, next int64) *said {
	t.Helper()
	var told said
	s.Tell(told.add)
	if err := configs.Validate(s.c); err != nil {
		t.Fatal(err)
	}
	if behind, err := s.Start(t.Context(), map[int32]int64{0: next}); err != nil || behind != nil {
		t.Fatal(behind, err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &told
}

// poll takes so many messages, or all up to the end of the source where n is 0.
func poll(t *testing.T, s *Source, n int) (list []livetrade.Message) {
	t.Helper()
	for n == 0 || len(list) < n {
		messages, err := s.Poll(t.Context())
		list = append(list, messages...)
		if n == 0 && errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// texts are the values of messages, whose offsets go on from next.
func texts(t *testing.T, list []livetrade.Message, next int64) (values []string) {
	t.Helper()
	for i, m := range list {
		if m.Offset != next+int64(i) || m.Partition != 0 || m.Command || m.CaughtUp {
			t.Fatalf("message %d is %+v", i, m)
		}
		values = append(values, string(m.Value))
	}
	return values
}

func send(t *testing.T, conn *websocket.Conn, list ...string) {
	t.Helper()
	for _, text := range list {
		kind := websocket.MessageText
		if strings.HasPrefix(text, "\x08") {
			kind = websocket.MessageBinary
		}
		if err := conn.Write(context.Background(), kind, []byte(text)); err != nil {
			t.Error(err)
		}
	}
}

// bye closes a connection normally; the source has read everything.
func bye(t *testing.T, conn *websocket.Conn) {
	t.Helper()
	if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
}

// TestSource asks for what its configuration says, and numbers messages on from the journal.
func TestSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ONNXRL_TEST_TOKEN", " other ")
	at := time.Date(2026, 3, 4, 16, 0, 0, 5000, time.FixedZone("", 3600))
	ran := 0
	for _, x := range []struct {
		name     string
		edit     func(*SourceConfig)
		decided  time.Time
		token    string
		query    string
		messages []string
	}{
		{"bare", func(*SourceConfig) {}, at, "", "", nil},
		{"token", func(c *SourceConfig) { c.TokenFile = path }, time.Time{}, "Bearer secret", "", nil},
		{"variable", func(c *SourceConfig) { c.TokenVariable = "ONNXRL_TEST_TOKEN" }, time.Time{}, "Bearer other", "", nil},
		{"subscribe", func(c *SourceConfig) { c.Subscribe = []string{"one", "two"} }, time.Time{}, "", "", []string{"one", "two"}},
		{"query", func(c *SourceConfig) { c.Resume.Query = "since" }, at, "", "since=2026-03-04T15%3A00%3A00.000005Z", nil},
		{"message", func(c *SourceConfig) {
			c.Subscribe, c.Resume.Message = []string{"one"}, `{"from":"{time}"}`
		}, at, "", "", []string{"one", `{"from":"2026-03-04T15:00:00.000005Z"}`}},
		{"nothing before", func(c *SourceConfig) {
			c.Resume = Resume{Query: "since", Message: "from {time}"}
		}, time.Time{}, "", "", nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			for _, secure := range []bool{false, true} {
				p := newPeer(t, secure, func(_ int64, r *http.Request, conn *websocket.Conn) {
					if got := r.Header.Get("Authorization"); got != x.token {
						t.Errorf("the token is %q, expected %q", got, x.token)
					}
					if r.URL.RawQuery != x.query {
						t.Errorf("the query is %q, expected %q", r.URL.RawQuery, x.query)
					}
					for _, want := range x.messages {
						if kind, got, err := conn.Read(context.Background()); err != nil || kind != websocket.MessageText || string(got) != want {
							t.Errorf("%q, %v, expected %q", got, err, want)
						}
					}
					send(t, conn, " {a} \n", "\x08 b ", "")
					bye(t, conn)
				})
				c := quick(p.url)
				c.End = true
				x.edit(&c)
				s := NewSource(c)
				if secure {
					s.roots = x509.NewCertPool()
					s.roots.AddCert(p.Certificate())
				}
				s.Decided(x.decided)
				begin(t, s, 7)
				if got := texts(t, poll(t, s, 0), 7); !slices.Equal(got, []string{"{a}", "\x08 b ", ""}) {
					t.Errorf("%q", got)
				}
				if s.Reconnects() != 0 {
					t.Errorf("connected again %d times", s.Reconnects())
				}
				ran++
			}
		})
	}
	if ran != 14 {
		t.Errorf("%d cases", ran)
	}
}

// TestSourceConnectsAgain ends connections in every way there is: what was sent before and what is
// sent after comes, in order, and the reason is reported.
func TestSourceConnectsAgain(t *testing.T) {
	ran := 0
	for _, x := range []struct {
		name string
		edit func(*SourceConfig)
		end  func(t *testing.T, conn *websocket.Conn, ticks chan<- time.Time)
		says string
	}{
		{"cut", nil, func(_ *testing.T, conn *websocket.Conn, _ chan<- time.Time) { _ = conn.CloseNow() }, "EOF"},
		{"normal", nil, func(t *testing.T, conn *websocket.Conn, _ chan<- time.Time) { bye(t, conn) }, "StatusNormalClosure"},
		{"status", func(c *SourceConfig) { c.End = true }, func(_ *testing.T, conn *websocket.Conn, _ chan<- time.Time) {
			_ = conn.Close(websocket.StatusServiceRestart, "at night")
		}, "at night"},
		{"oversize", func(c *SourceConfig) { c.MaxMessage = 100 }, func(t *testing.T, conn *websocket.Conn, _ chan<- time.Time) {
			send(t, conn, strings.Repeat("x", 101))
			_, _, _ = conn.Read(context.Background()) // The source ends it.
		}, "a message is longer than max_message, 100 bytes"},
		{"no answer", func(c *SourceConfig) { c.Ping = time.Minute }, func(t *testing.T, _ *websocket.Conn, ticks chan<- time.Time) {
			tick(t, ticks, 3) // Who reads nothing does not answer.
		}, "the peer has not answered a ping within twice 1m0s"},
		{"no message", func(c *SourceConfig) { c.Ping, c.Silence = 0, time.Hour }, func(t *testing.T, _ *websocket.Conn, ticks chan<- time.Time) {
			tick(t, ticks, 2)
		}, "no message has come for 1h0m0s"},
	} {
		t.Run(x.name, func(t *testing.T) {
			ticks, got := make(chan time.Time), make(chan int64)
			p := newPeer(t, false, func(n int64, _ *http.Request, conn *websocket.Conn) {
				send(t, conn, fmt.Sprintf("a%d", n), fmt.Sprintf("b%d", n))
				if n == 3 {
					_, _, _ = conn.Read(context.Background()) // It is pinged, and told when the source ends.
					return
				}
				<-got
				x.end(t, conn, ticks)
			})
			c := quick(p.url)
			if x.edit != nil {
				x.edit(&c)
			}
			s := NewSource(c)
			s.ticker = func(time.Duration) *time.Ticker { return &time.Ticker{C: ticks} }
			told := begin(t, s, 0)
			for n := range int64(4) {
				if list := texts(t, poll(t, s, 2), 2*n); !slices.Equal(list, []string{fmt.Sprintf("a%d", n), fmt.Sprintf("b%d", n)}) {
					t.Errorf("%q", list)
				}
				if n < 3 {
					got <- n
				}
			}
			if s.Reconnects() != 3 || !told.has(x.says) || !told.has("connected again") {
				t.Errorf("%d, %q", s.Reconnects(), told.list)
			}
			ran++
		})
	}
	if ran != 6 {
		t.Errorf("%d cases", ran)
	}
}

// tick lets so much time pass.
func tick(t *testing.T, ticks chan<- time.Time, n int) {
	t.Helper()
	for range n {
		select {
		case ticks <- time.Time{}:
		case <-t.Context().Done():
		}
	}
}

// TestSourceAndGarbage: bytes that are no frame end a connection, a text that is no answer is
// asked for again, and a server that stays away is reported once.
func TestSourceAndGarbage(t *testing.T) {
	var n atomic.Int64
	key := func(w http.ResponseWriter, r *http.Request, bytes string) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, bytes)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch i := n.Add(1); {
		case i == 1:
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			send(t, conn, "first")
			_ = conn.CloseNow()
		case i <= 4:
			http.Error(w, "not now", http.StatusServiceUnavailable)
		case i == 5:
			http.Error(w, "who are you", http.StatusUnauthorized)
		case i == 6:
			key(w, r, "hello\r\n\r\n")
		case i == 7:
			key(w, r, "")
		case i == 8:
			// A frame with an operation that there is none of.
			raw := &rawWriter{ResponseWriter: w}
			conn, err := websocket.Accept(raw, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			send(t, conn, "second")
			_, _ = raw.conn.Write([]byte{0x8f, 0x01, 0x00})
			_, _, _ = conn.Read(context.Background())
			_ = conn.CloseNow()
		default:
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			send(t, conn, "third")
			bye(t, conn)
		}
	}))
	defer s.Close()
	c := quick("ws" + strings.TrimPrefix(s.URL, "http") + "/?key=secret")
	c.End = true
	source := NewSource(c)
	told := begin(t, source, 0)
	if got := texts(t, poll(t, source, 0), 0); !slices.Equal(got, []string{"first", "second", "third"}) {
		t.Errorf("%q", got)
	}
	if source.Reconnects() != 2 {
		t.Errorf("connected again %d times", source.Reconnects())
	}
	for _, want := range []string{"EOF", "503 Service Unavailable", "401 Unauthorized", "malformed HTTP", "opcode"} {
		if !told.has(want) {
			t.Errorf("%q says nothing of %q", told.list, want)
		}
	}
	if n := strings.Count(strings.Join(told.list, "\n"), "503 Service"); n != 1 || told.has("secret") {
		t.Errorf("%q", told.list)
	}
}

// rawWriter keeps the connection below.
type rawWriter struct {
	http.ResponseWriter
	conn io.Writer
}

func (w *rawWriter) Hijack() (c net.Conn, rw *bufio.ReadWriter, err error) {
	c, rw, err = http.NewResponseController(w.ResponseWriter).Hijack()
	w.conn = c
	return c, rw, err
}

// TestSourceRefused: what will not be answered another time is an error, without what is secret.
func TestSourceRefused(t *testing.T) {
	t.Setenv("ONNXRL_TEST_TOKEN", "secret")
	other := newPeer(t, false, func(int64, *http.Request, *websocket.Conn) { t.Error("it went on to another server") })
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/page":
			_, _ = io.WriteString(w, "hello")
		default:
			http.Error(w, "no", http.StatusUnauthorized)
		}
	}))
	defer plain.Close()
	secure := newPeer(t, true, func(int64, *http.Request, *websocket.Conn) { t.Error("the certificate is nobody's") })
	secure.Config.ErrorLog = nil
	ran := 0
	for _, x := range []struct{ url, want string }{
		{plain.URL + "/token", "/token: the peer answers 401 Unauthorized"},
		{plain.URL + "/redirect", "the peer answers 302 Found"},
		{plain.URL + "/page", "the peer answers 200 OK"},
		{secure.URL, "certificate"},
	} {
		c := quick("ws" + strings.TrimPrefix(x.url, "http") + "?key=secret")
		c.TokenVariable = "ONNXRL_TEST_TOKEN"
		s := NewSource(c)
		told := begin(t, s, 0)
		list, err := s.Poll(t.Context())
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "secret") || len(list) != 0 || told.has("secret") {
			t.Errorf("%v, expected %q", err, x.want)
		}
		ran++
	}
	if ran != 4 {
		t.Errorf("%d cases", ran)
	}
}

// TestSourceWaits: who takes nothing makes the peer wait, which does not look as if it had gone.
func TestSourceWaits(t *testing.T) {
	const count = 40_000
	p := newPeer(t, false, func(_ int64, _ *http.Request, conn *websocket.Conn) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _, _ = conn.Read(context.Background()) // It answers pings, and the end.
		}()
		for i := range count {
			if err := conn.Write(context.Background(), websocket.MessageText, fmt.Appendf(nil, "%d%s", i, strings.Repeat(" ", 1000)+"x")); err != nil {
				t.Error(err)
				return
			}
		}
		_ = conn.Close(websocket.StatusNormalClosure, "")
		<-done
	})
	c := quick(p.url)
	c.End, c.MaxMessage, c.Buffer = true, 2000, 100_000
	s, ticks := NewSource(c), make(chan time.Time)
	s.ticker = func(time.Duration) *time.Ticker { return &time.Ticker{C: ticks} }
	told := begin(t, s, 0)
	for {
		s.queue.mu.Lock()
		bytes, stalled, changed := s.queue.bytes, s.queue.stalled, s.queue.changed
		s.queue.mu.Unlock()
		if bytes > c.Buffer {
			t.Fatalf("%d bytes wait, of %d", bytes, c.Buffer)
		}
		if stalled {
			break
		}
		<-changed
	}
	tick(t, ticks, 10)
	s.Pause([]int32{0})
	ctx, cancel := context.WithCancel(t.Context())
	paused := make(chan error)
	go func() {
		_, err := s.Poll(ctx)
		paused <- err
	}()
	cancel()
	if err := <-paused; !errors.Is(err, context.Canceled) {
		t.Errorf("a source that pauses gives %v", err)
	}
	s.Pause(nil)
	for i, m := range poll(t, s, count) {
		if got, _, _ := strings.Cut(string(m.Value), " "); got != fmt.Sprint(i) || m.Offset != int64(i) {
			t.Fatalf("message %d is %q at %d: %q", i, got, m.Offset, told.list)
		}
	}
	if s.Reconnects() != 0 || len(told.list) != 0 {
		t.Errorf("connected again %d times: %q", s.Reconnects(), told.list)
	}
}

// TestSourceCloses says good-bye to who answers, and leaves who does not.
func TestSourceCloses(t *testing.T) {
	status := make(chan websocket.StatusCode, 1)
	p := newPeer(t, false, func(_ int64, _ *http.Request, conn *websocket.Conn) {
		send(t, conn, "a")
		_, _, err := conn.Read(context.Background())
		status <- websocket.CloseStatus(err)
	})
	s := NewSource(quick(p.url))
	begin(t, s, 0)
	poll(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-status; got != websocket.StatusNormalClosure {
		t.Errorf("the peer was told %v", got)
	}
	if _, err := s.Poll(t.Context()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	// One that neither reads nor answers.
	end := make(chan struct{})
	deaf := newPeer(t, false, func(_ int64, _ *http.Request, conn *websocket.Conn) {
		send(t, conn, "a")
		<-end
	})
	defer close(end)
	s = NewSource(quick(deaf.url))
	begin(t, s, 0)
	poll(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// One that nobody listens at.
	nobody := httptest.NewServer(nil)
	nobody.Close()
	s = NewSource(quick("ws" + strings.TrimPrefix(nobody.URL, "http")))
	told := begin(t, s, 0)
	for !told.has("connection refused") {
		time.Sleep(time.Millisecond) // There is nothing else to wait for.
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := NewSource(quick(nobody.URL)).Close(); err != nil {
		t.Error(err)
	}
}

func TestSpread(t *testing.T) {
	n := 0
	for _, pause := range []time.Duration{1, 2, time.Second, time.Hour} {
		for _, u := range []float64{0, 0.25, 0.999999} {
			if got := spread(pause, u); got < pause/2 || got > pause {
				t.Errorf("%v of %v is %v", u, pause, got)
			}
			n++
		}
	}
	if spread(8*time.Second, 0.5) != 6*time.Second || n != 12 {
		t.Errorf("%v, %d cases", spread(8*time.Second, 0.5), n)
	}
}

func TestSourceConfig(t *testing.T) {
	t.Parallel()
	ran := 0
	for _, x := range []struct {
		edit func(*SourceConfig)
		want string
	}{
		{func(*SourceConfig) {}, ""},
		{func(c *SourceConfig) { c.URL = "ws://127.0.0.1:9/x?a=b" }, ""},
		{func(c *SourceConfig) { c.URL = "ws://[::1]:9" }, ""},
		{func(c *SourceConfig) { c.URL = "" }, "url: expected an address such as"},
		{func(c *SourceConfig) { c.URL = "ws://example.com/secret" }, "url: example.com is not this machine: expected wss"},
		{func(c *SourceConfig) { c.URL = "https://example.com" }, `url: the scheme is "https", expected wss`},
		{func(c *SourceConfig) { c.URL = "wss://me:secret@example.com" }, "url: it has a user"},
		{func(c *SourceConfig) { c.TokenFile, c.TokenVariable = "a", "b" }, "token_variable: there is a token_file as well"},
		{func(c *SourceConfig) { c.Subscribe = []string{"a", ""} }, "subscribe[1]: it is empty"},
		{func(c *SourceConfig) { c.Resume.Message = "from" }, "resume.message: expected a text with {time} in it"},
		{func(c *SourceConfig) { c.Ping = -1 }, "ping: "},
		{func(c *SourceConfig) { c.Silence = -1 }, "silence: "},
		{func(c *SourceConfig) { c.MaxMessage = 0 }, "max_message: 0, expected 1 to 2³⁰ bytes"},
		{func(c *SourceConfig) { c.Buffer = 10 }, "buffer: 10, expected at least max_message, 65536"},
		{func(c *SourceConfig) { c.Pause = 0 }, "pause: 0s, expected more than 0"},
		{func(c *SourceConfig) { c.MaxPause = 1 }, "max_pause: 1ns, expected at least pause, 1s"},
	} {
		c := DefaultSource()
		c.URL = "wss://example.com/bars"
		x.edit(&c)
		err := c.Validate()
		if (err == nil) != (x.want == "") || err != nil && (!strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%v, expected %q", err, x.want)
		}
		ran++
	}
	if ran != 16 {
		t.Errorf("%d cases", ran)
	}
	dir := t.TempDir()
	for name, text := range sorted.All(map[string]string{"empty": " \n", "lines": "a\nb"}) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct{ file, variable, want string }{
		{filepath.Join(dir, "none"), "", "token_file: open "},
		{filepath.Join(dir, "empty"), "", "empty: there is no token in it"},
		{filepath.Join(dir, "lines"), "", "lines: there are 2 tokens in it, expected one"},
		{"", "ONNXRL_TEST_NO_TOKEN", "token_variable: $ONNXRL_TEST_NO_TOKEN: there are 0 tokens in it"},
	} {
		c := quick("ws://localhost:1")
		c.TokenFile, c.TokenVariable = x.file, x.variable
		if _, err := NewSource(c).Start(t.Context(), nil); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v, expected %q", err, x.want)
		}
		ran++
	}
	if ran != 20 {
		t.Errorf("%d cases", ran)
	}
}
