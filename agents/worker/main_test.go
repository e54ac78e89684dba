package worker

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// envRole makes the test binary a worker, of the kind that it says.
const envRole = "ONNXRL_TEST_WORKER"

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// play is a worker; those but the plain one do what a worker should not.
func play(role string) int {
	e := portable.New()
	defer e.Close()
	h, in := testHello(), io.Reader(os.Stdin)
	switch role {
	case "old":
		h.Build.Digest = "0123456789abcdef"
	case "other":
		h.Platform = "another one"
	case "garbage":
		fmt.Println("{garbage")
		fmt.Fprintln(os.Stderr, "no such library")
		return 3
	case "silent":
		time.Sleep(time.Hour)
	case "dies":
		in = mortal{in}
	}
	t := NewLocal(kinds.All(), run.Options{Engine: e})
	defer t.Close()
	if err := Serve(context.Background(), t, h, in, os.Stdout, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// mortal is the input of a worker that dies with every task, once it has begun.
type mortal struct{ io.Reader }

func (d mortal) Read(b []byte) (int, error) {
	n, err := d.Reader.Read(b)
	if n > 0 {
		time.AfterFunc(300*time.Millisecond, func() { os.Exit(9) })
	}
	return n, err
}

func testHello() Hello { return NewHello("portable", "here") }

// workers returns a pool of processes that play a role, and tells started of each.
func workers(t testing.TB, o Options, role string, started func(*os.Process)) *Pool {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.Hello, o.started = testHello(), started
	o.Command = func() *exec.Cmd {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), envRole+"="+role, "GOMAXPROCS="+strconv.Itoa(2))
		return cmd
	}
	p, err := NewPool(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}
