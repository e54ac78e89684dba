package websocket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// TestWriter sends to whoever is connected, from when they are, and waits for the first; one that
// is interrupted does not end as if it were done.
func TestWriter(t *testing.T) {
	ran := 0
	for _, binary := range []bool{false, true} {
		w, err := NewWriter(t.Context(), "ws://127.0.0.1:0/bars", binary)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := http.Get("http" + strings.TrimPrefix(w.URL(), "ws") + "/other"); err != nil || answer.StatusCode != http.StatusNotFound {
			t.Errorf("another page: %v, %v", answer, err)
		} else if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
		written := make(chan error, 1)
		go func() { written <- w.Write(t.Context(), "A", []byte("0")) }()
		c := quick(w.URL())
		c.End = true
		first, second := NewSource(c), NewSource(c)
		begin(t, first, 0)
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		begin(t, second, 0)
		// The second has what comes once it is there.
		for there := false; !there; time.Sleep(time.Millisecond) {
			w.mu.Lock()
			there = len(w.readers) == 2
			w.mu.Unlock()
		}
		for i := 1; i < 1000; i++ {
			if err := w.Write(t.Context(), "A", fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Flush(t.Context()), w.Close()); err != nil {
			t.Fatal(err)
		}
		for k, s := range []*Source{first, second} {
			got := texts(t, poll(t, s, 0), 0)
			if len(got) != 1000-k {
				t.Fatalf("reader %d has %d messages", k, len(got))
			}
			for i, text := range got {
				if text != fmt.Sprint(i+k) {
					t.Fatalf("reader %d: message %d is %q", k, i, text)
				}
			}
		}
		ran++
	}
	if ran != 2 {
		t.Errorf("%d kinds", ran)
	}

	w, err := NewWriter(t.Context(), "ws://localhost:0", false)
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := websocket.Dial(t.Context(), w.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := w.Write(t.Context(), "A", []byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseNow(); err != nil {
		t.Fatal(err)
	}
	// It has gone: the next is waited for.
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan error, 1)
	go func() {
		for {
			if err := w.Write(ctx, "A", []byte("b")); err != nil {
				written <- err
				return
			}
		}
	}()
	next, _, err := websocket.Dial(t.Context(), w.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer next.CloseNow()
	if _, text, err := next.Read(t.Context()); err != nil || string(text) != "b" {
		t.Errorf("%q, %v", text, err)
	}
	cancel()
	if err := <-written; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Close() }()
	for err == nil {
		_, _, err = next.Read(t.Context())
	}
	// A message that was cut off ends the connection as well.
	if status := websocket.CloseStatus(err); status == websocket.StatusNormalClosure {
		t.Errorf("%v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}

	for _, x := range []struct{ address, want string }{
		{"ws://example.com:1/", "example.com:1 is not this machine"}, {"wss://localhost:1/", "expected ws"}, {"ws://localhost/", "expected a port"}, {"ws://localhost:1/?a=b", "expected an address such as"},
	} {
		if _, err := NewWriter(t.Context(), x.address, false); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, expected %q", x.address, err, x.want)
		}
		ran++
	}
	if ran != 6 {
		t.Errorf("%d cases", ran)
	}
}
