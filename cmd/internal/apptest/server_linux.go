package apptest

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Listening is the line that a server prints when it answers.
type Listening struct {
	HTTP       string `json:"http"`
	GRPC       string `json:"grpc"`
	Health     string `json:"health"`
	TLS        bool   `json:"tls"`
	Token      bool   `json:"token"`
	AdminToken bool   `json:"admin_token"`
	Engine     string `json:"engine"`
	PID        int    `json:"pid"`
	Models     []struct {
		Name    string   `json:"name"`
		Version string   `json:"version"`
		Aliases []string `json:"aliases"`
		State   string   `json:"state"`
		Reason  string   `json:"reason"`
	} `json:"models"`
}

// Server is a server process.
type Server struct {
	t   *testing.T
	Cmd *exec.Cmd
	// First is the first line on standard output, Log the standard error so far.
	First Listening
	Log   *Log
}

// Log is what a process wrote, readable while it writes.
type Log struct {
	mu   chan struct{}
	text bytes.Buffer
	more chan struct{}
}

func newLog() *Log { return &Log{mu: make(chan struct{}, 1), more: make(chan struct{}, 1)} }

// Write adds to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.mu <- struct{}{}
	l.text.Write(p)
	<-l.mu
	select {
	case l.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

// String is the log so far.
func (l *Log) String() string {
	l.mu <- struct{}{}
	defer func() { <-l.mu }()
	return l.text.String()
}

// StartServe runs onnxrl serve on free ports until it answers.
func StartServe(t *testing.T, args ...string) *Server {
	t.Helper()
	return StartServer(t, Program(t, ServeLine(args...)...))
}

// ServeLine is a command line of a server on free ports.
func ServeLine(more ...string) []string {
	return append([]string{"serve", "--json", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"}, more...)
}

// Launch starts a server, keeps its log, and ends it with the test.
func Launch(t *testing.T, cmd *exec.Cmd) *Server {
	t.Helper()
	r := &Server{t: t, Cmd: cmd, Log: newLog()}
	cmd.Stderr = r.Log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// One that is still there after a failed test.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return r
}

// StartServer runs a server, whose command line has --json, until it answers.
func StartServer(t *testing.T, cmd *exec.Cmd) *Server {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r := Launch(t, cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not start: %v\n%s", err, r.Log)
	}
	r.First = Decode[Listening](t, line)
	return r
}

// Says waits, a minute at most, until the server's log has the text.
func (r *Server) Says(text string) {
	r.t.Helper()
	patience := time.After(time.Minute)
	for !strings.Contains(r.Log.String(), text) {
		select {
		case <-r.Log.more:
		case <-patience:
			r.t.Fatalf("the server does not say %q:\n%s", text, r.Log)
		}
	}
}

// Finds waits, a minute at most, until the server's log has text of the form, and returns the
// form's first group.
func (r *Server) Finds(form *regexp.Regexp) string {
	r.t.Helper()
	patience := time.After(time.Minute)
	for {
		if m := form.FindStringSubmatch(r.Log.String()); m != nil {
			return m[1]
		}
		select {
		case <-r.Log.more:
		case <-patience:
			r.t.Fatalf("the server says nothing of the form %v:\n%s", form, r.Log)
		}
	}
}

// Signal sends the server a signal.
func (r *Server) Signal(s os.Signal) {
	r.t.Helper()
	if err := r.Cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
}

// Stop asks the server to end and returns its exit status.
func (r *Server) Stop() int {
	r.t.Helper()
	r.Signal(syscall.SIGTERM)
	_ = r.Cmd.Wait()
	return r.Cmd.ProcessState.ExitCode()
}

// URL is where the server answers a path over HTTP.
func (r *Server) URL(path string) string { return "http://" + r.First.HTTP + path }

// Call sends a request; an empty body is a GET.
func Call(url, body string) (status int, answer string, err error) {
	var resp *http.Response
	if body == "" {
		resp, err = http.Get(url)
	} else {
		resp, err = http.Post(url, "application/json", strings.NewReader(body))
	}
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// Want expects a status and returns the answer.
func (r *Server) Want(status int, path, body string) string {
	r.t.Helper()
	got, answer, err := Call(r.URL(path), body)
	if err != nil || got != status {
		r.t.Fatalf("%s: status %d, expected %d: %s %v\n%s", path, got, status, answer, err, r.Log)
	}
	return answer
}
