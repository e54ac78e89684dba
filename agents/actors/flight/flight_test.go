package flight_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/agents/actors/flight"
	"github.com/onnxrl/onnxrl/runtime/flightrpc"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// echo is an actor that says what it hears, until it hears its end.
type echo struct {
	*io.PipeReader
	w *io.PipeWriter
}

func (e echo) Close() error {
	e.PipeReader.Close()
	return e.w.Close()
}

func (e echo) Ending() string { return "it has ended itself" }
func (e echo) Where() string  { return "" }

// end is what has an echo end.
const end = "end"

func (e echo) Write(b []byte) (int, error) {
	if string(b) == end {
		return len(b), e.w.Close()
	}
	return e.w.Write(b)
}

// machine is a server of actors that echo.
type machine struct {
	url  string
	stop func()

	mu sync.Mutex
	// began are the numbers of the actors that began, in order.
	began []int
}

func (m *machine) numbers() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint(m.began)
}

// start starts a server at an address.
func start(t *testing.T, listen string, slots int, h flight.Hello) *machine {
	t.Helper()
	m := &machine{}
	s, err := flight.NewServer(flight.Options{Hello: h, Slots: slots, Launch: func(_ context.Context, index int) (actors.Conn, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if index == 99 {
			return nil, errors.New("there is no program")
		}
		m.began = append(m.began, index)
		r, w := io.Pipe()
		return echo{r, w}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	g := flightrpc.NewServer(s, nil, nil)
	go g.Serve(l)
	m.url = "grpc://" + l.Addr().String()
	m.stop = sync.OnceFunc(func() {
		g.Stop()
		s.Wait()
	})
	t.Cleanup(m.stop)
	return m
}

const anyPort = "127.0.0.1:0"

var hello = flight.Hello{Engine: "an engine", Platform: "a platform"}

// patience is how long a launcher waits for a server that is slow.
const patience = 5 * time.Second

// launcher is that of a run of four actors.
func launcher(log io.Writer, urls ...string) *flight.Launcher {
	c := actors.Config{Count: 4, URLs: urls, Timeout: patience}
	return flight.NewLauncher(c, hello, slog.New(slog.NewTextHandler(log, nil)))
}

func launch(t *testing.T, l *flight.Launcher, index int) actors.Conn {
	t.Helper()
	c, err := l.Launch(t.Context(), index)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestParts sends more than a message of gRPC may have, there and back.
func TestParts(t *testing.T) {
	m := start(t, anyPort, 1, hello)
	c := launch(t, launcher(io.Discard, m.url), 2)
	want := make([]byte, 9*flight.Part+flight.Part/3)
	for i := range want {
		want[i] = byte(i * 31 >> 3)
	}
	sent := make(chan error, 1)
	go func() {
		n, err := c.Write(want)
		if err == nil && n != len(want) {
			err = io.ErrShortWrite
		}
		sent <- err
	}()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("what comes back differs: %v", err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if c.Where() != m.url || m.numbers() != "[2]" {
		t.Errorf("at %s, began %s", c.Where(), m.numbers())
	}
}

// TestEnding: an actor that ends by itself says how, to whoever reads and whoever writes.
func TestEnding(t *testing.T) {
	m := start(t, anyPort, 1, hello)
	l := launcher(io.Discard, m.url)
	for _, reads := range []bool{true, false} {
		c := launch(t, l, 0)
		if _, err := io.WriteString(c, end); err != nil {
			t.Fatal(err)
		}
		if n, err := 0, error(nil); reads {
			if n, err = c.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("read %d bytes, %v", n, err)
			}
		}
		if how := c.Ending(); how != "its process has ended: it has ended itself" {
			t.Errorf("reads %v: %q", reads, how)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestElsewhere: actors are spread, begun again where they were, and at another server where that
// one has gone or has no slot.
func TestElsewhere(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	a, b := start(t, anyPort, 2, hello), start(t, anyPort, 3, hello)
	l := launcher(io.Discard, a.url, b.url)
	conns := map[int]actors.Conn{}
	for i := range 4 {
		conns[i] = launch(t, l, i)
	}
	if a.numbers() != "[0 2]" || b.numbers() != "[1 3]" {
		t.Fatalf("%s and %s", a.numbers(), b.numbers())
	}
	again := func(i int) string {
		conns[i].Close()
		conns[i] = launch(t, l, i)
		return conns[i].Where()
	}
	if at := again(2); at != a.url {
		t.Errorf("actor 2 at %s, where it was not", at)
	}
	// So is one whose stream nobody has ended, as if a line were broken.
	broken := conns[2]
	if conns[2] = launch(t, l, 2); conns[2].Where() != a.url {
		t.Errorf("actor 2 at %s, where it was not", conns[2].Where())
	}
	if _, err := broken.Read(make([]byte, 1)); err == nil {
		t.Error("an actor of another stream reads on")
	}
	if a.numbers() != "[0 2 2 2]" {
		t.Errorf("began %s", a.numbers())
	}
	address := strings.TrimPrefix(a.url, "grpc://")
	a.stop()
	if how := conns[0].Ending(); how == "" {
		t.Error("a server that has gone says nothing of it")
	}
	if at := again(0); at != b.url {
		t.Errorf("actor 0 at %s, which has gone", at)
	}
	// b is full.
	if _, err := l.Launch(t.Context(), 2); err == nil || !strings.Contains(err.Error(), a.url+": ") || !strings.Contains(err.Error(), b.url+": all slots are taken, which are 3") || !strings.Contains(err.Error(), "no server has begun it for "+patience.String()) {
		t.Errorf("%v", err)
	}
	a = start(t, address, 2, hello)
	if at := again(2); at != a.url {
		t.Errorf("actor 2 at %s, which is full", at)
	}
	if at := again(0); at != b.url {
		t.Errorf("actor 0 at %s, where it was not", at)
	}
	if a.numbers() != "[2]" || b.numbers() != "[1 3 0 0]" {
		t.Errorf("%s and %s", a.numbers(), b.numbers())
	}
}

// TestRefused: what waiting does not help is said at once, with the URL.
func TestRefused(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	m := start(t, anyPort, 1, hello)
	// answering answers whatever comes with a text.
	answering := func(text string) string {
		l, err := net.Listen("tcp", anyPort)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, text)
				defer c.Close()
			}
		}()
		return "grpc://" + l.Addr().String()
	}
	for _, x := range []struct {
		url   string
		index int
		token string
		says  string
	}{
		{m.url, 99, "", "there is no program"},
		{answering("HTTP/1.1 400 Bad Request\r\n\r\n"), 0, "", `does not speak gRPC: it begins with "HTTP"`},
		{answering("\x15\x03\x01\x00\x02\x02\x46"), 0, "", "grpc+tls://"},
		{answering("?\n"), 0, "", "no server has begun it"}, // It may say more.
		{m.url, 0, filepath.Join(t.TempDir(), "none"), "token_file: open"},
	} {
		c := actors.Config{Count: 1, URLs: []string{x.url}, Timeout: time.Minute, TokenFile: x.token}
		if strings.HasPrefix(x.says, "no server") {
			c.Timeout = 100 * time.Millisecond
		}
		_, err := flight.NewLauncher(c, hello, nil).Launch(t.Context(), x.index)
		if err == nil || !strings.Contains(err.Error(), x.url+": ") || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%v does not say %q of %s", err, x.says, x.url)
		}
	}
	// Nobody has a slot of m, and a learner that gives up leaves none taken.
	launch(t, launcher(io.Discard, m.url), 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := launcher(io.Discard, m.url).Launch(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := flight.NewServer(flight.Options{}); err == nil {
		t.Error("a server without slots")
	}
}

// TestDiffers: another engine is reported once for each server.
func TestDiffers(t *testing.T) {
	other := hello
	other.Engine = "another engine"
	m := start(t, anyPort, 2, other)
	var log bytes.Buffer
	l := launcher(&log, m.url)
	for i := range 2 {
		launch(t, l, i)
	}
	if text := log.String(); strings.Count(text, "results may differ in the last bits") != 1 || !strings.Contains(text, m.url) || !strings.Contains(text, "another engine") {
		t.Errorf("%s", text)
	}
}
