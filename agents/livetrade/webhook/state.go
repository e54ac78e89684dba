package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// fileName is that of a sender in the state directory of a service.
const fileName = "alerts.json"

// mark says which alert one is.
type mark struct {
	Seq    uint64 `json:"seq"`
	Number int    `json:"number"`
}

func (m mark) after(o mark) bool { return m.Seq > o.Seq || m.Seq == o.Seq && m.Number > o.Number }

// state is the form of a sender on the disk.
type state struct {
	Version int `json:"version"`
	// Told is the last alert that was told, of which those that wait have not been delivered.
	Told    mark      `json:"told"`
	Waiting []waiting `json:"waiting"`
}

const stateVersion = 1

// readState reads a file, nil where there is none.
func readState(path string) (*state, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var s state
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && s.Version != stateVersion {
		err = fmt.Errorf("its version is %d, this program knows %d", s.Version, stateVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("alerts: %s: %w", path, err)
	}
	return &s, nil
}

func writeState(path string, s *state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(path, text)
}
