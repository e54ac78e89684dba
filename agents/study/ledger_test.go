package study_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestLedger begins a directory, and goes on with it where it has another name.
func TestLedger(t *testing.T) {
	of := func(dir, resume string) *study.Ledger {
		return &study.Ledger{Kind: "search", File: "search.yaml", Dir: dir, Resume: resume}
	}
	read := func(path string) (*configs.Document, error) { return configs.Parse(path, []byte("a: 1\n")) }
	dir := filepath.Join(t.TempDir(), "first")
	l := of(dir, "")
	doc, at, err := l.Read("things/other.yaml", read, 2)
	if err != nil || at != "things/other.yaml" || l.Name != "other" {
		t.Fatalf("%q, %q, %v", at, l.Name, err)
	}
	if err := errors.Join(l.Begin(), l.Describe(doc)); err != nil {
		t.Fatal(err)
	}
	if err := of(dir, "").Free(); err == nil || !strings.Contains(err.Error(), "holds a search already; go on with it by --resume") {
		t.Errorf("error %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	moved := dir + "-moved"
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	l = of("", moved)
	if _, at, err = l.Read("", nil, 0); err != nil || l.Name != "other" || l.Dir != moved || at != filepath.Join(moved, "search.yaml") {
		t.Fatalf("%q in %q, %v", l.Name, l.Dir, err)
	}
	if err := l.Begin(); err != nil {
		t.Fatal(err)
	}
	second := of("", moved)
	if _, _, err := second.Read("", nil, 0); err != nil {
		t.Fatal(err)
	}
	if err := second.Begin(); !errors.Is(err, atomicfile.ErrLocked) {
		t.Errorf("two go on at once: %v", err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	for want, c := range sorted.All(map[string]struct {
		dir, path string
		edits     int
	}{"it goes on as it was begun": {moved, "", 1}, "takes neither another document": {moved, "x.yaml", 0}, "it holds no search": {t.TempDir(), "", 0}}) {
		if _, _, err := of("", c.dir).Read(c.path, read, c.edits); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "resume "+c.dir) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
}

// TestJobsWait: a job begins when those before it are done, and what comes after one that fails waits
// for the next time.
func TestJobsWait(t *testing.T) {
	type job = study.Job[int]
	broken := errors.New("broken")
	dir, fails := t.TempDir(), true
	var order []string
	opened := func() *study.Study[int] {
		order = nil
		do := func(name string, came int) func(context.Context) (*int, error) {
			return func(context.Context) (*int, error) {
				order = append(order, name)
				if fails && name == "b" {
					return nil, broken
				}
				return &came, nil
			}
		}
		digest := func() (string, error) { return "0", nil }
		b := &job{Cell: "b", Path: "b", Digest: digest, Do: do("b", 2)}
		c := &job{Cell: "c", Path: "c", Digest: digest, After: []*job{b}, Do: do("c", 3), CellIndex: 1}
		a := &job{Cell: "a", Path: "a", Digest: digest, Do: do("a", 1), CellIndex: 2, SeedIndex: -1}
		s := &study.Study[int]{Dir: dir, Parallel: 1}
		cells := []study.Cell{{Name: "b"}, {Name: "c"}, {Name: "a"}}
		if err := errors.Join(s.Open(map[string]int{}, cells, []*job{c, b, a}), s.Begin()); err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, want := range []string{"b a", "b c", ""} {
		s := opened()
		if err := errors.Join(s.Execute(t.Context()), s.Close()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(order, " "); got != want {
			t.Errorf("carried out %q, expected %q", got, want)
		}
		states := ""
		for _, r := range s.Runs() {
			states += r.Name() + " " + r.State + ", "
		}
		if fails != strings.Contains(states, "c, seed 0 waiting, b, seed 0 failed") || !fails && s.Runs()[0].Outcome == nil {
			t.Errorf("states: %s", states)
		}
		fails = false
	}
}
