package checkpoint

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/models/safetensors"
)

// Copy makes a component what another one is, by a checkpoint in memory: as [Store.Save] of the one
// and [Checkpoint.Load] into the other. After an error the state of to is undefined.
func Copy(to, from Stater) error {
	w := newWriter()
	if err := errors.Join(from.SaveState(w), w.Err()); err != nil {
		return fmt.Errorf("copy state: %w", err)
	}
	var text bytes.Buffer
	if err := safetensors.Write(&text, nil, w.all.arrays); err != nil {
		return fmt.Errorf("copy state: %w", err)
	}
	arrays, err := safetensors.NewFile(bytes.NewReader(text.Bytes()), int64(text.Len()))
	if err != nil {
		return fmt.Errorf("copy state: %w", err)
	}
	if err := load(to, newReader(arrays, w.all.sections)); err != nil {
		return fmt.Errorf("copy state: %w", err)
	}
	return nil
}
