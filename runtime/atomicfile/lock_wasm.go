package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// WebAssembly has no locks on files, and no other processes: locks are among the goroutines.

// writing has the temporary files of this program, open or closed, by their names, which are random.
var writing sync.Map

func isOpen(f any) bool {
	_, err := f.(*os.File).Stat()
	return !errors.Is(err, os.ErrClosed)
}

// lock notes the file, and forgets those that are closed by now.
func lock(f *os.File) error {
	writing.Range(func(name, f any) bool {
		if !isOpen(f) {
			writing.Delete(name)
		}
		return true
	})
	writing.Store(filepath.Base(f.Name()), f)
	return nil
}

// removeStale removes the file unless this program is writing it.
func removeStale(path string) error {
	if f, ok := writing.Load(filepath.Base(path)); ok && isOpen(f) {
		return nil
	}
	return os.Remove(path)
}

var locked sync.Map

// Lock takes an exclusive lock on path, a file that is created where it is missing, and returns the
// function that releases it. It does not wait: ErrLocked says that somebody else holds the lock.
// Other processes are not kept out.
func Lock(path string) (release func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	key := filepath.Clean(path)
	if _, taken := locked.LoadOrStore(key, true); taken {
		return nil, fmt.Errorf("lock %s: %w", path, ErrLocked)
	}
	return func() error { locked.Delete(key); return nil }, nil
}

// syncDir does nothing: directories cannot be synced.
func syncDir(string) error { return nil }

// closeBeforeRename is true where an open file cannot be renamed.
const closeBeforeRename = false
