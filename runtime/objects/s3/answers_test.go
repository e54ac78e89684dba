package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/objects/s3/s3test"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// openAt opens a bucket with a server's address.
func openAt(t *testing.T, address string) objects.Bucket {
	t.Helper()
	u, err := url.Parse(s3test.URL(address, "pre"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := open(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// final reports whether package objects would not try again.
func final(err error) bool {
	f := objects.Final(err)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, objects.ErrChanged) || fmt.Sprintf("%T", err) == fmt.Sprintf("%T", f)
}

// TestAnswers: what is made of the answers of a server, and what is tried again.
func TestAnswers(t *testing.T) {
	s3test.Environment(t)
	var code int
	var name string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.Header().Set("X-Amz-Bucket-Region", "eu-west-3")
		w.WriteHeader(code)
		if r.Method != http.MethodHead {
			_, _ = io.WriteString(w, "<Error><Code>"+name+"</Code><Message>said so</Message></Error>")
		}
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	b := openAt(t, address)
	for _, c := range []struct {
		code  int
		name  string
		final bool
		want  string
	}{
		{400, "InvalidRequest", true, "400 InvalidRequest: said so"}, {400, "RequestTimeout", false, "RequestTimeout"}, {400, "BadDigest", false, "BadDigest"},
		{301, "PermanentRedirect", true, "is in region eu-west-3, expected ?region="}, {401, "Unauthorized", true, "permission denied"},
		{403, "AccessDenied", true, "403 AccessDenied; expected credentials that may read and write bucket \"team\""}, {403, "RequestTimeTooSkewed", false, "TimeTooSkewed"},
		{404, "NoSuchKey", true, "file does not exist"}, {404, "NoSuchBucket", true, "bucket \"team\" is not there"}, {405, "MethodNotAllowed", true, "405"},
		{408, "RequestTimeout", false, "408"}, {409, "OperationAborted", false, "409"}, {412, "PreconditionFailed", true, objects.ErrChanged.Error()},
		{429, "TooManyRequests", false, "429"}, {500, "InternalError", false, "500 InternalError: said so"}, {503, "SlowDown", false, "503 SlowDown"},
	} {
		code, name = c.code, c.name
		_, read := b.Read(t.Context(), "key", objects.Range{Length: -1, Tag: "x"})
		for what, err := range sorted.All(map[string]error{"write": b.Write(t.Context(), "key", []byte("x")), "read": read}) {
			if err == nil || final(err) != c.final || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %d %s: final %v, error %v, want %v, %q", what, c.code, c.name, final(err), err, c.final, c.want)
			}
		}
		if c.name == "RequestTimeout" && c.code == 400 || c.name == "BadDigest" || c.name == "RequestTimeTooSkewed" || c.name == "OperationAborted" {
			continue // A HEAD does not say these.
		}
		_, err := openAt(t, address).Stat(t.Context(), "key")
		if err == nil || final(err) != c.final || errors.Is(err, fs.ErrNotExist) != (c.name == "NoSuchKey") || c.code == 404 && !strings.Contains(err.Error(), c.want) {
			t.Errorf("stat, %d %s: final %v, error %v, want %v", c.code, c.name, final(err), err, c.final)
		}
	}
	code, name = 416, "InvalidRange"
	r, err := b.Read(t.Context(), "key", objects.Range{Offset: 10, Length: 5})
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); len(rest) != 0 || err != nil {
		t.Errorf("behind the end: %d bytes, %v", len(rest), err)
	}
}

// TestSilence: a server that takes a connection and says nothing, before an answer or within it,
// is an error that is tried again.
func TestSilence(t *testing.T) {
	s3test.Environment(t)
	defer func(was time.Duration) { patience = was }(patience)
	patience = 100 * time.Millisecond
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/half") {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "12345")
			_ = http.NewResponseController(w).Flush()
		}
		<-over
	}))
	defer server.Close()
	defer close(over)
	b := openAt(t, strings.TrimPrefix(server.URL, "http://"))
	var timeout net.Error
	if _, err := b.Stat(t.Context(), "key"); !errors.As(err, &timeout) || !timeout.Timeout() || final(err) {
		t.Errorf("no answer: %v", err)
	}
	r, err := b.Read(t.Context(), "half", objects.Range{Length: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if string(got) != "12345" || !errors.As(err, &timeout) || final(err) {
		t.Errorf("half an answer: %q, %v", got, err)
	}
}

// TestURLs: what a URL may say, and that nothing of it is repeated that may be secret.
func TestURLs(t *testing.T) {
	s3test.Environment(t)
	for raw, want := range sorted.All(map[string]string{
		"s3:///x?region=eu":                        "expected a bucket",
		"s3://b/x":                                 "no region: expected ?region=",
		"s3://b/x?regoin=hunter2":                  `parameter "regoin": expected endpoint, region`,
		"s3://b/x?secret_key=hunter2":              `parameter "secret_key": expected`,
		"s3://b/x?region=a&region=b":               "parameter region is there 2 times",
		"s3://b/x?endpoint=localhost:7070":         "parameter endpoint: expected http://HOST:PORT",
		"s3://b/x?endpoint=http://hunter2@h":       "credentials do not belong into a URL",
		"s3://b/x?use_path_style=maybe":            "parameter use_path_style: expected true or false",
		"s3://b/x?region=eu&profile=not-there":     "profile",
		"s3://onnxrl-test:hunter2@b/x?region=eu":   "credentials do not belong into a URL",
		"s3://b/x?region=eu&anonymous=true#digest": "a store has no fragment",
	}) {
		_, err := objects.Open(t.Context(), raw, objects.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v, want %q", raw, err, want)
		}
	}
	for _, good := range []string{"s3://b?region=eu", "s3://b/x/y/?endpoint=https://h:1/base&s3ForcePathStyle=false", "s3://b/x?region=eu&anonymous=true"} {
		s, err := objects.Open(t.Context(), good, objects.Options{})
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	_, err := objects.Open(t.Context(), "s3://b/x?region=eu", objects.Options{})
	if err == nil || !strings.Contains(err.Error(), "no credentials; expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY") {
		t.Errorf("no credentials: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := objects.Open(ended, "s3://b/x?region=eu", objects.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestClocksApart: requests to a server whose clock is another one's are signed again with what it
// says the time is.
func TestClocksApart(t *testing.T) {
	s3test.Environment(t)
	for _, ahead := range []time.Duration{0, 10 * time.Minute, time.Hour, -time.Hour} {
		var refused atomic.Int64
		stored := map[string][]byte{}
		var mu sync.Mutex
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			now := time.Now().Add(ahead).UTC()
			w.Header().Set("Date", now.Format(http.TimeFormat))
			signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
			if err != nil || signed.Sub(now).Abs() > 15*time.Minute {
				refused.Add(1)
				w.WriteHeader(http.StatusForbidden)
				if r.Method != http.MethodHead {
					_, _ = io.WriteString(w, "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large</Message></Error>")
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			switch r.Method {
			case http.MethodPut:
				stored[r.URL.Path], _ = io.ReadAll(r.Body)
			default:
				data, ok := stored[r.URL.Path]
				if !ok {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				w.Header().Set("ETag", `"x"`)
				w.Header().Set("Content-Length", fmt.Sprint(len(data)))
				if r.Method == http.MethodGet {
					_, _ = w.Write(data)
				}
			}
		}))
		b := openAt(t, strings.TrimPrefix(server.URL, "http://"))
		_, err := b.Stat(t.Context(), "key")
		if away := ahead.Abs() > time.Hour/2; away != !errors.Is(err, fs.ErrNotExist) || away && (final(err) || !strings.Contains(err.Error(), map[bool]string{true: "; its clock is 1h0m0s ahead of this machine's", false: "; its clock is 1h0m0s behind this machine's"}[ahead > 0])) {
			t.Errorf("%v ahead: %v", ahead, err)
		}
		// A second attempt goes well.
		x, err := objects.Open(t.Context(), s3test.URL(strings.TrimPrefix(server.URL, "http://"), "pre"), objects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		digest, err := x.Put(t.Context(), []byte("what is kept"))
		if err != nil {
			t.Fatalf("%v ahead: %v", ahead, err)
		}
		if got, err := x.Get(t.Context(), digest); err != nil || string(got) != "what is kept" {
			t.Errorf("%v ahead: %q, %v", ahead, got, err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
		if n := refused.Load(); (n > 0) != (ahead.Abs() > time.Hour/2) {
			t.Errorf("%v ahead: %d requests were refused", ahead, n)
		}
	}
}
