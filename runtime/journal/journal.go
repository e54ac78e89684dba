// Package journal is the form on disk of what is written down before it is acknowledged: files of
// frames that are appended to, and that are read again after the program or the machine has ended at
// any instant.
//
//	Create, Continue  begin a file, and go on behind the whole frames of one
//	File.Read         the frames of a file; what is damaged is told from what was cut off
//	Files             the files of a folder, in order
//
// # On disk
//
// A file is PREFIX-N.log, N being the number of its first record. It begins with two equal heads of
// 32 bytes, of which one is enough: "onnxrlJ1", a number drawn for the file (salt), N, and the
// CRC-32C of these. Frames follow: a mark of 4 bytes, the length of the body (4 bytes), the number
// of its first record (8), the CRC-32C of salt, number and body (4), the CRC-32C of salt and all of
// that (4), and the body. All numbers are little-endian. How many records a body has is its writer's
// business.
//
// # What was cut off, and what is damaged
//
// The end of the program or of the machine leaves the last frame of the last file incomplete. Where
// a whole frame, of a later number, lies behind one that is not whole, the latter was written once:
// it is damaged ([Damage]), and what it said was perhaps acknowledged. Because of the salt data in a
// body are never taken for a frame.
package journal

import (
	"bufio"
	"bytes"
	"crypto/rand"
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

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

const (
	magic    = "onnxrlJ1"
	headSize = 32
	// FrameHead is the number of bytes before the body of a frame, which [Writer.Seal] fills in.
	FrameHead = 24
	suffix    = ".log"
)

var (
	mark       = []byte("\x89fr\n")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// File is a file of a journal. First is the number of its first record.
type File struct {
	Path  string
	First int64
}

// Files lists the files of a folder whose names begin with a prefix, in the order of their records.
func Files(dir, prefix string) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []File
	for _, e := range entries {
		text, ours := strings.CutPrefix(e.Name(), prefix)
		text, ends := strings.CutSuffix(text, suffix)
		if !ours || !ends {
			continue
		}
		path := filepath.Join(dir, e.Name())
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%s: expected a name such as %s", path, name(prefix, 0))
		}
		list = append(list, File{path, n})
	}
	slices.SortFunc(list, func(a, b File) int { return int(min(max(a.First-b.First, -1), 1)) })
	return list, nil
}

func name(prefix string, first int64) string { return fmt.Sprintf("%s%015d%s", prefix, first, suffix) }

// Writer appends frames to a file. It is not safe for concurrent use.
type Writer struct {
	file *os.File
	salt uint64
	size int64
}

// Create begins the file of a folder whose first record has a number, in the place of one of that
// name. When it returns, the empty file is on the disk.
func Create(dir, prefix string, first int64) (_ *Writer, err error) {
	var salt [8]byte
	if _, err := rand.Read(salt[:]); err != nil {
		return nil, err
	}
	w := &Writer{salt: binary.LittleEndian.Uint64(salt[:]), size: 2 * headSize}
	if w.file, err = os.OpenFile(filepath.Join(dir, name(prefix, first)), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644); err != nil {
		return nil, err
	}
	h := head(w.salt, first)
	if _, err = w.file.Write(append(h, h...)); err == nil {
		err = errors.Join(w.file.Sync(), atomicfile.OS.SyncDir(dir))
	}
	if err != nil {
		return nil, errors.Join(err, w.file.Close())
	}
	return w, nil
}

// head is one of the two heads of a file.
func head(salt uint64, first int64) []byte {
	b := binary.LittleEndian.AppendUint64([]byte(magic), salt)
	b = binary.LittleEndian.AppendUint64(b, uint64(first))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return append(b, make([]byte, headSize-len(b))...)
}

