package livetrade

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// randomEvents are events of all kinds.
func randomEvents(n int) (list []Event) {
	r := rng.New(3).Stream()
	for i := range n {
		e := Event{Kind: Kind(1 + r.IntN(5)), Came: time.Unix(int64(i), int64(r.IntN(1e9))).UTC()}
		switch e.Kind {
		case Bar:
			e.Partition, e.Offset = int32(r.IntN(3)), int64(r.IntN(1e9))
		case Command:
			e.Partition, e.Offset = -1, int64(r.IntN(3))-1
		case Behind, CaughtUp:
			e.Partition = int32(r.IntN(100))
		}
		if e.Kind == Bar || e.Kind == Command {
			e.Value = bytes.Repeat([]byte{byte(i)}, r.IntN(300))
		}
		list = append(list, e)
	}
	return list
}

func sameEvent(a, b *Event) bool {
	return a.Kind == b.Kind && a.Came.Equal(b.Came) && a.Partition == b.Partition && a.Offset == b.Offset && bytes.Equal(a.Value, b.Value)
}

// readAll reads a journal from an event on.
func readAll(dir string, from int64) (list []Event, err error) {
	err = Events(dir, from, func(n int64, e *Event) error {
		if n != from+int64(len(list)) {
			return fmt.Errorf("event %d, expected %d", n, from+int64(len(list)))
		}
		c := *e
		c.Value = bytes.Clone(e.Value)
		list = append(list, c)
		return nil
	})
	return list, err
}

func TestJournalComesBack(t *testing.T) {
	dir, want := t.TempDir(), randomEvents(500)
	written := 0
	for written < len(want) {
		// Each session appends some, one by one and several at once.
		j, err := OpenJournal(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if j.Next() != int64(written) {
			t.Fatalf("event %d is next, expected %d", j.Next(), written)
		}
		for _, n := range []int{1, 3, 96} {
			if err := j.Append(want[written : written+n]...); err != nil {
				t.Fatal(err)
			}
			written += n
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range []int64{0, 1, 250, 499, 500} {
		got, err := readAll(dir, from)
		if err != nil || len(got) != 500-int(from) {
			t.Fatalf("%d events from %d on, %v", len(got), from, err)
		}
		for i := range got {
			if !sameEvent(&got[i], &want[int(from)+i]) {
				t.Fatalf("event %d is %+v, expected %+v", int(from)+i, got[i], want[int(from)+i])
			}
		}
	}
	theirs := errors.New("theirs")
	if err := Events(dir, 0, func(int64, *Event) error { return theirs }); err != theirs {
		t.Errorf("an error of the caller is %v", err)
	}
}

func TestJournalOfSeveralFiles(t *testing.T) {
	dir, want := t.TempDir(), randomEvents(40)
	j, err := OpenJournal(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if err := j.Append(want[i]); err != nil {
			t.Fatal(err)
		}
		j.limit = segmentBytes
		if i%7 == 6 {
			// A file that is large is followed by another.
			j.limit = 1
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "events-*.log"))
	if err != nil || len(names) != 6 {
		t.Fatal(names, err)
	}
	if got, err := readAll(dir, 0); err != nil || len(got) != 40 {
		t.Fatalf("%d events, %v", len(got), err)
	}
	// Files that nobody needs any more may go.
	if err := os.Remove(names[0]); err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(dir, 9); err != nil || len(got) != 31 {
		t.Errorf("%d events, %v", len(got), err)
	}
	if _, err := readAll(dir, 6); err == nil || !strings.Contains(err.Error(), "begins with event 7, and event 6 is needed") {
		t.Error(err)
	}
	if j, err = OpenJournal(dir, nil); err != nil || j.Next() != 40 {
		t.Error(err)
	} else if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// A journal that is cut off anywhere goes on with the events that are whole, and one that is
// damaged before its end is an error.
func TestJournalThatIsDamaged(t *testing.T) {
	want := randomEvents(12)
	whole := t.TempDir()
	j, err := OpenJournal(whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	ends := []int64{j.file.Size()}
	for i := range want {
		if err := j.Append(want[i]); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, j.file.Size())
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(whole, "events-*.log"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	// Package runtime/journal tries every byte.
	for cut := 0; cut < len(text); cut += 11 {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(names[0])), text[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		left := 0
		for left+1 < len(ends) && ends[left+1] <= int64(cut) {
			left++
		}
		j, err := OpenJournal(dir, nil)
		if err != nil || j.Next() != int64(left) {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
		if err := errors.Join(j.Append(want[0]), j.Close()); err != nil {
			t.Fatal(err)
		}
		if got, err := readAll(dir, 0); err != nil || len(got) != left+1 || !sameEvent(&got[left], &want[0]) {
			t.Fatalf("cut at byte %d: %d events, %v", cut, len(got), err)
		}
	}
	for at := ends[0]; at < ends[len(ends)-2]; at += 7 {
		dir := t.TempDir()
		damaged := bytes.Clone(text)
		damaged[at] ^= 0x40
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(names[0])), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(dir, 0); err == nil || !strings.Contains(err.Error(), filepath.Base(names[0])) || !strings.Contains(err.Error(), "byte ") {
			t.Fatalf("byte %d: %v", at, err)
		}
		if _, err := OpenJournal(dir, nil); err == nil {
			t.Fatalf("byte %d: the journal was opened", at)
		}
	}
}
