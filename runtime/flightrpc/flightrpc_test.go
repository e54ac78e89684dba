package flightrpc_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/runtime/buildinfo"
	"github.com/onnxrl/onnxrl/runtime/flightrpc"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// listen takes a free port.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// answering is an address at which a text answers whatever comes, and then the end.
func answering(t *testing.T, text string) string {
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, text)
			c.(*net.TCPConn).CloseWrite()
			go func() {
				// Until the client has read it.
				_, _ = io.Copy(io.Discard, c)
				c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// call dials and makes a call. The error is why the connection is refused for good, or else that of
// the call.
func call(t *testing.T, p flightrpc.Peer) (refused bool, err error) {
	t.Helper()
	c, err := p.Dial()
	if err != nil {
		return false, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stream, err := c.DoAction(ctx, &flight.Action{Type: "any"})
	if err == nil {
		_, err = stream.Recv()
	}
	if why := c.Refused(); why != nil {
		return true, why
	}
	return false, c.Hint(err)
}

// TestWhatAnswers tells servers that may come back from what will never speak gRPC.
func TestWhatAnswers(t *testing.T) {
	for _, x := range []struct {
		text    string
		refused bool
		says    string
	}{
		{"HTTP/1.1 400 Bad Request\r\n\r\n", true, `begins with "HTTP"`},
		{"?\n", true, `begins with "?\n"`},
		{"\x15\x03\x01\x00\x02\x02\x46", true, "expected grpc+tls://"},
		{"", false, "grpc+tls:// in its url"},
		// Settings, and nothing more: a server that has gone.
		{"\x00\x00\x00\x04\x00\x00\x00\x00\x00", false, ""},
	} {
		refused, err := call(t, flightrpc.Peer{URL: "grpc://" + answering(t, x.text), Timeout: time.Second})
		if err == nil || refused != x.refused || !strings.Contains(err.Error(), x.says) || !refused && !flightrpc.Again(err) {
			t.Errorf("%q: refused %v, %v", x.text, refused, err)
		}
	}
}

// among authorizes those who have one of the tokens.
func among(tokens func() []string) func(string) error {
	return func(authorization string) error {
		if token, ok := strings.CutPrefix(authorization, "Bearer "); ok && slices.Contains(tokens(), token) {
			return nil
		}
		return errors.New("no token")
	}
}

// TestTokens: one of the server's tokens is needed.
func TestTokens(t *testing.T) {
	l := listen(t)
	g := flightrpc.NewServer(&flight.BaseFlightServer{}, nil, among(func() []string { return []string{"first", "second"} }))
	go g.Serve(l)
	defer g.Stop()
	for token, want := range sorted.All(map[string]codes.Code{"second\n": codes.Unimplemented, "third\n": codes.Unauthenticated, "": codes.Unauthenticated}) {
		p := flightrpc.Peer{URL: "grpc+tcp://" + l.Addr().String(), Timeout: time.Second}
		if token != "" {
			p.TokenFile = filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(p.TokenFile, []byte(token), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := call(t, p); status.Code(err) != want {
			t.Errorf("token %q: %v, expected %v", token, err, want)
		}
	}
}

// TestBuilds: a program of another build is refused at the first call, though both have the same
// version; one that says nothing, or takes any, is not.
func TestBuilds(t *testing.T) {
	l := listen(t)
	g := flightrpc.NewServer(&flight.BaseFlightServer{}, nil, nil)
	go g.Serve(l)
	defer g.Stop()
	other := buildinfo.This()
	other.Digest = "0123456789abcdef"
	for _, c := range []struct {
		build buildinfo.Info
		any   bool
		want  codes.Code
	}{{buildinfo.Info{}, false, codes.Unimplemented}, {other, false, codes.FailedPrecondition}, {buildinfo.Info{Version: "v1"}, false, codes.FailedPrecondition}, {other, true, codes.Unimplemented}} {
		_, err := call(t, flightrpc.Peer{URL: "grpc://" + l.Addr().String(), Timeout: time.Second, Build: c.build, AnyBuild: c.any})
		if status.Code(err) != c.want || c.want == codes.FailedPrecondition && !strings.Contains(err.Error(), buildinfo.This().String()) {
			t.Errorf("%v, any %v: %v, expected %v", c.build, c.any, err, c.want)
		}
	}
}

// TestTokenAgain: both sides take another token without a new connection.
func TestTokenAgain(t *testing.T) {
	l := listen(t)
	var token atomic.Value
	token.Store([]string{"first"})
	g := flightrpc.NewServer(&flight.BaseFlightServer{}, nil, among(func() []string { return token.Load().([]string) }))
	go g.Serve(l)
	defer g.Stop()
	path := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	c, err := flightrpc.Peer{URL: "grpc://" + l.Addr().String(), TokenFile: path, Timeout: time.Second}.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, want := range []codes.Code{codes.Unimplemented, codes.Unauthenticated, codes.Unimplemented} {
		switch i {
		case 1:
			token.Store([]string{"second"})
		case 2:
			write("# of today\nsecond\n")
		}
		stream, err := c.DoAction(t.Context(), &flight.Action{Type: "any"})
		if err == nil {
			_, err = stream.Recv()
		}
		if status.Code(err) != want {
			t.Errorf("%d: %v, expected %v", i, err, want)
		}
	}
}

// TestFilesThatAreNotThere dials with files that are not there.
func TestFilesThatAreNotThere(t *testing.T) {
	const url = "grpc+tls://127.0.0.1:1"
	for says, p := range sorted.All(map[string]flightrpc.Peer{
		"ca: open /nothing":             {URL: url, CA: "/nothing"},
		"cert /nothing with key /there": {URL: url, Cert: "/nothing", Key: "/there"},
		"token_file: open /nothing":     {URL: url, TokenFile: "/nothing"},
		"url: is":                       {URL: "host"},
	}) {
		if _, err := p.Dial(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}
