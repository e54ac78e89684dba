package apptest

import (
	"bufio"
	"net"
	"strings"
	"testing"
)

// Flight is a process of a server over Arrow Flight, such as onnxrl replay serve, which can be
// killed and started again at the same address.
type Flight struct {
	t    *testing.T
	args []string
	dir  string
	*Server
	// URL is the address as a run's document has it.
	URL string
	// Health is where it answers probes, empty for nowhere.
	Health string
}

// StartFlight runs a server on a free port until it answers. The command line has no --listen.
func StartFlight(t *testing.T, args ...string) *Flight {
	t.Helper()
	return StartFlightIn(t, "", args...)
}

// StartFlightIn is StartFlight in a working directory.
func StartFlightIn(t *testing.T, dir string, args ...string) *Flight {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := &Flight{t: t, args: append(args, "--json", "--listen", listen), dir: dir}
	r.Start()
	return r
}

// Start runs a server that has ended again.
func (r *Flight) Start() {
	r.t.Helper()
	cmd := Program(r.t, r.args...)
	cmd.Dir = r.dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	r.Server = Launch(r.t, cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		r.t.Fatalf("%s did not start: %v\n%s", strings.Join(r.args, " "), err, r.Log)
	}
	first := Decoded[struct {
		Listen string `json:"listen"`
		TLS    bool   `json:"tls"`
		Health string `json:"health"`
	}](r.t, line)
	r.Health = first.Health
	r.URL = "grpc://" + first.Listen
	if first.TLS {
		r.URL = "grpc+tls://" + first.Listen
	}
}

// Kill ends the server by SIGKILL.
func (r *Flight) Kill() {
	r.t.Helper()
	if err := r.Cmd.Process.Kill(); err != nil {
		r.t.Fatal(err)
	}
	// It ends by a signal, as it should.
	_ = r.Cmd.Wait()
}

// KillAndStart ends the server by SIGKILL and starts it again.
func (r *Flight) KillAndStart() {
	r.t.Helper()
	r.Kill()
	r.Start()
}
