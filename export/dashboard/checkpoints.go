package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/export/report/performance"
)

// Checkpoint is one that a run has kept.
type Checkpoint struct {
	Name string `json:"name"`
	// Step is the env step at which it was taken, Score what validation said there, null where
	// nothing was validated.
	Step  int64              `json:"step"`
	Score performance.Number `json:"score"`
	// Best says that no other has a higher score; Bytes is the size of its files.
	Best  bool  `json:"best"`
	Bytes int64 `json:"bytes"`
	// Problem is why its manifest cannot be read.
	Problem string `json:"problem,omitempty"`
}

// mostCheckpoints is the most checkpoints of a list.
const mostCheckpoints = 200

// Checkpoints lists the checkpoints of a run, the newest first, as their manifests have them. Their
// contents are not compared with their digests.
func (b *Board) Checkpoints(id string) ([]Checkpoint, error) {
	r, err := b.run(id)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(r.path, "checkpoints")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("checkpoints of %s: %w", id, err)
	}
	list := []Checkpoint{}
	for _, e := range slices.Backward(entries) { // They are sorted by step.
		if len(list) == mostCheckpoints {
			break
		}
		if !e.IsDir() {
			continue
		}
		text, err := readFile(filepath.Join(dir, e.Name(), "manifest.json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // It is being written, or removed.
		}
		c := Checkpoint{Name: e.Name(), Score: performance.Number(nan)}
		var m struct {
			Step  int64              `json:"step"`
			Score performance.Number `json:"score"`
			Files map[string]struct {
				Size int64 `json:"size"`
			} `json:"files"`
		}
		m.Score = c.Score
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			c.Problem = err.Error()
		} else {
			c.Step, c.Score = m.Step, m.Score
			for _, f := range m.Files {
				c.Bytes += f.Size
			}
		}
		list = append(list, c)
	}
	best := -1
	for i, c := range list {
		if c.Score.Defined() && (best < 0 || c.Score >= list[best].Score) {
			best = i
		}
	}
	if best >= 0 {
		list[best].Best = true
	}
	return list, nil
}
