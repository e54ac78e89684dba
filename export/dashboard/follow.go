package dashboard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	// longestLine is the most bytes of a line; longer ones are left out.
	longestLine = 1 << 20
	// tailBytes is how much before the place is compared to notice that a file was rewritten.
	tailBytes = 64
)

// follower reads the lines of a file that grows.
type follower struct {
	path   string
	offset int64
	// tail are the last bytes before offset.
	tail []byte
	info fs.FileInfo
	// skipping says that the line at offset is too long, and its end not yet found.
	skipping bool
	// long counts such lines, restarts how often the file began again.
	long, restarts int
}

// next calls line with whole lines, without their ends, that have come since, until at most budget
// bytes were read; buffer must hold longestLine and is overwritten. Before the first line of a file
// that is not the one of the last call, or was cut or rewritten, it calls begin. It returns the
// number of bytes that were read, and whether there may be more. A file that is not there is none
// of an error: it may come, and what was read of it stays.
func (f *follower) next(budget int, buffer []byte, begin func(), line func(text []byte)) (read int, more bool, err error) {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("watch: %w", err)
	}
	if !info.Mode().IsRegular() {
		return 0, false, fmt.Errorf("watch: %s is no regular file", f.path)
	}
	if f.info != nil && info.Size() == f.offset && os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) {
		return 0, false, nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return 0, false, fmt.Errorf("watch: %w", err)
	}
	defer file.Close()
	if f.info != nil && (!os.SameFile(info, f.info) || info.Size() < f.offset || !f.same(file)) {
		f.offset, f.tail, f.skipping = 0, f.tail[:0], false
		f.restarts++
		begin()
	}
	f.info = info
	for read < budget && f.offset < info.Size() {
		n, err := file.ReadAt(buffer, f.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return read, false, fmt.Errorf("watch %s at byte %d: %w", f.path, f.offset, err)
		}
		used := f.lines(buffer[:n], n == len(buffer), line)
		if used == 0 {
			return read, false, nil
		}
		f.keep(buffer[:used])
		f.offset += int64(used)
		read += used
		if n < len(buffer) {
			return read, false, nil
		}
	}
	return read, f.offset < info.Size(), nil
}

// lines hands out the whole lines at the beginning of text and returns how many bytes it has used.
func (f *follower) lines(text []byte, full bool, line func([]byte)) (used int) {
	for {
		i := bytes.IndexByte(text[used:], '\n')
		if i < 0 {
			if used == 0 && full || f.skipping {
				// Longer than the buffer, or the rest of such a line.
				f.skipping = true
				return len(text)
			}
			return used
		}
		if f.skipping {
			f.skipping = false
			f.long++
		} else {
			line(text[used : used+i])
		}
		used += i + 1
	}
}

// keep remembers the last bytes of what was read.
func (f *follower) keep(text []byte) {
	f.tail = append(f.tail, text[max(0, len(text)-tailBytes):]...)
	f.tail = f.tail[max(0, len(f.tail)-tailBytes):]
}

// same reports whether the bytes before the place are those that were read there.
func (f *follower) same(file *os.File) bool {
	var now [tailBytes]byte
	b := now[:len(f.tail)]
	_, err := file.ReadAt(b, f.offset-int64(len(b)))
	return err == nil && bytes.Equal(b, f.tail)
}
