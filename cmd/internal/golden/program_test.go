package golden

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/cpu"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

var (
	// goldenFrom records what the tests compare with, by another build of the program.
	goldenFrom = flag.String("golden-from", "", "record the golden runs with this program")
	// goldenOut keeps what was digested.
	goldenOut = flag.String("golden-out", "", "keep the results that are digested in this folder, as text")
)

// goldenOnly skips what was recorded on another kind of processor.
func goldenOnly(t *testing.T) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the golden runs were recorded on amd64; other architectures fuse multiplications and additions")
	}
	if !cpu.X86.HasFMA || !cpu.X86.HasAVX {
		t.Skip("the golden runs were recorded with FMA, by which math.Exp rounds otherwise")
	}
}

// perform runs a command line to its end, by this program or by the one that records, and returns
// what it prints.
func perform(t *testing.T, args ...string) string {
	t.Helper()
	if *goldenFrom != "" {
		return string(older(t, args...))
	}
	return apptest.Succeed(t, args...)
}

// serving starts a server, whose command line has --json, by this program or by the one that
// records, and returns the line that it prints when it answers, and what ends it.
func serving(t *testing.T, args ...string) (first string, stop func()) {
	t.Helper()
	r, w := io.Pipe()
	var log bytes.Buffer
	ended := make(chan struct{})
	if *goldenFrom != "" {
		cmd := olderProgram(t, args...)
		cmd.Stdout, cmd.Stderr = w, &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			defer close(ended)
			// Its end is asked for.
			_ = cmd.Wait()
			_ = w.Close()
		}()
		stop = func() { _ = cmd.Process.Signal(os.Interrupt); <-ended }
	} else {
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			defer close(ended)
			execute(ctx, args, strings.NewReader(""), w, &log)
			_ = w.Close()
		}()
		stop = func() { cancel(); <-ended }
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		stop()
		t.Fatalf("%s did not start: %v\n%s", strings.Join(args, " "), err, log.String())
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return line, stop
}

// olderProgram returns a command that is the program that records.
func olderProgram(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), *goldenFrom, args...)
	cmd.Env = append(os.Environ(), "ONNXRL_NICE=0")
	return cmd
}

// older runs the program that records to its end and returns what it printed.
func older(t *testing.T, args ...string) []byte {
	t.Helper()
	var errw bytes.Buffer
	cmd := olderProgram(t, args...)
	cmd.Stderr = &errw
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, errw.Bytes())
	}
	return out
}

// stopOlder interrupts the program that records, in a working directory, when enough says so.
func stopOlder(t *testing.T, dir string, enough func() bool, args ...string) {
	t.Helper()
	cmd := olderProgram(t, args...)
	cmd.Dir = dir
	var errw bytes.Buffer
	cmd.Stderr = &errw
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for !enough() {
		select {
		case err := <-ended:
			t.Fatalf("%s ended too early: %v\n%s", cmd, err, errw.Bytes())
		case <-time.After(time.Millisecond):
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; cmd.ProcessState.ExitCode() != apptest.Interrupted {
		t.Fatalf("%s: %v\n%s", cmd, err, errw.Bytes())
	}
}

// keepGolden copies files and folders of the older program's, named relative to both.
func keepGolden(t *testing.T, from, to string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(to, name)); err != nil {
			t.Fatal(err)
		}
		apptest.Copy(t, filepath.Join(from, name), filepath.Join(to, name))
	}
}
