package flight

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	files "github.com/onnxrl/onnxrl/runtime/journal"
)

// quiet tells nobody.
var quiet = opening{note: func(string) {}}

// write writes records of a journal, in groups of three, and returns its file.
func write(t *testing.T, dir string, n int) (file string) {
	t.Helper()
	j, err := openJournal(dir, 0, quiet, func([]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if at := j.append(fmt.Appendf(nil, "record %d", i)); i%3 == 2 {
			if err := j.wait(at); err != nil {
				t.Fatal(err)
			}
		}
	}
	file = j.file.Path()
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// read returns the records of a journal from a number on.
func read(t *testing.T, dir string, from int64) (list []string, err error) {
	t.Helper()
	j, err := openJournal(dir, from, quiet, func(b []byte) error {
		list = append(list, string(b))
		return nil
	})
	if err == nil {
		err = j.close()
	}
	return list, err
}

// TestJournalTorn cuts a journal off after each of its bytes: what is left are whole groups, which
// are a prefix, and what is written then comes behind them.
func TestJournalTorn(t *testing.T) {
	whole, err := os.ReadFile(write(t, t.TempDir(), 12))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	// Package runtime/journal cuts after every byte.
	for cut := 3; cut < len(whole); cut += 7 {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "journal-000000000000000.log"), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := read(t, dir, 0)
		if err != nil {
			t.Fatalf("cut off after %d bytes: %v", cut, err)
		}
		if len(list)%3 != 0 || len(list) > 9 {
			t.Errorf("cut off after %d bytes it has %d records, expected whole groups of three", cut, len(list))
		}
		for i, r := range list {
			if r != fmt.Sprintf("record %d", i) {
				t.Errorf("cut off after %d bytes: record %d is %q", cut, i, r)
			}
		}
		seen[len(list)] = true
		// Another server goes on behind what was left, and a third reads both.
		j, err := openJournal(dir, 0, quiet, func([]byte) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := j.wait(j.append([]byte("more"))); err != nil {
			t.Fatal(err)
		}
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
		if again, err := read(t, dir, 0); err != nil || !slices.Equal(again, append(list, "more")) {
			t.Errorf("cut off after %d bytes and gone on with: %q (%v)", cut, again, err)
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d lengths, expected 0, 3, 6 and 9", len(seen))
	}
}

// TestJournalDamaged changes a byte of each group, of a record and of the group's length: of the last
// one that is a write that was cut off, of any other an error that names the file, because records
// behind it were acknowledged.
func TestJournalDamaged(t *testing.T) {
	whole, err := os.ReadFile(write(t, t.TempDir(), 9))
	if err != nil {
		t.Fatal(err)
	}
	// length is where that of the group of a record is, which is the first of the group.
	const recordHead, lengthAt = 4, 4
	length := func(record string) int {
		return bytes.Index(whole, []byte(record)) - recordHead - files.FrameHead + lengthAt
	}
	for i, at := range []int{bytes.Index(whole, []byte("record 1")), length("record 0"), bytes.Index(whole, []byte("record 4")), length("record 3"), bytes.Index(whole, []byte("record 7")), length("record 6")} {
		dir, bad := t.TempDir(), slices.Clone(whole)
		bad[at] ^= 1
		if err := os.WriteFile(filepath.Join(dir, "journal-000000000000000.log"), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := read(t, dir, 0)
		if i >= 4 {
			if err != nil || len(list) != 6 {
				t.Errorf("a last group that is damaged: %d records (%v)", len(list), err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), dir) {
			t.Errorf("group %d is damaged: %q, %v", i/2, list, err)
		}
	}
}

// TestJournalMissing: a journal that begins behind what is needed is an error, and what lies before
// that is not read.
func TestJournalMissing(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 6)
	if list, err := read(t, dir, 4); err != nil || !slices.Equal(list, []string{"record 4", "record 5"}) {
		t.Errorf("from 4: %q (%v)", list, err)
	}
	if err := os.Remove(filepath.Join(dir, "journal-000000000000000.log")); err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, dir, 3); err == nil || !strings.Contains(err.Error(), "record 3 is needed") {
		t.Errorf("without its first file: %v", err)
	}
}

// TestJournalFails: when the disk fails nothing more is acknowledged, also if it works again.
func TestJournalFails(t *testing.T) {
	dir := t.TempDir()
	j, err := openJournal(dir, 0, quiet, func([]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := j.wait(j.append([]byte("good"))); err != nil {
		t.Fatal(err)
	}
	path := j.file.Path()
	if err := j.file.Close(); err != nil { // It cannot be written to any more.
		t.Fatal(err)
	}
	if err := j.wait(j.append([]byte("lost"))); err == nil || !strings.Contains(err.Error(), "until the server is started again") {
		t.Fatalf("a write that fails: %v", err)
	}
	f := files.File{Path: path}
	r, err := f.Read(true, nil, func(n int64, _ []byte) (int64, error) { return n + 1, nil })
	if err != nil || r.Next != 1 {
		t.Fatal(r, err)
	}
	if j.file, err = f.Continue(r); err != nil {
		t.Fatal(err)
	}
	if err := j.wait(j.append([]byte("later"))); err == nil {
		t.Error("records behind one that was lost are acknowledged")
	}
	j.file.Close()
	if list, err := read(t, dir, 0); err != nil || !slices.Equal(list, []string{"good"}) {
		t.Errorf("afterwards: %q (%v)", list, err)
	}
}
