package observability

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

// background runs the program until the test ends.
func background(t *testing.T, args ...string) *apptest.Server {
	t.Helper()
	cmd := apptest.Program(t, args...)
	cmd.Dir = t.TempDir()
	return apptest.Launch(t, cmd)
}

var address = regexp.MustCompile(`metrics on http://([^/]+)/metrics\n`)

// train begins a training that shows itself, and returns where.
func train(t *testing.T, args ...string) string {
	t.Helper()
	r := background(t, append(args, "--metrics", "127.0.0.1:0")...)
	return r.Finds(address)
}

// TestTokens: what trains answers Prometheus only with its token, as the server does.
func TestTokens(t *testing.T) {
	token := apptest.Write(t, "token", "secret\n")
	r := background(t, "train", "cartpole_ppo", "--set", "train.total_env_steps=100000000", "--metrics", ":0", "--metrics-token-file", token)
	at := "http://" + r.Finds(address)
	if !strings.HasPrefix(at, "http://127.0.0.1:") {
		t.Errorf("an address without a host is %s", at)
	}
	n := 0
	for _, c := range []struct {
		path, authorization, origin string
		want                        int
	}{
		{"/metrics", "", "", 401}, {"/metrics", "Bearer other", "", 401}, {"/metrics", "Bearer secret", "", 200}, {"/metrics", "Bearer secret", "https://evil.example", 403}, {"/", "Bearer secret", "", 404}, {"/debug/pprof/", "Bearer secret", "", 404},
	} {
		req, err := http.NewRequest("GET", at+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.authorization != "" {
			req.Header.Set("Authorization", c.authorization)
		}
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.want || (c.want == 200) != strings.Contains(string(body), "go_goroutines ") {
			t.Errorf("%+v: status %d, %v", c, resp.StatusCode, err)
		}
		n++
	}
	if n != 6 {
		t.Errorf("%d requests", n)
	}
	// Who is not done asking keeps nothing from ending.
	slow, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := io.WriteString(slow, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"); err != nil {
		t.Fatal(err)
	}
	if code := r.Stop(); code != apptest.Interrupted {
		t.Errorf("exit status %d\n%s", code, r.Log)
	}
	for _, args := range [][]string{{"--metrics", "nowhere"}, {"--metrics", strings.TrimPrefix(startedAddress(t), "http://")}, {"--metrics-token-file", token}, {"--metrics", ":0", "--metrics-token-file", apptest.Write(t, "empty", "")}} {
		apptest.Refuse(t, append([]string{"train", "cartpole_ppo", "--out", filepath.Join(t.TempDir(), "run")}, args...), "train: --metrics")
	}
}

// TestFit: a fit shows its optimiser steps and what it records, and no env steps.
func TestFit(t *testing.T) {
	args := apptest.FitArgs(apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(100)), "--epochs", "1000000", "--validation", "0.2", "--dir", "fitted")
	at := train(t, slices.DeleteFunc(args, func(arg string) bool { return arg == "-q" })...)
	taken := regexp.MustCompile(`(?m)^onnxrl_train_steps_total\{run="fitted"\} [1-9]`)
	text := ""
	for wait, late := time.Tick(50*time.Millisecond), time.After(5*time.Minute); !taken.MatchString(text) || !strings.Contains(text, `tag="eval/loss"`); <-wait {
		select {
		case <-late:
			t.Fatalf("no steps and no validation in\n%s", text)
		default:
		}
		var err error
		if _, text, err = apptest.Call("http://"+at+"/metrics", ""); err != nil {
			t.Fatal(err)
		}
	}
	apptest.Says(t, text, `onnxrl_run_active{run="fitted"} 1`, `onnxrl_scalar{run="fitted",tag="train/loss"} `, `onnxrl_run_failures_total{reason="diverged",run="fitted"} 0`)
	if strings.Contains(text, "onnxrl_run_env_steps") {
		t.Errorf("a fit shows env steps:\n%s", text)
	}
}

// startedAddress is one that somebody listens on until the test ends.
func startedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
