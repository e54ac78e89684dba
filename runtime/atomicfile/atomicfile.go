package atomicfile

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrLocked says that another process holds a lock.
var ErrLocked = errors.New("another process holds the lock")

// WriteFile replaces the file at path by what write writes. The directory must exist. New files are
// readable by all, as far as the process's umask allows. On an error, of write or of the disk, the
// old file is unchanged.
func WriteFile(path string, write func(w io.Writer) error) error {
	return WriteFileOn(OS, path, write)
}

// WriteBytes is WriteFile of bytes that are there.
func WriteBytes(path string, b []byte) error {
	return WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// WriteFileOn is WriteFile on a given disk.
func WriteFileOn(d Disk, path string, write func(w io.Writer) error) error {
	if err := replace(d, path, write); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteNamedOn writes a file into a directory under a name that write returns, which may depend on
// what it has written. Otherwise it is WriteFileOn.
func WriteNamedOn(d Disk, dir string, write func(w io.Writer) (name string, err error)) error {
	path := filepath.Join(dir, "new")
	err := replaceAs(d, TempName(path), &path, func(w io.Writer) error {
		name, err := write(w)
		path = filepath.Join(dir, name)
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func replace(d Disk, path string, write func(w io.Writer) error) error {
	return replaceAs(d, TempName(path), &path, write)
}

// replaceAs writes into a temporary file, which then has the path that is there after write.
func replaceAs(d Disk, temp string, path *string, write func(w io.Writer) error) (err error) {
	f, err := d.Create(temp)
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			err = errors.Join(err, d.RemoveAll(temp))
		}
	}()
	if err := fill(f, write); err != nil {
		return err
	}
	if closeBeforeRename {
		closed = true
		if err := f.Close(); err != nil {
			return err
		}
	}
	if err := d.Rename(temp, *path); err != nil {
		return err
	}
	// The new content is in place now. What fails after this is reported, but there is nothing to
	// undo.
	return d.SyncDir(filepath.Dir(*path))
}

// fill writes through a buffer and makes the content durable.
func fill(f File, write func(w io.Writer) error) error {
	w := bufio.NewWriterSize(f, 64<<10)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// CreateFileOn writes a new file at path, which must not exist, and makes its content durable but
// not its name. It is for files in a directory that is itself temporary and becomes visible by a
// rename.
func CreateFileOn(d Disk, path string, write func(w io.Writer) error) (err error) {
	f, err := d.Create(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := errors.Join(fill(f, write), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// There is an error where a file that is open is not, or no more, what its path names: somebody has
// removed or replaced it, and what is written into it is found by nobody.
func There(f *os.File) error {
	at, err := os.Stat(f.Name())
	if err == nil {
		var open fs.FileInfo
		if open, err = f.Stat(); err == nil && os.SameFile(at, open) {
			return nil
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%s was removed or replaced while it was written: what was in it is lost, and so is what was written since", f.Name())
}

// TempName returns a name for a temporary file or directory beside path that nothing else uses.
func TempName(path string) string {
	dir, name := filepath.Split(path)
	return dir + "." + name + ".tmp-" + rand.Text()[:16]
}

// IsTemp reports whether name, without a directory, is one that TempName makes.
func IsTemp(name string) bool {
	return strings.HasPrefix(name, ".") && strings.Contains(name, ".tmp-")
}

// Clean removes the temporary files that killed processes have left in dir. Files that a live
// process is writing stay.
func Clean(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("clean %s: %w", dir, err)
	}
	var errs []error
	for _, e := range names {
		path := filepath.Join(dir, e.Name())
		if !IsTemp(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		if err := removeStale(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("clean %s: %w", dir, errors.Join(errs...))
	}
	return nil
}
