package atomicfile

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReleasedWhileAProgramStarts: a lock that is released is free, though a program that is being
// started at that moment still has the file open.
func TestReleasedWhileAProgramStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	held := -1
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err != nil || to != path {
			continue
		}
		n, err := strconv.Atoi(fd.Name())
		if err != nil {
			t.Fatal(err)
		}
		if held, err = unix.Dup(n); err != nil {
			t.Fatal(err)
		}
	}
	if held < 0 {
		t.Fatal("the lock's file is not open")
	}
	defer unix.Close(held)
	if err := release(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
}
