package apptest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// envHold makes the program tell of the nth of its files or folders with a prefix that is complete,
// by a byte on descriptor 3, and then go no further than to the next of them until it has a signal:
// tests that interrupt it come in time, however late they are themselves. Its value is n, a colon,
// and the prefix of the path.
const envHold = "ONNXRL_TEST_HOLD"

func init() {
	count, prefix, ok := strings.Cut(os.Getenv(envHold), ":")
	if !ok {
		return
	}
	d := &heldDisk{Disk: atomicfile.OS, prefix: prefix, told: os.NewFile(3, "told"), signals: make(chan os.Signal, 1)}
	if _, err := fmt.Sscan(count, &d.left); err != nil {
		panic(err)
	}
	signal.Notify(d.signals, os.Interrupt, syscall.SIGTERM)
	atomicfile.OS = d
}

// heldDisk is the disk of a program that is held.
type heldDisk struct {
	atomicfile.Disk
	prefix  string
	told    *os.File
	signals chan os.Signal
	mu      sync.Mutex
	left    int
}

// Rename renames as the disk does, and holds and tells as envHold says.
func (d *heldDisk) Rename(from, to string) error {
	return d.hold(to, func() error { return d.Disk.Rename(from, to) })
}

// Append is another way in which a file becomes complete.
func (d *heldDisk) Append(path string, at int64, text []byte) error {
	return d.hold(path, func() error { return d.Disk.Append(path, at, text) })
}

func (d *heldDisk) hold(path string, do func() error) error {
	if !strings.HasPrefix(path, d.prefix) {
		return do()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 {
		<-d.signals
		// It goes on as any other from here.
		d.left = -1
	}
	err := do()
	if err == nil && d.left > 0 {
		if d.left--; d.left == 0 {
			_, err = d.told.Write([]byte{'.'})
		}
	}
	return err
}

// StartHeld starts the program and returns when n of its files or folders with a prefix are
// complete. It is held then, and ends only by a signal.
func StartHeld(t *testing.T, cmd *exec.Cmd, n int, prefix string) error {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d:%s", envHold, n, prefix))
	cmd.ExtraFiles = []*os.File{w}
	if err := errors.Join(cmd.Start(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
		return fmt.Errorf("the program ended before there were %d of %s*: %v", n, prefix, cmd.Wait())
	}
	return nil
}

// Signalled runs onnxrl and sends it a signal when n of its files or folders with a prefix are
// complete. It returns the exit status (-1 for a death by signal) and the standard error.
func Signalled(t *testing.T, prefix string, n int, sig os.Signal, args ...string) (int, string) {
	t.Helper()
	cmd := Program(t, args...)
	var errw strings.Builder
	cmd.Stderr = &errw
	if err := StartHeld(t, cmd, n, prefix); err != nil {
		t.Fatalf("%v\n%s", err, errw.String())
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	// How it ended is what is returned.
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), errw.String()
}

// Interrupt runs onnxrl and sends it a signal when n more checkpoints of the run in dir have been
// written.
func Interrupt(t *testing.T, dir string, n int, sig os.Signal, args ...string) (int, string) {
	t.Helper()
	return Signalled(t, filepath.Join(dir, run.CheckpointDir, "ckpt-"), n, sig, args...)
}