// Continue goes on behind the whole frames of a file that was read; what lies behind them, which
// was cut off, is removed. Of a file that has no head any more see [Create].
func (f File) Continue(r Result) (*Writer, error) {
	file, err := os.OpenFile(f.Path, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	err = file.Truncate(r.End)
	if err == nil {
		_, err = file.Seek(r.End, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Writer{file, r.salt, r.End}, nil
}

// Path is that of the file.
func (w *Writer) Path() string { return w.file.Name() }

// Size is the number of bytes of the file.
func (w *Writer) Size() int64 { return w.size }

// Seal fills in the head of a frame, the first FrameHead bytes, of a body of less than 4 GiB whose
// first record has a number.
func (w *Writer) Seal(frame []byte, number int64) {
	body := frame[FrameHead:]
	copy(frame, mark)
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(body)))
	binary.LittleEndian.PutUint64(frame[8:], uint64(number))
	binary.LittleEndian.PutUint32(frame[16:], bodySum(w.salt, number, body))
	binary.LittleEndian.PutUint32(frame[20:], headSum(w.salt, frame))
}

func bodySum(salt uint64, number int64, body []byte) uint32 {
	return crc32.Update(addNumber(addNumber(0, salt), uint64(number)), castagnoli, body)
}

// addNumber is crc32.Update by the bytes of a number, the lowest first, without memory for them: what
// is given to that function escapes.
func addNumber(sum uint32, v uint64) uint32 {
	sum = ^sum
	for range 8 {
		sum = castagnoli[byte(sum)^byte(v)] ^ sum>>8
		v >>= 8
	}
	return ^sum
}

func headSum(salt uint64, frame []byte) uint32 {
	return crc32.Update(addNumber(0, salt), castagnoli, frame[:FrameHead-4])
}

// Write appends sealed frames. After an error nothing that is half written is left, unless the error
// says so.
func (w *Writer) Write(frames []byte) error {
	n, err := w.file.Write(frames)
	if err != nil {
		if n > 0 {
			err = errors.Join(err, w.file.Truncate(w.size))
		}
		return err
	}
	w.size += int64(n)
	return nil
}

// Sync waits until the frames are on the disk, where whoever reads the path finds them: a file that
// was removed or replaced meanwhile is an error.
func (w *Writer) Sync() error { return errors.Join(w.file.Sync(), atomicfile.There(w.file)) }

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }

// Result is what reading a file came to.
type Result struct {
	// Next is the number of the record after the last one.
	Next int64
	// End is the number of bytes of the file up to which frames are whole; 0 where not even the
	// head is.
	End int64
	// Torn is the number of bytes behind them that the end of the program or of the machine has cut
	// off.
	Torn int64
	salt uint64
}

// Damage is a part of a file that was written once and cannot be read any more. It is an error.
type Damage struct {
	Path string `json:"file"`
	// At is its first byte, Bytes how many there are.
	At    int64 `json:"byte"`
	Bytes int64 `json:"bytes"`
	// From is the number of the first record that is lost, To that of the first one behind them; 0
	// where the file has none behind them.
	From int64  `json:"from"`
	To   int64  `json:"to,omitzero"`
	Why  string `json:"why"`
}

// Error implements error.
func (d *Damage) Error() string {
	lost := fmt.Sprintf("records from number %d on", d.From)
	switch {
	case d.To == d.From+1:
		lost = fmt.Sprintf("record %d", d.From)
	case d.To > 0:
		lost = fmt.Sprintf("records %d to %d", d.From, d.To-1)
	}
	return fmt.Sprintf("%s: byte %d: the file is damaged: %s; %s cannot be read (%d bytes)", d.Path, d.At, d.Why, lost, d.Bytes)
}

// Read calls to with the frames of a file: the number of the first record and the body, whose memory
// is used again; to returns the number of the record after those of the body. last says that no file
// follows: then a frame at the end may have been cut off. Damage is given to damaged, after which
// reading goes on behind it unless that returns an error; without a damaged it is the error.
func (f File) Read(last bool, damaged func(*Damage) error, to func(number int64, body []byte) (next int64, err error)) (r Result, err error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return r, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return r, err
	}
	x := &reading{File: f, last: last, in: file, size: info.Size(), damaged: damaged, Result: Result{Next: f.First}}
	err = x.all(to)
	return x.Result, err
}

// reading is a file that is read.
type reading struct {
	File
	Result
	last    bool
	in      *os.File
	size    int64
	damaged func(*Damage) error
}

// lose tells of damage; to is the first byte, and the first record, behind it.
func (x *reading) lose(at, to, record int64, format string, args ...any) error {
	d := &Damage{Path: x.Path, At: at, Bytes: to - at, From: x.Next, To: record, Why: fmt.Sprintf(format, args...)}
	if x.damaged == nil {
		return d
	}
	return x.damaged(d)
}

