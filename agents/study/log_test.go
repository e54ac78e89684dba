package study

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/atomicfile/faultdisk"
)

// TestLogDamaged changes each byte of a file that was written whole: what comes back has all
// elements, or is an error that names file and line.
func TestLogDamaged(t *testing.T) {
	type element struct {
		Member int    `json:"member"`
		Name   string `json:"name"`
	}
	list := []element{{0, "a"}, {1, "b"}, {2, "c"}}
	path := filepath.Join(t.TempDir(), "members.jsonl")
	l, err := OpenLog[element](path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(list...); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for at := range text {
		for _, x := range []byte{'\n', ' ', text[at] ^ 1, text[at] ^ 0x40} {
			bad := append([]byte(nil), text...)
			bad[at] = x
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			l, err := OpenLog[element](path)
			if err != nil {
				if refused++; !strings.HasPrefix(err.Error(), path+":") {
					t.Fatalf("byte %d is %q: %v", at, x, err)
				}
			} else if len(l.Records()) != len(list) {
				t.Fatalf("byte %d is %q: %d elements of %d, and no error", at, x, len(l.Records()), len(list))
			}
		}
	}
	if refused < 3*len(text)/2 {
		t.Errorf("%d of %d are refused", refused, 4*len(text))
	}
	// A line that is gone, but for its end.
	lines := strings.SplitAfter(string(text), "\n")
	if err := os.WriteFile(path, []byte(lines[0]+"\n"+lines[2]), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog[element](path); fmt.Sprint(err) != path+":2: the line is empty" {
		t.Error(err)
	}
}

// TestLogTorn cuts a log everywhere: the lines that are whole are read, and the next record stands
// behind them.
func TestLogTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	reopened := func() *Log[int] {
		t.Helper()
		l, err := OpenLog[int](path)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	type element struct {
		N int `json:"n"`
	}
	whole := "{\"n\":1}\n{\"n\":22}\n"
	for cut := range whole {
		if err := os.WriteFile(path, []byte(whole[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLog[element](path)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		n := len(l.Records())
		if err := l.Append(element{3}, element{4}); err != nil {
			t.Fatal(err)
		}
		again, err := OpenLog[element](path)
		if err != nil || len(again.Records()) != n+2 || again.Records()[n].N != 3 || n != min(cut/7, 1)+cut/16 {
			t.Errorf("cut at %d: %d records, then %v, %v", cut, n, again, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	// Records that were forgotten leave the file with the next.
	l := reopened()
	if err := l.Append(1, 2, 3); err != nil {
		t.Fatal(err)
	}
	l.Keep(1)
	if err := l.Append(4); err != nil {
		t.Fatal(err)
	}
	if got := reopened().Records(); len(got) != 2 || got[0] != 1 || got[1] != 4 {
		t.Errorf("records %v", got)
	}
}

// TestLogFullDisk: records that the disk has no room for are in no log, and the next ones stand
// behind those that there were.
func TestLogFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	l, err := OpenLog[string](path)
	if err != nil {
		t.Fatal(err)
	}
	under := atomicfile.OS
	defer func() { atomicfile.OS = under }()
	for room := range 6 {
		disk := faultdisk.New(under)
		disk.SetRoom(int64(room))
		atomicfile.OS = disk
		if err := l.Append("abc"); !errors.Is(err, syscall.ENOSPC) || len(l.Records()) != room {
			t.Fatalf("room for %d bytes: %d records, %v", room, len(l.Records()), err)
		}
		if _, err := OpenLog[string](path); err != nil {
			t.Errorf("room for %d bytes: what is left cannot be read: %v", room, err)
		}
		atomicfile.OS = under
		if err := l.Append("d"); err != nil {
			t.Fatal(err)
		}
	}
	again, err := OpenLog[string](path)
	if err != nil || strings.Join(again.Records(), "") != "dddddd" {
		t.Errorf("%+v, %v", again, err)
	}
}
