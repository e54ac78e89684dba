package checkpoint

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

const (
	childVariable = "CHECKPOINT_TEST_CHILD"
	childSize     = 200_000
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		if err := saveForever(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func writeSum(t *testing.T, dir string, manifest []byte) {
	t.Helper()
	line := fmt.Sprintf("%x  %s\n", sha256.Sum256(manifest), manifestFile)
	if err := os.WriteFile(filepath.Join(dir, sumFile), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tickingDisk reports every operation on standard output, so that the parent can kill in the middle
// of any of them without looking at a clock.
type tickingDisk struct{ atomicfile.Disk }

func tick() { os.Stdout.Write([]byte{'.'}) }

func (d tickingDisk) Create(path string) (atomicfile.File, error) {
	tick()
	f, err := d.Disk.Create(path)
	return tickingFile{f}, err
}
func (d tickingDisk) Mkdir(path string) error      { tick(); return d.Disk.Mkdir(path) }
func (d tickingDisk) Rename(from, to string) error { tick(); return d.Disk.Rename(from, to) }
func (d tickingDisk) RemoveAll(path string) error  { tick(); return d.Disk.RemoveAll(path) }
func (d tickingDisk) SyncDir(path string) error    { tick(); return d.Disk.SyncDir(path) }

type tickingFile struct{ atomicfile.File }

func (f tickingFile) Write(p []byte) (int, error) { tick(); return f.File.Write(p) }
func (f tickingFile) Sync() error                 { tick(); return f.File.Sync() }
func (f tickingFile) Close() error                { tick(); return f.File.Close() }

// saveForever is the child process: it resumes from the latest checkpoint and saves every step,
// until it is killed.
func saveForever(dir string) error {
	s, err := OpenStore(dir, Options{KeepLast: 2, Disk: tickingDisk{atomicfile.OS}})
	if err != nil {
		return err
	}
	state := newCounters(0, childSize)
	c, err := Latest(dir)
	if err == nil {
		err = c.Load(state)
	}
	if err != nil && !errors.Is(err, ErrNone) {
		return err
	}
	for {
		state = newCounters(state.Step+1, childSize)
		if _, err := s.Save(Meta{Kind: "test", Step: state.Step}, state); err != nil {
			return err
		}
	}
}

// A process is killed at random moments of saving and pruning; each time the latest checkpoint is
// whole, never older than one that was published before, and the next process resumes from it.
func TestKillDuringCheckpoint(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenStore(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(Meta{Kind: "test", Step: 0}, newCounters(0, childSize)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	r := rand.New(rand.NewPCG(2, 2))
	kills := longtest.Cases(t, 40, 12)
	step, partial := int64(0), 0
	for range kills {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childVariable+"="+dir)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, bufio.NewReaderSize(out, 16), 1+r.Int64N(60)); err != nil {
			t.Fatal(err)
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // reports the kill

		for _, name := range listNames(t, dir) {
			if atomicfile.IsTemp(name) {
				partial++
				break
			}
		}
		c, err := Latest(dir)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if c.Step < step {
			t.Fatalf("the latest step went back from %d to %d", step, c.Step)
		}
		step = c.Step
		checkLoads(t, c.Path, step, childSize)
	}
	if step < int64(kills/4) || partial == 0 && !testing.Short() {
		t.Errorf("%d steps saved, %d kills left a partial directory: the kills did not hit anything", step, partial)
	}
	t.Logf("%d kills, %d left a partial directory, latest step %d", kills, partial, step)
}
