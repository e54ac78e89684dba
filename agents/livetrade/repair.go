package livetrade

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/journal"
)

// Repaired says what has become of a journal that was repaired; the JSON keys are stable.
type Repaired struct {
	// Lost are the parts of the journal that cannot be read.
	Lost []journal.Damage `json:"lost"`
	// Dropped is the number of events behind them that are whole and that nothing leads to any
	// more.
	Dropped int64 `json:"dropped"`
	// From is the first event that the journal has now, and Next the one after the last.
	From int64 `json:"from"`
	Next int64 `json:"next"`
}

const (
	// damagedSuffix is that of the files that a repair has set aside, repairDir where it writes.
	damagedSuffix = ".damaged"
	repairDir     = "repair"
)

// Repair makes the journal of a state directory such that a service goes on with it, where it is
// damaged before the end. Decisions follow from all events in their order. Where the damage lies
// behind the snapshot, the events before it are kept: messages behind it are read again from the
// source, and commands and what a broker has reported are lost. Where it lies before the snapshot
// the journal begins with that, and nothing but history is lost. Files that are not used any more
// are kept, under names that end in .damaged. No service may have the directory.
func Repair(dir string) (r Repaired, err error) {
	release, err := atomicfile.Lock(filepath.Join(dir, lockFile))
	if err != nil {
		return r, fmt.Errorf("state %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, release()) }()
	list, err := journal.Files(dir, journalPrefix)
	if err != nil || len(list) == 0 {
		return r, err
	}
	x, err := inspect(list)
	if err != nil {
		return r, err
	}
	r.From, r.Next = list[0].First, x.next
	if r.Lost = x.lost; len(r.Lost) == 0 {
		return r, nil
	}
	snapshot, err := readSnapshot(dir)
	if err != nil {
		return r, err
	}
	if snapshot != nil && snapshot.Events > r.Lost[0].From {
		r.From, r.Next, err = restart(dir, list, snapshot)
	} else {
		r.Next, err = r.Lost[0].From, cut(dir, list, x.at, &r.Lost[0])
	}
	r.Dropped = x.whole(r.Next)
	return r, err
}

// inspected is what a journal has that is damaged: at is the file of the first damage, runs are the
// events that are whole, from and to of each without a gap.
type inspected struct {
	lost []journal.Damage
	at   int
	runs [][2]int64
	next int64
}

// whole is the number of whole events from a number on.
func (x *inspected) whole(from int64) (n int64) {
	for _, r := range x.runs {
		n += max(0, r[1]-max(r[0], from))
	}
	return n
}

func inspect(list []journal.File) (*inspected, error) {
	x := &inspected{next: list[0].First}
	lose := func(i int, d *journal.Damage) {
		if len(x.lost) == 0 {
			x.at = i
		}
		x.lost = append(x.lost, *d)
	}
	for i, f := range list {
		if f.First > x.next {
			lose(i, &journal.Damage{Path: f.Path, From: x.next, To: f.First, Why: "the files before it are not there"})
		}
		_, err := f.Read(i == len(list)-1, func(d *journal.Damage) error {
			lose(i, d)
			return nil
		}, func(n int64, _ []byte) (int64, error) {
			if k := len(x.runs) - 1; k >= 0 && x.runs[k][1] == n {
				x.runs[k][1]++
			} else {
				x.runs = append(x.runs, [2]int64{n, n + 1})
			}
			x.next = n + 1
			return n + 1, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return x, nil
}

// aside keeps a file under another name.
func aside(path string) error {
	// A repair that did not end has set the same file aside.
	if err := os.Link(path, path+damagedSuffix); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// cut removes what lies behind damage, the first one in file at of the list.
func cut(dir string, list []journal.File, at int, d *journal.Damage) error {
	for _, f := range list[at:] {
		if err := aside(f.Path); err != nil {
			return err
		}
	}
	// The last first, so that what is left is always the beginning.
	for i := len(list) - 1; i > at; i-- {
		if err := os.Remove(list[i].Path); err != nil {
			return err
		}
	}
	if d.At > 0 {
		in, err := os.Open(list[at].Path)
		if err != nil {
			return err
		}
		defer in.Close()
		return atomicfile.WriteFile(list[at].Path, func(w io.Writer) error {
			_, err := io.CopyN(w, in, d.At)
			return err
		})
	}
	if err := os.Remove(list[at].Path); err != nil || at > 0 {
		return err
	}
	// There is a file that says with which event the journal goes on.
	w, err := journal.Create(dir, journalPrefix, d.From)
	if err != nil {
		return err
	}
	return w.Close()
}

// restart has the journal begin with a snapshot, and with the events that follow it without a gap.
func restart(dir string, list []journal.File, snapshot *machineState) (from, next int64, err error) {
	from, next = snapshot.Events, snapshot.Events
	tmp := filepath.Join(dir, repairDir)
	if err := errors.Join(os.RemoveAll(tmp), os.Mkdir(tmp, 0o755)); err != nil {
		return 0, 0, err
	}
	w, err := journal.Create(tmp, journalPrefix, from)
	if err != nil {
		return 0, 0, err
	}
	for i, f := range list {
		_, err := f.Read(i == len(list)-1, func(*journal.Damage) error { return nil }, func(n int64, body []byte) (int64, error) {
			if n != next {
				return n + 1, nil
			}
			next++
			frame := append(make([]byte, journal.FrameHead), body...)
			w.Seal(frame, n)
			return n + 1, w.Write(frame)
		})
		if err != nil {
			return 0, 0, errors.Join(err, w.Close())
		}
	}
	if err := errors.Join(w.Sync(), w.Close(), writeState(dir, baseName(from), snapshot)); err != nil {
		return 0, 0, err
	}
	for _, f := range list {
		if err := aside(f.Path); err != nil {
			return 0, 0, err
		}
	}
	if err := os.Rename(w.Path(), filepath.Join(dir, filepath.Base(w.Path()))); err != nil {
		return 0, 0, err
	}
	for _, f := range list {
		if f.First != from {
			err = errors.Join(err, os.Remove(f.Path))
		}
	}
	return from, next, errors.Join(err, os.Remove(tmp), atomicfile.OS.SyncDir(dir))
}
