package atomicfile_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// The kernel itself refuses to write on: the process may not make files above a size.
func TestKernelRefusesToWrite(t *testing.T) {
	const limited = "ATOMICFILE_TEST_LIMITED"
	if path := os.Getenv(limited); path != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 100_000, Max: 100_000}); err != nil {
			t.Fatal(err)
		}
		err := atomicfile.WriteFile(path, text(strings.Repeat("x", 200_000)))
		if !errors.Is(err, syscall.EFBIG) {
			t.Errorf("error %v, want EFBIG", err)
		}
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := atomicfile.WriteFile(path, text("old")); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run", "^TestKernelRefusesToWrite$", "-test.v")
	child.Env = append(os.Environ(), limited+"="+path)
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestKernelRefusesToWrite") {
		t.Fatalf("limited process: %v\n%s", err, out)
	}
	if read(t, path) != "old" || len(names(t, dir)) != 1 {
		t.Errorf("left %q, %v", read(t, path), names(t, dir))
	}
}