func (x *reading) all(to func(int64, []byte) (int64, error)) error {
	heads := make([]byte, min(2*headSize, x.size))
	if _, err := x.in.ReadAt(heads, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", x.Path, err)
	}
	found := false
	for i := range 2 {
		if b := heads[min(i*headSize, len(heads)):]; len(b) >= headSize {
			x.salt = binary.LittleEndian.Uint64(b[len(magic):])
			if found = bytes.Equal(b[:headSize], head(x.salt, x.First)); found {
				break
			}
		}
	}
	switch {
	case found && x.size >= 2*headSize:
	case x.size <= 2*headSize && x.last:
		// It was begun, and nothing written to it.
		x.Torn = x.size
		return nil
	default:
		return x.lose(0, x.size, 0, "neither of its two heads is that of a journal's file whose first record is %d", x.First)
	}
	x.End = 2 * headSize
	r := bufio.NewReaderSize(io.NewSectionReader(x.in, x.End, x.size-x.End), int(min(1<<20, x.size)))
	var h [FrameHead]byte
	var body []byte
	for x.End < x.size {
		rest := x.size - x.End
		behind, why := x.End+1, "a frame has a head whose checksum differs"
		if rest >= FrameHead {
			if _, err := io.ReadFull(r, h[:]); err != nil {
				return fmt.Errorf("%s: %w", x.Path, err)
			}
			number, length, ok := x.open(h[:])
			switch {
			case ok && number != x.Next:
				why = fmt.Sprintf("a frame begins with record %d", number)
				behind = x.End
			case ok && length > rest-FrameHead:
				why, behind = fmt.Sprintf("the file ends within a frame of %d bytes", length), x.size
			case ok:
				body = slices.Grow(body[:0], int(length))[:length]
				if _, err := io.ReadFull(r, body); err != nil {
					return fmt.Errorf("%s: %w", x.Path, err)
				}
				behind = x.End + FrameHead + length
				if bodySum(x.salt, number, body) == binary.LittleEndian.Uint32(h[16:]) {
					next, err := to(number, body)
					if err != nil {
						return err
					}
					x.Next, x.End = next, behind
					continue
				}
				why = "a frame's checksum differs"
			}
		}
		at, record, err := x.search(behind)
		if err != nil {
			return err
		}
		if at < 0 && x.last {
			x.Torn = rest
			return nil
		}
		from := x.End
		if at < 0 {
			return x.lose(from, x.size, 0, "%s, and another file follows", why)
		}
		if err := x.lose(from, at, record, "%s, and a whole one follows at byte %d", why, at); err != nil {
			return err
		}
		x.End, x.Next = at, record
		r.Reset(io.NewSectionReader(x.in, at, x.size-at))
	}
	return nil
}

// open reads the head of a frame.
func (x *reading) open(h []byte) (number, length int64, ok bool) {
	ok = bytes.HasPrefix(h, mark) && binary.LittleEndian.Uint32(h[20:]) == headSum(x.salt, h)
	return int64(binary.LittleEndian.Uint64(h[8:])), int64(binary.LittleEndian.Uint32(h[4:])), ok
}

// search looks for the first whole frame from a byte on that has a later number; −1 is none.
func (x *reading) search(from int64) (at, number int64, err error) {
	block := min(1<<20, x.size)
	b := make([]byte, block+FrameHead)
	for ; from < x.size; from += block {
		n, err := x.in.ReadAt(b, from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, fmt.Errorf("%s: %w", x.Path, err)
		}
		for i := 0; ; i++ {
			k := bytes.Index(b[min(i, n):n], mark)
			if k < 0 {
				break
			}
			if i += k; int64(i) >= block || n-i < FrameHead {
				break
			}
			number, length, ok := x.open(b[i : i+FrameHead])
			at := from + int64(i)
			if !ok || number <= x.Next || length > x.size-at-FrameHead {
				continue
			}
			body := make([]byte, length)
			if _, err := x.in.ReadAt(body, at+FrameHead); err != nil {
				return 0, 0, fmt.Errorf("%s: %w", x.Path, err)
			}
			if bodySum(x.salt, number, body) == binary.LittleEndian.Uint32(b[i+16:]) {
				return at, number, nil
			}
		}
	}
	return -1, 0, nil
}
