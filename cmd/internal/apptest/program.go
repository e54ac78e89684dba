package apptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// envRun makes the test binary behave as the program: the tests run a real process without building
// it again.
const envRun = "ONNXRL_TEST_RUN"

// shared is a folder for what several tests of a package use.
var shared string

// App is the program under test: as a process, which it ends, and as one command line in the
// process of the tests.
type App struct {
	Main    func()
	Execute func(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int
}

// inside is what Run runs.
var inside App

// Main is what a package's TestMain does: it runs the tests, or the program where the test binary
// was started as that.
func Main(m *testing.M, program App) {
	if os.Getenv(envRun) != "" {
		program.Main()
	}
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		// A program whose environment says nothing of this would run all tests, which start it again.
		fmt.Fprintf(os.Stderr, "%s was started without %s in its environment\n", os.Args[0], envRun)
		os.Exit(2)
	}
	inside = program
	// Many short commands leave much behind in a small heap, which the collector would look through all
	// the time: it waits until the heap is five times what is alive.
	debug.SetGCPercent(400)
	// Processes that commands start of their own file are the program, too. Work of a low priority,
	// as the environment may want it, would wait for every other package's tests. Texts are as wide as
	// they are written.
	for _, name := range []string{envRun + "=1", "ONNXRL_NICE=0", "COLUMNS=0", "GOGC=400"} {
		key, value, _ := strings.Cut(name, "=")
		if err := os.Setenv(key, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	dir, err := os.MkdirTemp("", "apptest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Shared makes a folder for what several tests of a package use; it is removed when all have ended.
func Shared(t *testing.T, pattern string) string {
	t.Helper()
	dir, err := os.MkdirTemp(shared, pattern)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Program returns a command that is onnxrl itself in a process of its own: for tests of signals,
// crashes and of what a process is given. What only runs a command to its end calls [Run].
func Program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	// Tests append to it.
	cmd.Env = os.Environ()
	return cmd
}

// OtherBuild returns the path of a program that does what Program does and is another build of it: its
// file has one byte more.
func OtherBuild(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(path, append(text, 0), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Engines are the engines that this build has: without cgo there is no ONNX Runtime.
func Engines() []string {
	if ort.Cgo {
		return []string{ort.Name, portable.Name}
	}
	return []string{portable.Name}
}

// Interrupted is the exit status of a program that a signal has ended.
const Interrupted = 130

// Result is what became of a program that ran to its end.
type Result struct {
	Code     int
	Out, Err string
}

// Run runs a command line to its end, in the process of the tests.
func Run(t *testing.T, args ...string) Result {
	t.Helper()
	var out, errw bytes.Buffer
	code := inside.Execute(t.Context(), args, strings.NewReader(""), &out, &errw)
	return Result{code, out.String(), errw.String()}
}

// RunProgram runs [Program] to its end. It must not panic.
func RunProgram(t *testing.T, args ...string) Result {
	t.Helper()
	cmd := Program(t, args...)
	var out, errw bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errw
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r := Result{cmd.ProcessState.ExitCode(), out.String(), errw.String()}
	if strings.Contains(r.Err, "goroutine ") || strings.Contains(r.Err, "panic:") {
		t.Fatalf("onnxrl %s panicked:\n%s", strings.Join(args, " "), r.Err)
	}
	return r
}

// Succeed runs the program and expects exit status 0.
func Succeed(t *testing.T, args ...string) string {
	t.Helper()
	r := Run(t, args...)
	if r.Code != 0 {
		t.Fatalf("onnxrl %s: exit status %d\n%s%s", strings.Join(args, " "), r.Code, r.Out, r.Err)
	}
	return r.Out
}

// Refuse runs the program and expects exit status 1 and one line of error that contains every one
// of says.
func Refuse(t *testing.T, args []string, says ...string) {
	t.Helper()
	r := Run(t, args...)
	want := 1
	if strings.Contains(r.Err, " has no command ") || strings.Contains(r.Err, "unknown flag") {
		want = 2
	}
	if r.Code != want {
		t.Errorf("onnxrl %s: exit status %d, expected %d\n%s%s", strings.Join(args, " "), r.Code, want, r.Out, r.Err)
	}
	if !ort.Cgo {
		// The one warning that the pure-Go engine is used comes before whatever is wrong.
		if first, rest, ok := strings.Cut(r.Err, "\n"); ok && strings.HasPrefix(first, "onnxrl: warning: ONNX Runtime is not available") {
			r.Err = rest
		}
	}
	begins := "onnxrl: "
	if slices.Contains(args, "--json") {
		begins = `{"error":"`
	}
	if strings.Count(r.Err, "\n") != 1 || !strings.HasPrefix(r.Err, begins) {
		t.Errorf("onnxrl %s: expected one line of error, got\n%s", strings.Join(args, " "), r.Err)
	}
	for _, s := range says {
		if !strings.Contains(r.Err, s) {
			t.Errorf("onnxrl %s: the error does not say %q:\n%s", strings.Join(args, " "), s, r.Err)
		}
	}
}
