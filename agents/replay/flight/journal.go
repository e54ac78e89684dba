package flight

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	files "github.com/onnxrl/onnxrl/runtime/journal"
)

// A table's journal is files journal-N.log (package runtime/journal), N being the number of the first
// record. The body of a frame is a group: records, each after its length. A group is what one fsync
// made durable, so what the end of the machine tears is the last group of the last file.
const journalPrefix = "journal-"

// journal is appended to by one goroutine at a time; many may wait for the disk at once, and share
// its fsyncs.
type journal struct {
	dir string

	mu      sync.Mutex
	written sync.Cond // of mu: a group is on the disk, or err is set
	file    *files.Writer
	// next is the number of the next record, durable the one after the last that is on the disk, and
	// first that of the first record of the file.
	next, durable, first int64
	// pending are the records that wait, after room for their group's head; spare is memory.
	pending, spare []byte
	writing        bool
	bytes          int64
	// err is the first error of the disk, after which nothing is written any more: what an fsync
	// that failed has left behind is not known.
	err error
}

// opening says what becomes of what cannot be read.
type opening struct {
	// note receives a group that was cut off, and left out.
	note func(text string)
	// lost, unless nil, receives each damage, behind which reading goes on; without it damage is an error.
	lost func(*files.Damage) error
}

// openJournal reads the records of a folder from a number on, and goes on after the last. A group
// that is cut off at the very end is removed; a fault before it is damage.
func openJournal(dir string, from int64, o opening, read func(record []byte) error) (*journal, error) {
	j := &journal{dir: dir, next: from, pending: make([]byte, files.FrameHead)}
	j.written.L = &j.mu
	list, err := files.Files(dir, journalPrefix)
	if err != nil {
		return nil, err
	}
	for i, f := range list {
		if i+1 < len(list) && list[i+1].First <= from {
			continue
		}
		if f.First > j.next {
			if o.lost == nil {
				return nil, fmt.Errorf("journal %s begins with record %d, and record %d is needed", f.Path, f.First, j.next)
			}
			if err := o.lost(&files.Damage{Path: f.Path, From: j.next, To: f.First, Why: "the files before it are not there"}); err != nil {
				return nil, err
			}
			j.next = f.First
		}
		if err := j.read(f, i == len(list)-1, from, o, read); err != nil {
			return nil, err
		}
	}
	j.durable = j.next
	return j, j.rotate()
}

// read calls to with the records of a file, from a number on.
func (j *journal) read(f files.File, last bool, from int64, o opening, to func([]byte) error) error {
	r, err := f.Read(last, o.lost, func(n int64, group []byte) (int64, error) {
		for ; len(group) > 0; n++ {
			if len(group) < 4 || int(binary.LittleEndian.Uint32(group)) > len(group)-4 {
				return 0, fmt.Errorf("%s: record %d is longer than its group", f.Path, n)
			}
			end := 4 + int(binary.LittleEndian.Uint32(group))
			if n >= from {
				if err := to(group[4:end:end]); err != nil {
					return 0, fmt.Errorf("%s: record %d: %w", f.Path, n, err)
				}
			}
			group = group[end:]
		}
		return n, nil
	})
	j.next = max(j.next, r.Next)
	if err != nil || r.Torn == 0 {
		return err
	}
	o.note(fmt.Sprintf("%s: the last %d bytes, from byte %d on, are of a group of records that is not whole, as the end of the program or of the machine leaves it; they are removed", f.Path, r.Torn, r.End))
	return cutOff(f.Path, r.End)
}

// cutOff makes a file end at a byte, on the disk: another file follows it from now on.
func cutOff(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(at), f.Sync(), f.Close())
}

// append adds a record and returns what wait needs. The record is copied.
func (j *journal) append(record []byte) int64 {
	if j == nil {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pending = binary.LittleEndian.AppendUint32(j.pending, uint32(len(record)))
	j.pending = append(j.pending, record...)
	j.next++
	return j.next
}

// failed returns the error of the disk.
func (j *journal) failed() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// wait returns when the records before a number are on the disk. Whoever finds nobody writing
// writes for all.
func (j *journal) wait(number int64) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.durable < number && j.err == nil {
		if j.writing {
			j.written.Wait()
			continue
		}
		j.writing = true
		group, from, to, file := j.pending, j.durable, j.next, j.file
		j.pending = append(j.spare[:0], make([]byte, files.FrameHead)...)
		j.mu.Unlock()
		file.Seal(group, from)
		err := file.Write(group)
		if err == nil {
			err = file.Sync()
		}
		j.mu.Lock()
		j.spare, j.writing = group, false
		j.bytes += int64(len(group))
		if err != nil {
			j.err = fmt.Errorf("journal: %w; nothing more is taken until the server is started again", err)
		} else {
			j.durable = to
		}
		j.written.Broadcast()
	}
	return j.err
}

// most is how many bytes of records whoever appends many of them lets wait.
const most = 64 << 20

// full waits until the records before a number are on the disk, if too many bytes wait for it.
func (j *journal) full(number int64) error {
	j.mu.Lock()
	n := len(j.pending)
	j.mu.Unlock()
	if n < most {
		return nil
	}
	return j.wait(number)
}

// rotate begins another file with the next record; what was appended is on the disk.
func (j *journal) rotate() error {
	if j == nil {
		return nil
	}
	if err := j.wait(j.number()); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file != nil && j.first == j.next {
		return nil
	}
	f, err := files.Create(j.dir, journalPrefix, j.next)
	if err != nil {
		return err
	}
	if j.file != nil {
		err = j.file.Close()
	}
	j.file, j.first, j.bytes = f, j.next, 0
	return err
}

// number is that of the next record.
func (j *journal) number() int64 {
	if j == nil {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next
}

// size is the number of bytes of the file.
func (j *journal) size() int64 {
	if j == nil {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes
}

// forget removes the files whose records all lie before a number.
func (j *journal) forget(before int64) error {
	list, err := files.Files(j.dir, journalPrefix)
	if err != nil {
		return err
	}
	for i, f := range list {
		if i+1 < len(list) && list[i+1].First <= before {
			if err := os.Remove(f.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// close writes what waits.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return errors.Join(j.wait(j.number()), j.file.Close())
}
