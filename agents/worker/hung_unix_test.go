//go:build unix

package worker

import (
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/agents/worker/workertest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// TestHung: a worker that says nothing any more is ended, and its task goes on in another one from
// its last checkpoint, with the same state in the end. So does that of one
// which somebody else has ended.
func TestHung(t *testing.T) {
	longtest.Slow(t)
	e := portable.New()
	defer e.Close()
	dir := t.TempDir()
	c := workertest.Document(t, "train.total_env_steps=4000")
	trained := func(name string, o run.Options) error {
		o.Engine = e
		_, err := run.Job{Config: c, Name: "x", Dir: filepath.Join(dir, name), NoPublish: true}.Train(t.Context(), kinds.All(), o)
		return err
	}
	if err := trained("here", run.Options{}); err != nil {
		t.Fatal(err)
	}
	want := newest(t, filepath.Join(dir, "here"))
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGTERM} {
		var ps startedWorkers
		var notes []string
		pool := workers(t, Options{Workers: 1, Silence: 5 * time.Second, Note: func(text string) { notes = append(notes, text) }}, "plain", ps.add)
		var once sync.Once
		err := trained(s.String(), run.Options{Executor: pool, Hooks: run.Hooks{Progress: func(_ *run.Run, p train.Progress) {
			if p.EnvSteps > 500 {
				once.Do(func() {
					if err := ps.newest(1)[0].Signal(s); err != nil {
						t.Error(err)
					}
				})
			}
		}}})
		if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "it goes on in another worker") {
			t.Errorf("%v: %v, %q", s, err, notes)
		}
		if got := newest(t, filepath.Join(dir, s.String())); !reflect.DeepEqual(got.Files, want.Files) || !reflect.DeepEqual(got.Sections, want.Sections) {
			t.Errorf("%v: it ends with %v, expected %v", s, got.Sections, want.Sections)
		}
	}
}
