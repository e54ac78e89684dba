// Package temporaltest gives tests a Temporal server of their own, which can be killed.
package temporaltest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Variable is the environment variable that names the program of the server, which .ci/temporal
// builds.
const Variable = "ONNXRL_TEMPORAL_SERVER"

// Server is a Temporal server with the namespaces default and other. What it knows is in a file.
type Server struct {
	t        testing.TB
	path, db string
	port     int
	cmd      *exec.Cmd
}

// Start starts a server that ends with the test. Where there is no program of it the test is left
// out, and says so.
func Start(t testing.TB) *Server {
	t.Helper()
	path := os.Getenv(Variable)
	if path == "" {
		t.Skipf("%s is not set: without a Temporal server", Variable)
	}
	s := &Server{t: t, path: path, db: filepath.Join(t.TempDir(), "temporal.db"), port: freePorts(t)}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// HostPort is where the server is.
func (s *Server) HostPort() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// KillAndStart kills the server, and starts it again with what it had written.
func (s *Server) KillAndStart() {
	s.kill()
	s.start()
}

// freePorts is the first of 20 ports of which nobody uses any: the server, which is a program of
// others, takes all of its ports as flags.
func freePorts(t testing.TB) int {
	t.Helper()
	for try := range 100 {
		first := 20000 + int(rng.New(uint64(os.Getpid())).Split(t.Name(), try).Stream().Uint64()%10000)
		free := true
		for p := first; p < first+20 && free; p++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if free = err == nil; free {
				l.Close()
			}
		}
		if free {
			return first
		}
	}
	t.Fatal("there are no 20 free ports")
	return 0
}

func (s *Server) start() {
	s.cmd = exec.Command(s.path, s.db, fmt.Sprint(s.port), "default", "other")
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Error(err)
		return
	}
	var says strings.Builder
	s.cmd.Stderr = &says
	if err := s.cmd.Start(); err != nil {
		s.t.Error(err)
		return
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "serves on") {
		s.kill()
		s.t.Errorf("the Temporal server says %q, %v: %s", line, err, &says)
	}
}

func (s *Server) kill() {
	_ = s.cmd.Process.Kill() // It may have ended.
	_ = s.cmd.Wait()
}

// PID is that of the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }
