package alpaca

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/broker"
)

// trip answers requests without a network.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAnswers: the key goes to the broker alone, for every answer. Errors have the status and not the
// key. A request is repeated only where that may help, after the pause that the broker asks for.
func TestAnswers(t *testing.T) {
	t.Setenv(KeyVariable, "my-key")
	t.Setenv(SecretVariable, "my-secret")
	t.Setenv("APCA_API_OAUTH", "my-token")
	for _, x := range []struct {
		name, body string
		status     int
		header     string // of Retry-After and Location
		want       string
		requests   int
	}{
		{"account", `{"id":"a","status":"ACTIVE","cash":"0.1","buying_power":null}`, 200, "", "", 1},
		{"no body", "", 200, "", "EOF", 3},
		{"half", `{"id":"a","status":`, 200, "", "EOF", 3},
		{"page", "<html>", 404, "", "status 404, code 0: Not Found", 1},
		{"redirect", "", 307, "http://127.0.0.1:2/", "status 307", 1},
		{"echo", `{"code":7,"message":"my-key, my-secret"}`, 401, "", "status 401, code 7: …, …", 1},
		{"down", "<html>", 503, "", "status 503", 3},
		{"throttled", `{"code":8,"message":"later"}`, 429, "2", "status 429, code 8: later", 3},
		{"endless", strings.Repeat(" ", maxBody) + "{}", 200, "", "EOF", 3},
	} {
		t.Run(x.name, func(t *testing.T) {
			requests := 0
			config := Defaults()
			config.URL, config.Attempts, config.Pause, config.MaxPause = "http://127.0.0.1:1", 3, time.Millisecond, time.Minute
			c, err := New(config, trip(func(r *http.Request) (*http.Response, error) {
				requests++
				if r.URL.String() != "http://127.0.0.1:1/v2/account" || r.Header.Get("APCA-API-KEY-ID") != "my-key" || r.Header.Get("APCA-API-SECRET-KEY") != "my-secret" || r.Header.Get("Authorization") != "" {
					t.Errorf("a request of %s with %v", r.URL, r.Header)
				}
				h := http.Header{"Retry-After": {x.header}, "Location": {x.header}}
				return &http.Response{StatusCode: x.status, Header: h, Body: io.NopCloser(bytes.NewReader([]byte(x.body)))}, nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			var waited time.Duration
			c.sleep = func(_ context.Context, d time.Duration) error { waited += d; return nil }
			a, err := c.Account(t.Context())
			if x.want == "" {
				if err != nil || a != (broker.Account{ID: "a", Cash: 0.1}) {
					t.Errorf("%+v, %v", a, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "/v2/account") || strings.Contains(err.Error(), "my-") {
				t.Errorf("%v, expected %q", err, x.want)
			}
			if requests != x.requests || (waited == 4*time.Second) != (x.status == 429) {
				t.Errorf("%d requests, %v between them, expected %d", requests, waited, x.requests)
			}
		})
	}
}

// A context that ends ends the pause, and the answer that is waited for.
func TestCanceled(t *testing.T) {
	t.Setenv(KeyVariable, "key")
	t.Setenv(SecretVariable, "secret")
	for _, hang := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		config := Defaults()
		config.URL, config.Pause, config.MaxPause = "http://127.0.0.1:1", time.Hour, time.Hour
		c, err := New(config, trip(func(r *http.Request) (*http.Response, error) {
			cancel()
			if hang {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return nil, errors.New("lost")
		}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Clock(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		cancel()
	}
}
