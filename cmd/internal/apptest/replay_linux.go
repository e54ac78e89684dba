package apptest

import (
	"bufio"
	"net"
	"testing"

	"github.com/onnxrl/onnxrl/agents/replay/flight"
)

// Replay is a process of onnxrl replay serve, which can be killed and started again at the same
// address.
type Replay struct {
	t    *testing.T
	args []string
	*Server
	// URL is the address as a run's document has it.
	URL string
}

// StartReplay runs onnxrl replay serve on a free port until it answers.
func StartReplay(t *testing.T, args ...string) *Replay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := &Replay{t: t, args: append([]string{"replay", "serve", "--json", "--listen", listen}, args...)}
	r.start()
	return r
}

func (r *Replay) start() {
	r.t.Helper()
	cmd := Program(r.t, r.args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	r.Server = Launch(r.t, cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		r.t.Fatalf("the replay server did not start: %v\n%s", err, r.Log)
	}
	first := Decode[struct {
		Listen string              `json:"listen"`
		PID    int                 `json:"pid"`
		TLS    bool                `json:"tls"`
		Token  bool                `json:"token"`
		Tables []flight.TableStats `json:"tables"`
	}](r.t, line)
	r.URL = "grpc://" + first.Listen
	if first.TLS {
		r.URL = "grpc+tls://" + first.Listen
	}
}

// KillAndStart ends the server by SIGKILL and starts it again.
func (r *Replay) KillAndStart() {
	r.t.Helper()
	if err := r.Cmd.Process.Kill(); err != nil {
		r.t.Fatal(err)
	}
	// It ends by a signal, as it should.
	_ = r.Cmd.Wait()
	r.start()
}

// Client dials the server for a table.
func (r *Replay) Client(table string) *flight.Client {
	r.t.Helper()
	var c flight.Config
	c.SetDefaults()
	c.URL, c.Table = r.URL, table
	x, err := flight.Dial(c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { x.Close() })
	return x
}
