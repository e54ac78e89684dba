package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/onnxrl/onnxrl/models/safetensors"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// ErrNone says that a store has no checkpoint.
var ErrNone = errors.New("no checkpoint")

// Options of a store.
type Options struct {
	// KeepLast is how many of the newest checkpoints survive a save; 0 keeps all.
	KeepLast int
	// KeepBest is how many of those with the highest score survive in addition. It has no effect
	// while KeepLast is 0.
	KeepBest int
	// Disk is what is written to; nil is the operating system's.
	Disk atomicfile.Disk
}

// Store is a directory of checkpoints, opened for writing. It is not safe for concurrent use.
type Store struct {
	dir     string
	options Options
	release func() error
}

// Entry is a published checkpoint of a store.
type Entry struct {
	Step int64
	Path string

	generation int // tells checkpoints of the same step apart; the highest is the newest
}

// OpenStore opens the directory, which is created where it is missing, removes what a killed
// process has left behind and locks the store: a second OpenStore, in this process or another,
// fails with [atomicfile.ErrLocked]. Close it after use. Reading needs no store, see [Latest] and
// [Open].
func OpenStore(dir string, o Options) (*Store, error) {
	if o.Disk == nil {
		o.Disk = atomicfile.OS
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("open checkpoint store: %w", err)
	}
	release, err := atomicfile.Lock(filepath.Join(dir, ".lock"))
	if err != nil {
		return nil, fmt.Errorf("open checkpoint store: %w", err)
	}
	s := &Store{dir: dir, options: o, release: release}
	if err := s.clean(); err != nil {
		release()
		return nil, fmt.Errorf("open checkpoint store %s: %w", dir, err)
	}
	return s, nil
}

// Close unlocks the store.
func (s *Store) Close() error { return s.release() }

// clean removes temporary directories. The lock says that no live process is writing them.
func (s *Store) clean() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && atomicfile.IsTemp(e.Name()) {
			if err := s.options.Disk.RemoveAll(filepath.Join(s.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Meta is what Save records beside the state.
type Meta struct {
	Kind  string
	Step  int64    // not negative
	Score *float64 // higher is better, finite; nil where there is none
	Info  map[string]string
}

// Save publishes the state of a component as a checkpoint and then removes the old ones that
// Options do not keep. A second checkpoint of the same step replaces the first, which stays until
// the new one is published. It returns the directory. If only the removal fails, the directory and
// the error are both returned. A store that holds a later step refuses: Latest would not see the
// new checkpoint. See DropAfter.
func (s *Store) Save(m Meta, state Stater) (path string, err error) {
	if path, err = s.save(m, state); err != nil {
		return "", fmt.Errorf("save checkpoint of step %d: %w", m.Step, err)
	}
	if err := s.prune(); err != nil {
		return path, fmt.Errorf("remove old checkpoints: %w", err)
	}
	return path, nil
}

func (s *Store) save(m Meta, state Stater) (path string, err error) {
	if m.Step < 0 || m.Score != nil && *m.Score-*m.Score != 0 {
		return "", fmt.Errorf("step %d is negative or the score is not finite", m.Step)
	}
	w := newWriter()
	if err := errors.Join(state.SaveState(w), w.Err()); err != nil {
		return "", err
	}
	existing, err := List(s.dir)
	if err != nil {
		return "", err
	}
	generation := 0
	for _, e := range existing {
		if e.Step > m.Step {
			return "", fmt.Errorf("%s is of a later step and would hide it; a run that goes back drops those first", e.Path)
		}
		if e.Step == m.Step {
			generation = e.generation + 1
		}
	}
	path = filepath.Join(s.dir, entryName(m.Step, generation))
	disk := s.options.Disk
	temp := atomicfile.TempName(path)
	defer func() {
		if err != nil {
			err = errors.Join(err, disk.RemoveAll(temp))
		}
	}()
	if err := disk.Mkdir(temp); err != nil {
		return "", err
	}
	if err := writeFiles(disk, temp, m, w.all); err != nil {
		return "", err
	}
	if err := disk.SyncDir(temp); err != nil {
		return "", err
	}
	if err := disk.Rename(temp, path); err != nil {
		return "", err
	}
	return path, disk.SyncDir(s.dir)
}

// writeFiles writes the arrays and then the manifest that vouches for them.
func writeFiles(disk atomicfile.Disk, dir string, m Meta, all *collected) error {
	manifest := Manifest{Schema: Schema, Kind: m.Kind, Step: m.Step, Score: m.Score, Info: m.Info,
		Files: map[string]FileSum{}, Sections: all.sections}
	sum := &summed{hash: sha256.New()}
	err := atomicfile.CreateFileOn(disk, filepath.Join(dir, arraysFile), func(w io.Writer) error {
		sum.to = w
		return safetensors.Write(sum, nil, all.arrays)
	})
	if err != nil {
		return err
	}
	manifest.Files[arraysFile] = FileSum{Size: sum.size, SHA256: hex.EncodeToString(sum.hash.Sum(nil))}

	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	digest := sha256.Sum256(text)
	if err := atomicfile.CreateFileOn(disk, filepath.Join(dir, manifestFile), content(text)); err != nil {
		return err
	}
	line := hex.EncodeToString(digest[:]) + "  " + manifestFile + "\n"
	return atomicfile.CreateFileOn(disk, filepath.Join(dir, sumFile), content([]byte(line)))
}

func content(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}

// summed hashes and counts what it passes on.
type summed struct {
	to   io.Writer
	hash hash.Hash
	size int64
}

func (s *summed) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.hash.Write(p[:n])
	s.size += int64(n)
	return n, err
}

var entryPattern = regexp.MustCompile(`^ckpt-([0-9]{9,19})(?:\.([1-9][0-9]{0,8}))?$`)

func entryName(step int64, generation int) string {
	name := fmt.Sprintf("ckpt-%09d", step)
	if generation > 0 {
		name += "." + strconv.Itoa(generation)
	}
	return name
}

// List returns the published checkpoints of the store in dir, the newest last: by step, and of one
// step by age. It looks at names only. A directory that does not exist has none.
func List(dir string) ([]Entry, error) {
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	var list []Entry
	for _, n := range names {
		match := entryPattern.FindStringSubmatch(n.Name())
		if match == nil || !n.IsDir() {
			continue
		}
		step, err := strconv.ParseInt(match[1], 10, 64)
		if err != nil || entryName(step, 0) != "ckpt-"+match[1] {
			continue
		}
		generation, _ := strconv.Atoi(match[2]) // empty is 0; the pattern admits nothing that fails
		list = append(list, Entry{Step: step, Path: filepath.Join(dir, n.Name()), generation: generation})
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.generation, b.generation))
	})
	return list, nil
}

// Latest opens the newest checkpoint of the store in dir. If it is damaged, the error names the
// next older one; choosing that one is left to people. [ErrNone] says that there is none.
func Latest(dir string) (*Checkpoint, error) {
	list, err := List(dir)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("latest checkpoint in %s: %w", dir, ErrNone)
	}
	c, err := Open(list[len(list)-1].Path)
	if errors.Is(err, ErrCorrupt) && len(list) > 1 {
		return nil, fmt.Errorf("%w; the one before it is %s", err, list[len(list)-2].Path)
	}
	return c, err
}
