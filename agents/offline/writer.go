package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/filehash"
)

// partialSuffix follows the name of a data set while it is written; progressFile is the manifest of
// what is written so far.
const (
	partialSuffix = ".partial"
	progressFile  = "recording.json"
)

// Writer writes a data set file by file into DIR.partial, which becomes DIR when it is finished. A
// writer that has stopped in between goes on after the last whole file. It is not safe for
// concurrent use.
type Writer struct {
	dir, partial string
	m            Manifest
}

// Create begins a data set in a folder that must not exist, or goes on with one that was begun with
// an equal manifest, which has no files yet.
func Create(dir string, m Manifest) (*Writer, error) {
	w := &Writer{dir: filepath.Clean(dir), m: m}
	w.partial = w.dir + partialSuffix
	if _, err := os.Lstat(w.dir); err == nil {
		return nil, fmt.Errorf("data set: %s exists; choose another folder", dir)
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("data set: %w", err)
	}
	if err := w.m.validate(); err != nil {
		return nil, fmt.Errorf("data set: %w", err)
	}
	b, err := os.ReadFile(filepath.Join(w.partial, progressFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(w.partial, 0o755); err != nil {
			return nil, fmt.Errorf("data set: %w", err)
		}
		return w, w.save()
	case err != nil:
		return nil, fmt.Errorf("data set: %w", err)
	}
	var was Manifest
	if err := json.Unmarshal(b, &was); err != nil {
		return nil, fmt.Errorf("data set: %s: %w", filepath.Join(w.partial, progressFile), err)
	}
	begun := was
	begun.Files, begun.Episodes, begun.Transitions = nil, 0, 0
	if text(begun) != text(w.m) {
		return nil, fmt.Errorf("data set: %s was begun with another policy or other options; remove it, or choose another folder", w.partial)
	}
	w.m = was
	return w, atomicfile.Clean(w.partial)
}

// isPartial reports whether a data set was begun and not finished.
func isPartial(dir string) bool {
	_, err := os.Stat(filepath.Clean(dir) + partialSuffix)
	return err == nil
}

// Parts is the number of files that are written.
func (w *Writer) Parts() int { return len(w.m.Files) }

// Manifest describes what is written.
func (w *Writer) Manifest() Manifest { return w.m }

// Part writes the next file: fill adds its episodes, whose numbers are given here. After an error
// there is no such file. Of a row group no more than a few megabytes are in memory.
func (w *Writer) Part(ctx context.Context, behaviour int, fill func(add func(e *Episode) error) error) error {
	f := File{Name: fmt.Sprintf("part-%05d.parquet", len(w.m.Files)), Behaviour: behaviour}
	path := filepath.Join(w.partial, f.Name)
	// An error of an episode is none of the file.
	var refused, failed error
	err := atomicfile.WriteFile(path, func(to io.Writer) error {
		t, err := newTable(&w.m, to)
		if err != nil {
			return err
		}
		err = fill(func(e *Episode) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if e.Len() == 0 {
				return errors.New("an episode without a transition")
			}
			if failed = t.add(w.m.Episodes+f.Episodes, e); failed != nil {
				return failed
			}
			f.Episodes, f.Transitions = f.Episodes+1, f.Transitions+int64(e.Len())
			return nil
		})
		if failed == nil {
			refused = err
		}
		return errors.Join(err, t.close())
	})
	if refused != nil {
		return refused
	}
	if err != nil {
		return fmt.Errorf("data set: %s: %w", path, err)
	}
	if f.SHA256, err = filehash.SHA256(path); err != nil {
		return fmt.Errorf("data set: %w", err)
	}
	w.m.Files = append(w.m.Files, f)
	w.m.Episodes, w.m.Transitions = w.m.Episodes+f.Episodes, w.m.Transitions+f.Transitions
	return w.save()
}

// save writes what there is so far.
func (w *Writer) save() error {
	b, err := json.MarshalIndent(w.m, "", "  ")
	if err != nil {
		return fmt.Errorf("data set: %w", err)
	}
	err = atomicfile.WriteBytes(filepath.Join(w.partial, progressFile), append(b, '\n'))
	if err != nil {
		return fmt.Errorf("data set: %w", err)
	}
	return nil
}

// Finish makes the folder of what was written.
func (w *Writer) Finish() error {
	if w.m.Episodes == 0 {
		return errors.New("data set: there is no episode")
	}
	if err := w.m.write(w.partial); err != nil {
		return fmt.Errorf("data set: %w", err)
	}
	if err := errors.Join(os.Remove(filepath.Join(w.partial, progressFile)), os.Rename(w.partial, w.dir)); err != nil {
		return fmt.Errorf("data set: %w", err)
	}
	return nil
}

// Discard removes what was written.
func (w *Writer) Discard() error { return os.RemoveAll(w.partial) }
