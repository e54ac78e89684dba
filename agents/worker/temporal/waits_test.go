package temporal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/worker/capacity"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// envWait makes a worker of tests wait for so long instead of training.
const envWait = "ONNXRL_TEST_WAIT"

// runTree is the directory that comes of that.
var runTree = capacity.Tree{Files: 6, Bytes: 60_000}

// waits is an executor that trains nothing, for a while.
type waits struct{ long time.Duration }

func (waits) Slots() int { return 1 }

func (w waits) Do(ctx context.Context, t run.Job, _ run.Hooks) (run.Result, error) {
	select {
	case <-time.After(w.long):
	case <-ctx.Done():
		return run.Result{}, ctx.Err()
	}
	return run.Result{}, fill(t.Dir, t.ID, runTree)
}

// content are bytes that follow from a name.
func content(name string, size int64) []byte {
	b := make([]byte, size)
	s := rng.New(1).Split(name).Stream()
	for i := range b {
		b[i] = byte(s.Uint64())
	}
	return b
}

// fill makes a directory of files that nobody else has.
func fill(dir, name string, t capacity.Tree) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := range t.Files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("file-", i)), content(fmt.Sprint(name, i), t.Bytes/int64(t.Files)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
