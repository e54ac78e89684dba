package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk is what writing atomically needs of a file system. Implementations are safe for concurrent
// use.
type Disk interface {
	// Create makes a file that must not exist yet.
	Create(path string) (File, error)
	// Mkdir makes a directory that must not exist yet; its parent exists.
	Mkdir(path string) error
	// Rename moves a file over another, or a directory to a name that is not taken.
	Rename(from, to string) error
	// Append makes text the end of a file, from the byte at, and makes it durable. What the file has
	// behind that byte is lost; a file that does not exist is made.
	Append(path string, at int64, text []byte) error
	// RemoveAll removes a file or a directory with everything in it; a path that does not exist is
	// no error.
	RemoveAll(path string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(path string) error
}

// File is a file being written.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// OS is the operating system's disk.
var OS Disk = osDisk{}

type osDisk struct{}

func (osDisk) Create(path string) (File, error) {
	for {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return nil, err
		}
		if err := lock(f); err != nil {
			f.Close()
			os.Remove(path)
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// Clean may have taken the file for a stale one between its creation and the lock.
		own, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		there, err := os.Stat(path)
		switch {
		case err == nil && os.SameFile(own, there):
			return f, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			f.Close()
			return nil, err
		}
		f.Close()
	}
}

func (d osDisk) Append(path string, at int64, text []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(at); err != nil {
		return err
	}
	if _, err := f.WriteAt(text, at); err != nil {
		return err
	}
	if err := f.Sync(); err != nil || at > 0 {
		return err
	}
	return d.SyncDir(filepath.Dir(path))
}

func (osDisk) Mkdir(path string) error      { return os.Mkdir(path, 0o777) }
func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (osDisk) RemoveAll(path string) error  { return os.RemoveAll(path) }
func (osDisk) SyncDir(path string) error    { return syncDir(path) }
