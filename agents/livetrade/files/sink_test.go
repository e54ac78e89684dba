package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestDeadLetters: a line that the end of the program cut off does not spoil the one that follows.
func TestDeadLetters(t *testing.T) {
	for before, after := range sorted.All(map[string]string{"": "", "{}\n": "{}\n", "{}\n{\"par": "{}\n", "{\"par": ""}) {
		dir := t.TempDir()
		path := filepath.Join(dir, "dead.jsonl")
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		s := NewSink(SinkConfig{Path: dir})
		if _, err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Bad(&livetrade.Bad{Err: errors.New("no bar")}), s.Close()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if want := after + `{"offset":0,"partition":0,"reason":"no bar","value":null}` + "\n"; err != nil || string(text) != want {
			t.Errorf("%q, expected %q (%v)", text, want, err)
		}
	}
}

// TestSinkRemoved has somebody remove the folder of the records: the service reports it.
func TestSinkRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	s := NewSink(SinkConfig{Path: dir})
	if _, err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Flush(t.Context()), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "was removed or replaced") {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
