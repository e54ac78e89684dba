package livetrade

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/journal"
)

// TestRepair flips a bit of the length of event 10 of 20, which lie in two files, with a snapshot
// before it, after it, and without one. A service goes on with what leads on.
func TestRepair(t *testing.T) {
	want := randomEvents(20)
	for _, x := range []struct {
		snapshot            int64 // 0 is none
		from, next, dropped int64
	}{{0, 0, 10, 9}, {4, 0, 10, 9}, {10, 0, 10, 9}, {11, 11, 20, 0}, {16, 16, 20, 0}, {20, 20, 20, 0}} {
		dir := t.TempDir()
		j, err := OpenJournal(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		var at int64
		for i := range want {
			if i == 10 {
				at = j.file.Size()
			}
			if j.limit = segmentBytes; i == 14 {
				j.limit = 1
			}
			if err := j.Append(want[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		files, err := journal.Files(dir, journalPrefix)
		if err != nil || len(files) != 2 {
			t.Fatal(files, err)
		}
		text, err := os.ReadFile(files[0].Path)
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(text)
		bad[at+5] ^= 2
		if err := os.WriteFile(files[0].Path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if x.snapshot > 0 {
			if err := writeSnapshot(dir, &machineState{Events: x.snapshot}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := readAll(dir, 0); err == nil || !strings.Contains(err.Error(), files[0].Path) || !strings.Contains(err.Error(), "record 10 ") || !strings.Contains(err.Error(), "--repair") {
			t.Fatalf("a damaged journal: %v", err)
		}
		r, err := Repair(dir)
		if err != nil || r.From != x.from || r.Next != x.next || r.Dropped != x.dropped || len(r.Lost) != 1 || r.Lost[0].At != at {
			t.Fatalf("a snapshot of %d events: %+v, %v", x.snapshot, r, err)
		}
		got, err := readAll(dir, x.from)
		if err != nil || int64(len(got)) != x.next-x.from {
			t.Fatalf("a snapshot of %d events: %d events, %v", x.snapshot, len(got), err)
		}
		for i := range got {
			if !sameEvent(&got[i], &want[int(x.from)+i]) {
				t.Errorf("a snapshot of %d events: event %d is %+v", x.snapshot, int(x.from)+i, got[i])
			}
		}
		if kept, err := os.ReadFile(files[0].Path + damagedSuffix); err != nil || !bytes.Equal(kept, bad) {
			t.Errorf("the damaged file was not kept: %v", err)
		}
		if _, err := os.Stat(filepath.Join(dir, repairDir)); err == nil {
			t.Error("the repair leaves a folder")
		}
		// It is whole now, and goes on.
		if r, err := Repair(dir); err != nil || len(r.Lost) != 0 || r.Next != x.next {
			t.Errorf("a second repair: %+v, %v", r, err)
		}
		if j, err = OpenJournal(dir, nil); err != nil || j.Next() != x.next {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
