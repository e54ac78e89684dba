package atomicfile_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/atomicfile/faultdisk"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

const childVariable = "ATOMICFILE_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		rewriteForever(path)
	}
	os.Exit(m.Run())
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestWriteFileReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.txt")
	for _, content := range []string{"one", "", strings.Repeat("long", 100_000)} {
		if err := atomicfile.WriteFile(path, text(content)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != content {
			t.Errorf("%d bytes, want %d", len(got), len(content))
		}
	}
	if got := names(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("directory holds %v", got)
	}
}

func TestWriteFileErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	if err := atomicfile.WriteFile(path, text("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := atomicfile.WriteFile(path, func(w io.Writer) error {
		io.WriteString(w, strings.Repeat("new", 100_000))
		return broken
	})
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "write "+path) {
		t.Errorf("error %v", err)
	}
	if read(t, path) != "old" || len(names(t, dir)) != 1 {
		t.Errorf("after an error: %q, %v", read(t, path), names(t, dir))
	}
	if err := atomicfile.WriteFile(filepath.Join(dir, "none", "f"), text("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
}

// Every operation fails once; afterwards there is the old or the new content and no temporary file.
func TestEveryOperationMayFail(t *testing.T) {
	fault := errors.New("fault")
	old, fresh := "old", strings.Repeat("new", 50_000)
	failures, kept := 0, 0
	for n := 1; ; n++ {
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		if err := atomicfile.WriteFile(path, text(old)); err != nil {
			t.Fatal(err)
		}
		disk := faultdisk.New(atomicfile.OS)
		disk.FailAt(n, fault)
		err := atomicfile.WriteFileOn(disk, path, text(fresh))
		if !disk.Failed() {
			if err != nil {
				t.Errorf("without a fault: %v", err)
			}
			break
		}
		failures++
		if !errors.Is(err, fault) {
			t.Errorf("operation %d failed, but the error is %v", n, err)
		}
		switch read(t, path) {
		case old:
			kept++
		case fresh:
		default:
			t.Errorf("operation %d failed and left %d bytes", n, len(read(t, path)))
		}
		if got := names(t, dir); len(got) != 1 {
			t.Errorf("operation %d failed and left %v", n, got)
		}
	}
	// Create, at least two writes, sync, rename, the directory's sync, close.
	if failures < 7 || kept < failures-2 {
		t.Errorf("%d operations failed, %d kept the old content", failures, kept)
	}
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := atomicfile.WriteFile(path, text("old")); err != nil {
		t.Fatal(err)
	}
	for _, room := range []int64{0, 1, 65536, 99_999} {
		disk := faultdisk.New(atomicfile.OS)
		disk.SetRoom(room)
		err := atomicfile.WriteFileOn(disk, path, text(strings.Repeat("x", 100_000)))
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room %d: error %v", room, err)
		}
		if read(t, path) != "old" || len(names(t, dir)) != 1 {
			t.Errorf("room %d: %d bytes, %v", room, len(read(t, path)), names(t, dir))
		}
	}
	disk := faultdisk.New(atomicfile.OS)
	disk.SetRoom(100_000)
	if err := atomicfile.WriteFileOn(disk, path, text(strings.Repeat("x", 100_000))); err != nil {
		t.Errorf("enough room: %v", err)
	}
}

func TestCleanKeepsFilesBeingWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	stale := atomicfile.TempName(path)
	if err := os.WriteFile(stale, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !atomicfile.IsTemp(filepath.Base(stale)) || atomicfile.IsTemp("f") || atomicfile.IsTemp(".hidden") {
		t.Error("IsTemp")
	}
	err := atomicfile.WriteFile(path, func(w io.Writer) error {
		if n := len(names(t, dir)); n != 2 {
			t.Errorf("%d files while writing, want 2", n)
		}
		if err := atomicfile.Clean(dir); err != nil {
			t.Error(err)
		}
		if n := len(names(t, dir)); n != 1 {
			t.Errorf("%d files after cleaning, want the one being written", n)
		}
		return text("new")(w)
	})
	if err != nil || read(t, path) != "new" || len(names(t, dir)) != 1 {
		t.Errorf("%v, %v", err, names(t, dir))
	}
	if err := atomicfile.Clean(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
}

func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := atomicfile.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := atomicfile.Lock(path); !errors.Is(err, atomicfile.ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	release, err = atomicfile.Lock(path)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	release()
}

// generation is a content that proves by itself that it is whole.
func generation(n uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, n)
	b = append(b, bytes.Repeat([]byte{byte(n)}, 300_000+int(n%7)*1000)...)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// rewriteForever is the child process: it replaces the file again and again and reports every
// chunk, so that the parent can kill it in the middle of anything without looking at a clock.
func rewriteForever(path string) {
	for n := uint64(1); ; n++ {
		content := generation(n)
		err := atomicfile.WriteFile(path, func(w io.Writer) error {
			for len(content) > 0 {
				k := min(len(content), 10_000)
				if _, err := w.Write(content[:k]); err != nil {
					return err
				}
				content = content[k:]
				os.Stdout.Write([]byte{'.'})
			}
			return nil
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Stdout.Write([]byte{'|'})
	}
}

func TestKillInTheMiddle(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := atomicfile.WriteFile(path, func(w io.Writer) error { _, err := w.Write(generation(0)); return err }); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	const kills = 30
	whole, replaced := 0, 0
	for range kills {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childVariable+"="+path)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, bufio.NewReaderSize(out, 16), 1+r.Int64N(120)); err != nil {
			t.Fatal(err)
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // reports the kill
		got := []byte(read(t, path))
		n := binary.LittleEndian.Uint64(got)
		if bytes.Equal(got, generation(n)) {
			whole++
		}
		if n > 0 {
			replaced++
		}
		if err := atomicfile.Clean(dir); err != nil {
			t.Fatal(err)
		}
		if left := names(t, dir); len(left) != 1 {
			t.Fatalf("after cleaning: %v", left)
		}
	}
	if whole != kills || replaced == 0 {
		t.Errorf("%d of %d kills left a whole file, %d a new one", whole, kills, replaced)
	}
}

// TestCleanBetweenCreationAndLock: others clean all the time, and no file is removed between the
// moment that it is created and that it has its name.
func TestCleanBetweenCreationAndLock(t *testing.T) {
	longtest.Slow(t)
	dir := t.TempDir()
	const writers, each = 4, 2000
	var writing, cleaning sync.WaitGroup
	var done atomic.Bool
	for range 2 {
		cleaning.Go(func() {
			for !done.Load() {
				if err := atomicfile.Clean(dir); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range writers {
		path := filepath.Join(dir, strconv.Itoa(i))
		writing.Go(func() {
			for range each {
				temp := atomicfile.TempName(path)
				f, err := atomicfile.OS.Create(temp)
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(atomicfile.OS.Rename(temp, path), f.Close()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
	done.Store(true)
	cleaning.Wait()
	if left := names(t, dir); len(left) != writers {
		t.Errorf("%q are left, expected %d files", left, writers)
	}
}
