package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilence: a server that says nothing, before an answer or within it, is an error.
func TestSilence(t *testing.T) {
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half" {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "12345")
			_ = http.NewResponseController(w).Flush()
		}
		<-over
	}))
	defer server.Close()
	defer close(over)
	c := &http.Client{Transport: StallTransport(100 * time.Millisecond)}
	if _, err := c.Get(server.URL + "/none"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("no answer: %v", err)
	}
	answer, err := c.Get(server.URL + "/half")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if got, err := io.ReadAll(answer.Body); string(got) != "12345" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("half an answer: %q, %v", got, err)
	}
}

// TestSlowUpload: a connection whose answer takes longer than the patience stays open as long as
// something is sent.
func TestSlowUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		dial := StallDialer(func(context.Context, string, string) (net.Conn, error) { return client, nil }, time.Minute)
		c, err := dial(t.Context(), "tcp", "server")
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan error)
		go func() {
			b := make([]byte, 2)
			_, err := io.ReadFull(c, b)
			answered <- err
		}()
		b := make([]byte, 1)
		for range 10 {
			time.Sleep(50 * time.Second)
			go func() { _, _ = c.Write(b) }()
			if _, err := io.ReadFull(server, b); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := server.Write([]byte("ok")); err != nil {
			t.Fatal(err)
		}
		if err := <-answered; err != nil {
			t.Errorf("the answer to a slow upload: %v", err)
		}
		began := time.Now()
		if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("nothing came, and after %s: %v", time.Since(began), err)
		}
		_ = server.Close()
	})
}
