package dashboard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// following collects what a follower says of one file.
type following struct {
	f      follower
	lines  []string
	buffer []byte
}

func (w *following) next(t *testing.T, budget int) (read int, more bool) {
	t.Helper()
	read, more, err := w.f.next(budget, w.buffer, func() { w.lines = append(w.lines, "BEGIN") }, func(text []byte) { w.lines = append(w.lines, string(text)) })
	if err != nil {
		t.Fatal(err)
	}
	return read, more
}

// TestFollow does to a file what may happen to one, and compares the lines that come of each.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	w := following{f: follower{path: path}, buffer: make([]byte, 256)}
	replace := func(text string) {
		other := path + ".new"
		write(t, other, text)
		if err := os.Rename(other, path); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", 600)
	steps := []struct {
		name string
		do   func()
		want []string
	}{
		{"not there", func() {}, nil},
		{"empty", func() { write(t, path, "") }, nil},
		{"half a line", func() { extend(t, path, "on") }, nil},
		{"its rest and another half", func() { extend(t, path, "e\ntw") }, []string{"one"}},
		{"nothing", func() {}, nil},
		{"two more", func() { extend(t, path, "o\nthree\n") }, []string{"two", "three"}},
		{"empty lines", func() { extend(t, path, "\n\n") }, []string{"", ""}},
		{"cut to a shorter one", func() { write(t, path, "one\n") }, []string{"BEGIN", "one"}},
		{"cut within a line", func() { write(t, path, "on") }, []string{"BEGIN"}},
		{"and ended", func() { extend(t, path, "ly\n") }, []string{"only"}},
		{"rewritten, as long as before", func() { write(t, path, "ynlo\n") }, []string{"BEGIN", "ynlo"}},
		{"rewritten, longer", func() { write(t, path, "a\nb\nc\nd\n") }, []string{"BEGIN", "a", "b", "c", "d"}},
		{"replaced by a longer one that begins alike", func() { replace("a\nb\nc\nd\ne\n") }, []string{"BEGIN", "a", "b", "c", "d", "e"}},
		{"replaced by the same", func() { replace("a\nb\nc\nd\ne\n") }, []string{"BEGIN", "a", "b", "c", "d", "e"}},
		{"removed", func() {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, nil},
		{"made anew", func() { write(t, path, "z\n") }, []string{"BEGIN", "z"}},
		{"a line that is too long", func() { extend(t, path, long) }, nil},
		{"its end", func() { extend(t, path, long+"\nafter\n") }, []string{"after"}},
		{"one that is too long, whole", func() { extend(t, path, long+"\nagain\n") }, []string{"again"}},
		{"more than the buffer", func() { extend(t, path, strings.Repeat("0123456789\n", 60)) }, slices.Repeat([]string{"0123456789"}, 60)},
		{"no text", func() { extend(t, path, "\x00\xff\n") }, []string{"\x00\xff"}},
	}
	for _, s := range steps {
		w.lines = nil
		s.do()
		w.next(t, 1<<20)
		if !slices.Equal(w.lines, s.want) {
			t.Errorf("%s: %q, expected %q", s.name, w.lines, s.want)
		}
	}
	if w.f.long != 2 || w.f.restarts != 7 {
		t.Errorf("%d lines were too long, %d beginnings", w.f.long, w.f.restarts)
	}
}

// TestFollowBudget reads a file in turns and misses nothing.
func TestFollowBudget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	text := ""
	for i := range 500 {
		text += fmt.Sprintf("line %d\n", i)
	}
	write(t, path, text)
	w := following{f: follower{path: path}, buffer: make([]byte, 64)}
	turns, total := 0, 0
	for more := true; more; turns++ {
		var read int
		read, more = w.next(t, 300)
		total += read
	}
	if turns < 10 || total != len(text) || strings.Join(w.lines, "\n")+"\n" != text {
		t.Errorf("%d bytes of %d in %d turns", total, len(text), turns)
	}
}

// TestFollowNoFile is of what must not be opened.
func TestFollowNoFile(t *testing.T) {
	f := follower{path: t.TempDir()}
	if _, _, err := f.next(1, make([]byte, 8), nil, nil); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
	if _, err := readFile(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
	if _, err := readFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
