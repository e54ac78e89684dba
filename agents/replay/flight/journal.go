package flight

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// A journal is files journal-N.log, N being the number of the first record, each of groups: length
// and CRC-32C, 4 bytes each, little-endian, and records, each after its length. A group is what one
// fsync made durable, so what the end of the machine tears is the last group of the last file.
const journalPattern = "journal-*.log"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// journal is appended to by one goroutine at a time; many may wait for the disk at once, and share
// its fsyncs.
type journal struct {
	dir string

	mu      sync.Mutex
	written sync.Cond // of mu: a group is on the disk, or err is set
	file    *os.File
	// next is the number of the next record, durable the one after the last that is on the disk.
	next, durable int64
	// pending are the records that wait, after room for their group's head; spare is memory.
	pending, spare []byte
	writing        bool
	bytes          int64
	// err is the first error of the disk, after which nothing is written any more: what an fsync
	// that failed has left behind is not known.
	err error
}

const groupHead = 8

// openJournal reads the records of a folder from a number on, and goes on after the last. A group
// that is cut off at the very end is removed; a fault before it is an error.
func openJournal(dir string, from int64, read func(record []byte) error) (*journal, error) {
	j := &journal{dir: dir, next: from, pending: make([]byte, groupHead)}
	j.written.L = &j.mu
	list, err := j.files()
	if err != nil {
		return nil, err
	}
	for i, f := range list {
		if i+1 < len(list) && list[i+1].first <= from {
			continue
		}
		if f.first > j.next {
			return nil, fmt.Errorf("journal %s begins with record %d, and record %d is needed", f.path, f.first, j.next)
		}
		if err := j.read(f, i == len(list)-1, from, read); err != nil {
			return nil, err
		}
	}
	j.durable = j.next
	return j, j.rotate()
}

type journalFile struct {
	path  string
	first int64
}

func (j *journal) files() ([]journalFile, error) {
	names, err := filepath.Glob(filepath.Join(j.dir, journalPattern))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var list []journalFile
	for _, name := range names {
		f := journalFile{path: name}
		if _, err := fmt.Sscanf(filepath.Base(name), "journal-%d.log", &f.first); err != nil {
			return nil, fmt.Errorf("%s: %w; expected a name such as journal-000000000000000.log", name, err)
		}
		list = append(list, f)
	}
	return list, nil
}

// read calls to with the records of a file, from a number on.
func (j *journal) read(f journalFile, last bool, from int64, to func([]byte) error) error {
	b, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	n := f.first
	for off := 0; off < len(b); {
		rest := b[off:]
		size := -1
		if len(rest) >= groupHead {
			size = int(binary.LittleEndian.Uint32(rest))
		}
		torn := size <= 0 || size > len(rest)-groupHead
		if !torn && crc32.Checksum(rest[groupHead:groupHead+size], castagnoli) != binary.LittleEndian.Uint32(rest[4:]) {
			if size < len(rest)-groupHead {
				return fmt.Errorf("%s: byte %d: the checksum differs, and there is more behind it: the file is damaged", f.path, off)
			}
			torn = true
		}
		if torn {
			if !last {
				return fmt.Errorf("%s: byte %d: the file ends within a group of records, and is not the last", f.path, off)
			}
			return cutOff(f.path, int64(off))
		}
		for group := rest[groupHead : groupHead+size]; len(group) > 0; n++ {
			if len(group) < 4 || int(binary.LittleEndian.Uint32(group)) > len(group)-4 {
				return fmt.Errorf("%s: byte %d: a record that is longer than its group", f.path, off)
			}
			end := 4 + int(binary.LittleEndian.Uint32(group))
			if n >= from {
				if err := to(group[4:end]); err != nil {
					return fmt.Errorf("%s: record %d: %w", f.path, n, err)
				}
				j.next = n + 1
			}
			group = group[end:]
		}
		off += groupHead + size
	}
	j.next = max(j.next, n)
	return nil
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
		group, to, file := j.pending, j.next, j.file
		j.pending = append(j.spare[:0], make([]byte, groupHead)...)
		j.mu.Unlock()
		binary.LittleEndian.PutUint32(group, uint32(len(group)-groupHead))
		binary.LittleEndian.PutUint32(group[4:], crc32.Checksum(group[groupHead:], castagnoli))
		_, err := file.Write(group)
		if err == nil {
			err = file.Sync()
		}
		j.mu.Lock()
		j.spare, j.writing = group, false
		j.bytes += int64(len(group))
		if err != nil {
			j.err = fmt.Errorf("journal: %w; nothing more is taken until the server is started anew", err)
		} else {
			j.durable = to
		}
		j.written.Broadcast()
	}
	return j.err
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
	f, err := os.OpenFile(filepath.Join(j.dir, fmt.Sprintf("journal-%015d.log", j.next)), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if err := atomicfile.OS.SyncDir(j.dir); err != nil {
		return errors.Join(err, f.Close())
	}
	if j.file != nil {
		err = j.file.Close()
	}
	j.file, j.bytes = f, 0
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
	list, err := j.files()
	if err != nil {
		return err
	}
	for i, f := range list {
		if i+1 < len(list) && list[i+1].first <= before {
			if err := os.Remove(f.path); err != nil {
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
