package livetrade

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A journal is files events-N.log, N being the number of the first event, each of frames: length
// and CRC-32C of an event, 4 bytes each, little-endian, and the event.
const (
	journalPrefix = "events-"
	journalSuffix = ".log"
	// segmentBytes is the size from which a file is followed by another, unless Retention says so.
	segmentBytes = 64 << 20
	maxEvent     = 16 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Journal is a recording of events that is appended to. It is not safe for concurrent use.
type Journal struct {
	dir  string
	file *os.File
	size int64
	next int64 // number of the next event
	buf  []byte
	// first is the number of the first event of the file, and limit the size from which it is
	// followed by another.
	first, limit int64
}

// OpenJournal opens the journal of a directory, or begins one. A frame that was cut off at the end,
// by the end of the program or of the machine, is removed; a fault before it is an error that names
// the file and the place.
func OpenJournal(dir string) (*Journal, error) {
	list, err := segments(dir)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &Journal{dir: dir, limit: segmentBytes}
	if len(list) == 0 {
		return j, j.begin()
	}
	last := list[len(list)-1]
	j.next, j.first = last.first, last.first
	whole, err := last.read(func(int64, []byte) error { j.next++; return nil })
	if err != nil && !errors.Is(err, errCut) {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if j.file, err = os.OpenFile(last.path, os.O_WRONLY, 0); err == nil {
		if err = j.file.Truncate(whole); err == nil {
			_, err = j.file.Seek(whole, io.SeekStart)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j.size = whole
	return j, nil
}

// begin begins a file.
func (j *Journal) begin() (err error) {
	j.file, err = os.OpenFile(filepath.Join(j.dir, fmt.Sprintf("%s%015d%s", journalPrefix, j.next, journalSuffix)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	j.size, j.first = 0, j.next
	return err
}

// Next is the number of the next event, which is the number of events that there are.
func (j *Journal) Next() int64 { return j.next }

// Append writes events. When it returns, they survive the end of the program; [Journal.Sync] makes
// them survive that of the machine.
func (j *Journal) Append(events ...Event) error {
	if len(events) == 0 {
		return nil
	}
	j.buf = j.buf[:0]
	for i := range events {
		start := len(j.buf)
		j.buf = append(j.buf, 0, 0, 0, 0, 0, 0, 0, 0)
		j.buf = events[i].append(j.buf)
		body := j.buf[start+8:]
		binary.LittleEndian.PutUint32(j.buf[start:], uint32(len(body)))
		binary.LittleEndian.PutUint32(j.buf[start+4:], crc32.Checksum(body, castagnoli))
	}
	if j.size >= j.limit {
		if err := errors.Join(j.file.Sync(), j.file.Close(), j.begin()); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	n, err := j.file.Write(j.buf)
	if err != nil {
		// Nothing that is half written may be followed by something.
		if n > 0 {
			err = errors.Join(err, j.file.Truncate(j.size))
		}
		return fmt.Errorf("journal: %w", err)
	}
	j.size += int64(n)
	j.next += int64(len(events))
	return nil
}

// Sync waits until the events are on the disk.
func (j *Journal) Sync() error { return j.file.Sync() }

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// Events calls to with the events of a directory's journal from the number from on, in order. The
// event's memory is used again, and an error of to is returned as it is. A frame that is cut off at
// the very end is left out.
func Events(dir string, from int64, to func(number int64, e *Event) error) error {
	list, err := segments(dir)
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	var e Event
	for i, s := range list {
		if i+1 < len(list) && list[i+1].first <= from {
			continue
		}
		if i == 0 && s.first > from {
			return fmt.Errorf("read journal: %s begins with event %d, and event %d is needed", s.path, s.first, from)
		}
		var theirs error
		_, err := s.read(func(n int64, body []byte) error {
			if n < from {
				return nil
			}
			if err := e.read(body); err != nil {
				return fmt.Errorf("%s: event %d: %w", s.path, n, err)
			}
			theirs = to(n, &e)
			return theirs
		})
		if theirs != nil {
			return theirs
		}
		if errors.Is(err, errCut) && i == len(list)-1 {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
	}
	return nil
}

// segment is a file of a journal.
type segment struct {
	path  string
	first int64
}

// segments are the files of a directory's journal in order.
func segments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []segment
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), journalPrefix)
		if text, ok = cutSuffixIf(ok, text, journalSuffix); !ok {
			continue
		}
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			list = append(list, segment{filepath.Join(dir, e.Name()), n})
		}
	}
	slices.SortFunc(list, func(a, b segment) int { return int(a.first - b.first) })
	return list, nil
}

func cutSuffixIf(ok bool, s, suffix string) (string, bool) {
	if !ok {
		return s, false
	}
	return strings.CutSuffix(s, suffix)
}

// errCut says that a file ends within a frame.
var errCut = errors.New("the file ends within an event")

// read calls to with the events of a file, and returns how many bytes are whole frames.
func (s segment) read(to func(number int64, body []byte) error) (whole int64, err error) {
	f, err := os.Open(s.path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	r := bufio.NewReaderSize(f, 1<<20)
	var header [8]byte
	var body []byte
	for n := s.first; ; n++ {
		switch _, err := io.ReadFull(r, header[:]); err {
		case nil:
		case io.EOF:
			return whole, nil
		case io.ErrUnexpectedEOF:
			return whole, fmt.Errorf("%s: byte %d: %w", s.path, whole, errCut)
		default:
			return whole, fmt.Errorf("%s: %w", s.path, err)
		}
		size := int64(binary.LittleEndian.Uint32(header[:]))
		if rest := info.Size() - whole - 8; size > rest {
			if size <= maxEvent {
				// The length may be what is damaged: then whole events follow.
				left := make([]byte, rest)
				if _, err := io.ReadFull(r, left); err != nil {
					return whole, fmt.Errorf("%s: %w", s.path, err)
				}
				if !holdsFrame(left) {
					return whole, fmt.Errorf("%s: byte %d: %w", s.path, whole, errCut)
				}
			}
			return whole, fmt.Errorf("%s: byte %d: event %d: a length of %d bytes", s.path, whole, n, size)
		}
		if size > maxEvent {
			return whole, fmt.Errorf("%s: byte %d: event %d: a length of %d bytes", s.path, whole, n, size)
		}
		body = slices.Grow(body[:0], int(size))[:size]
		if _, err := io.ReadFull(r, body); err != nil {
			return whole, fmt.Errorf("%s: %w", s.path, err)
		}
		if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(header[4:]) {
			if whole+8+size == info.Size() {
				// The machine ended before the last pages were written.
				return whole, fmt.Errorf("%s: byte %d: %w", s.path, whole, errCut)
			}
			return whole, fmt.Errorf("%s: byte %d: event %d is damaged: its checksum differs", s.path, whole, n)
		}
		if err := to(n, body); err != nil {
			return whole, err
		}
		whole += 8 + size
	}
}

// holdsFrame reports whether there is a whole frame anywhere in b.
func holdsFrame(b []byte) bool {
	for i := 0; i+8 < len(b); i++ {
		size := int64(binary.LittleEndian.Uint32(b[i:]))
		if size == 0 || size > int64(len(b)-i-8) || Kind(b[i+8]) > CaughtUp {
			continue
		}
		if crc32.Checksum(b[i+8:i+8+int(size)], castagnoli) == binary.LittleEndian.Uint32(b[i+4:]) {
			return true
		}
	}
	return false
}
