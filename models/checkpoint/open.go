package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/onnxrl/onnxrl/models/safetensors"
)

// Checkpoint is an opened and verified checkpoint. Close it after use.
type Checkpoint struct {
	Manifest
	Path string
	// SHA256 is that of the manifest, in hexadecimal, which vouches for everything else.
	SHA256 string
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
	m, sum, err := readManifest(path)
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
	return &Checkpoint{Manifest: *m, Path: path, SHA256: sum, reader: newReader(arrays, m.Sections)}, nil
}

// newReader returns a reader of entries of which none is read yet.
func newReader(arrays *safetensors.File, sections map[string]json.RawMessage) *Reader {
	all := &opened{arrays: arrays, sections: sections, unread: map[string]bool{}}
	for _, info := range arrays.Tensors() {
		all.unread[info.Name] = true
	}
	for name := range sections {
		all.unread[name] = true
	}
	return &Reader{all: all}
}

// Close releases the files.
func (c *Checkpoint) Close() error { return c.reader.all.arrays.Close() }

// Reader gives access to the entries without the check that all are read.
func (c *Checkpoint) Reader() *Reader { return c.reader }

// Load restores a component and requires that it reads every entry. The error lists everything that
// is missing, different or left over, unless the component refuses what it has read.
func (c *Checkpoint) Load(s Stater) error {
	if err := load(s, c.reader); err != nil {
		return fmt.Errorf("load checkpoint %s: %w", c.Path, err)
	}
	return nil
}

// load restores a component from all entries of a reader.
func load(s Stater, r *Reader) error {
	err := s.LoadState(r)
	kept := r.Err()
	switch {
	case kept == nil && err != nil:
		// The component itself refuses what it has read, and the rest is not its fault.
		return err
	case err != nil && !errors.Is(kept, err):
		kept = joinUnknown(kept, err)
	}
	return errors.Join(kept, r.left())
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
