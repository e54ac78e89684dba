package livetrade

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// Files of a state directory beside the journal.
const (
	snapshotFile = "snapshot.json"
	lockFile     = "lock"
)

// writeSnapshot replaces the snapshot.
func writeSnapshot(dir string, s *machineState) error { return writeState(dir, snapshotFile, s) }

func writeState(dir, name string, s *machineState) error {
	text, err := json.Marshal(s)
	if err == nil {
		err = atomicfile.WriteBytes(filepath.Join(dir, name), text)
	}
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

// readSnapshot reads it, nil where there is none.
func readSnapshot(dir string) (*machineState, error) { return readState(dir, snapshotFile) }

func readState(dir, name string) (*machineState, error) {
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var s machineState
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", path, err)
	}
	return &s, nil
}
