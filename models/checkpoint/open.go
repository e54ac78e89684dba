package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/onnxrl/onnxrl/models/safetensors"
)

// Checkpoint is an opened and verified checkpoint. Close it after use.
type Checkpoint struct {
	Manifest
	Path   string
	reader *Reader
}

// Open opens the checkpoint in the directory at path and verifies the hash of every file. Damage is
// an [ErrCorrupt] that names the file.
func Open(path string) (*Checkpoint, error) {
	c, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint %s: %w", path, err)
	}
	return c, nil
}

func open(path string) (*Checkpoint, error) {
	m, err := readManifest(path)
	if err != nil {
		return nil, err
	}
	for name, sum := range m.Files {
		if err := verifyFile(filepath.Join(path, name), sum); err != nil {
			return nil, err
		}
	}
	arrays, err := safetensors.Open(filepath.Join(path, arraysFile))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	all := &opened{arrays: arrays, sections: m.Sections, unread: map[string]bool{}}
	for _, info := range arrays.Tensors() {
		all.unread[info.Name] = true
	}
	for name := range m.Sections {
		all.unread[name] = true
	}
	return &Checkpoint{Manifest: *m, Path: path, reader: &Reader{all: all}}, nil
}

// Close releases the files.
func (c *Checkpoint) Close() error { return c.reader.all.arrays.Close() }

// Reader gives access to the entries without the check that all are read.
func (c *Checkpoint) Reader() *Reader { return c.reader }

// Load restores a component and requires that it reads every entry. The error lists everything that
// is missing, different or left over.
func (c *Checkpoint) Load(s Stater) error {
	err := s.LoadState(c.reader)
	kept := c.reader.Err()
	switch {
	case kept == nil:
		kept = err
	case err != nil && !errors.Is(kept, err):
		// An error that the reader does not know of comes from the component itself.
		kept = joinUnknown(kept, err)
	}
	if err := errors.Join(kept, c.reader.left()); err != nil {
		return fmt.Errorf("load checkpoint %s: %w", c.Path, err)
	}
	return nil
}

// joinUnknown adds err unless it wraps something that the reader has kept.
func joinUnknown(kept, err error) error {
	if list, ok := kept.(interface{ Unwrap() []error }); ok {
		for _, k := range list.Unwrap() {
			if errors.Is(err, k) {
				return kept
			}
		}
	}
	return errors.Join(kept, err)
}
