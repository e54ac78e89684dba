package s3test

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Variable is the environment variable that names the program of the server, versitygw.
const Variable = "ONNXRL_S3_SERVER"

// Access and Secret are the credentials of the server. The secret is a word that tests look for
// where it does not belong.
const (
	Access = "onnxrl-test"
	Secret = "hunter2-hunter2"
)

// Bucket is the one that a new server has.
const Bucket = "team"

// Server is an S3 server over a directory.
type Server struct {
	// Address is its host and port.
	Address string
	// Dir has a directory for every bucket, in which objects are files.
	Dir string
	// PID is that of its process.
	PID int
}

// Start runs a server until the test ends. The test is skipped where Variable is not set. The
// environment gets the server's credentials, and nothing of AWS's files.
func Start(t *testing.T) *Server {
	t.Helper()
	program := os.Getenv(Variable)
	if program == "" {
		t.Skip(Variable + " is not set; .ci/s3 prints the path that it names")
	}
	Environment(t)
	dir := t.TempDir()
	s := &Server{Dir: filepath.Join(dir, "data")}
	sidecar := filepath.Join(dir, "sidecar")
	for _, d := range []string{sidecar, filepath.Join(s.Dir, Bucket)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var said string
	// Somebody else may take the port that was free.
	for range 5 {
		s.Address = freeAddress(t)
		cmd := exec.Command(program, "--access", Access, "--secret", Secret, "--port", s.Address, "--keep-alive", "--quiet", "posix", "--sidecar", sidecar, s.Dir)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		out := &text{}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			_ = cmd.Wait() // How it ended does not matter.
			close(gone)
		}()
		stop := func() {
			_ = cmd.Process.Kill()
			<-gone
		}
		if s.PID = cmd.Process.Pid; answers(s.Address, gone) {
			t.Cleanup(stop)
			return s
		}
		stop()
		said = out.String()
	}
	t.Fatalf("%s does not answer:\n%s", program, said)
	return nil
}

// Environment sets the credentials of the server, for the test and the processes it starts, and
// hides what this machine knows of AWS.
func Environment(t *testing.T) {
	t.Helper()
	none := filepath.Join(t.TempDir(), "none")
	for _, v := range [][2]string{
		{"AWS_ACCESS_KEY_ID", Access}, {"AWS_SECRET_ACCESS_KEY", Secret}, {"AWS_CONFIG_FILE", none}, {"AWS_SHARED_CREDENTIALS_FILE", none},
		{"AWS_EC2_METADATA_DISABLED", "true"}, {"AWS_REGION", ""}, {"AWS_DEFAULT_REGION", ""}, {"AWS_PROFILE", ""}, {"AWS_SESSION_TOKEN", ""}, {"AWS_ENDPOINT_URL", ""}, {"AWS_ENDPOINT_URL_S3", ""},
	} {
		t.Setenv(v[0], v[1])
	}
}

// URL is that of a prefix in the server's bucket, asked at an address: the server's, or that of a
// line to it.
func URL(address, prefix string) string {
	return "s3://" + Bucket + "/" + prefix + "?endpoint=" + url.QueryEscape("http://"+address)
}

// File is the path of the object with a key.
func (s *Server) File(key string) string {
	return filepath.Join(s.Dir, Bucket, filepath.FromSlash(strings.TrimPrefix(key, "/")))
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port)
}

// answers waits until connections are taken.
func answers(address string, gone <-chan struct{}) bool {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	late := time.After(time.Minute)
	for {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return true
		}
		select {
		case <-again.C:
		case <-gone:
			return false
		case <-late:
			return false
		}
	}
}

// text is what a process has written.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *text) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *text) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}
