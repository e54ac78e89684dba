package app

import (
	"bufio"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// The process that tries models is the first that the system ends where memory runs out, and does
// not outlive its server.
func TestProveProcessIsExpendable(t *testing.T) {
	t.Parallel()
	self := apptest.Program(t, proveName, "--engine", portable.Name)
	// Between the two, so that it can be killed.
	server := apptest.Program(t)
	server.Path, server.Args = "/bin/sh", append([]string{"sh", "-c", `"$0" "$@" <&3 & echo $!; wait`}, self.Args...)
	server.Env = self.Env
	in, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer hold.Close() // the child waits for a model as long as this is open
	server.ExtraFiles = []*os.File{in}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	pid, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	proc := "/proc/" + strings.TrimSpace(pid)
	await := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	await("the process is not the first to go", func() bool {
		text, err := os.ReadFile(proc + "/oom_score_adj")
		return err == nil && string(text) == "1000\n"
	})
	if err := server.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await("the process outlives its server", func() bool {
		text, err := os.ReadFile(proc + "/stat")
		return err != nil || strings.Contains(string(text), ") Z ")
	})
	_ = server.Wait()
}
