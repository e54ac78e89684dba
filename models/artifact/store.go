package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// Errors that callers decide by.
var (
	// ErrNotFound says that a store has no version that a reference means.
	ErrNotFound = errors.New("no such artefact")
	// ErrNoStore says that a directory holds no store.
	ErrNoStore = errors.New("no artefact store")
	// ErrClosed is returned by the methods of a closed store.
	ErrClosed = errors.New("the artefact store is closed")
)

// lockFile is the name of the lock.
const lockFile = ".lock"

// Options of a store.
type Options struct {
	// Disk is what is written to; nil is the operating system's.
	Disk atomicfile.Disk
	// Now is the clock that publications are dated by; without one they have no date.
	Now func() time.Time
	// MustExist makes a directory without a store an [ErrNoStore] instead of making one.
	MustExist bool
}

// Store is a directory of versions. It is safe for concurrent use, also by several processes at
// once.
type Store struct {
	dir     string
	disk    atomicfile.Disk
	now     func() time.Time
	cleaned atomic.Bool
	closed  atomic.Bool
	// turn is held, by whoever has taken its element, beside the lock on disk, so that publishers
	// of one process take turns without asking the disk again and again.
	turn chan struct{}
}

// Open opens the store in dir. Where there is none it is made, folders above it included, unless
// the directory holds other files. An existing store is only read, so that one on a read-only disk
// can be used.
func Open(dir string, o Options) (*Store, error) {
	if o.Disk == nil {
		o.Disk = atomicfile.OS
	}
	s := &Store{dir: dir, disk: o.Disk, now: o.Now, turn: make(chan struct{}, 1)}
	if err := s.open(o.MustExist); err != nil {
		return nil, fmt.Errorf("open artefact store %s: %w", dir, err)
	}
	return s, nil
}

func (s *Store) open(mustExist bool) error {
	if s.dir == "" {
		return errors.New("no directory is given")
	}
	text, err := readFile(filepath.Join(s.dir, ocispec.ImageLayoutFile), 1<<16)
	switch {
	case err == nil:
		return checkLayout(text)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case mustExist:
		return ErrNoStore
	}
	return s.create()
}

func checkLayout(text []byte) error {
	var l ocispec.ImageLayout
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, ocispec.ImageLayoutFile, err)
	}
	if l.Version != ocispec.ImageLayoutVersion {
		return fmt.Errorf("%s: imageLayoutVersion is %q, expected %q", ocispec.ImageLayoutFile, l.Version, ocispec.ImageLayoutVersion)
	}
	return nil
}

// create makes an empty store. The layout file, which makes a directory a store, comes last; what a
// process left that was killed before is finished.
func (s *Store) create() error {
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return err
	}
	list, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		switch n := e.Name(); {
		case n == lockFile, n == ocispec.ImageIndexFile, n == ocispec.ImageBlobsDir, n == ocispec.ImageLayoutFile, atomicfile.IsTemp(n):
		default:
			return fmt.Errorf("%w: the directory holds other files, such as %s", ErrNoStore, n)
		}
	}
	release, err := s.lock(context.Background())
	if err != nil {
		return err
	}
	return errors.Join(s.fillIn(), release())
}

func (s *Store) fillIn() error {
	blobs := filepath.Join(s.dir, ocispec.ImageBlobsDir)
	for _, dir := range []string{blobs, s.blobDir()} {
		if err := s.disk.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := s.disk.SyncDir(blobs); err != nil {
		return err
	}
	_, err := os.Stat(filepath.Join(s.dir, ocispec.ImageIndexFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = s.writeIndex(emptyIndex())
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(ocispec.ImageLayout{Version: ocispec.ImageLayoutVersion})
	if err != nil {
		return err
	}
	return s.write(ocispec.ImageLayoutFile, append(text, '\n'))
}

// Dir is the store's directory.
func (s *Store) Dir() string { return s.dir }

// Close ends the use of the store. Versions that were found keep working.
func (s *Store) Close() error {
	s.closed.Store(true)
	return nil
}

func (s *Store) alive() error {
	if s.closed.Load() {
		return ErrClosed
	}
	return nil
}

// Waits between two attempts at a lock that another process holds, which it does for as long as it
// takes to sync a directory and an index.
const (
	firstWait = time.Millisecond
	longWait  = 20 * time.Millisecond
)

// lock waits for the store's lock until the context ends.
func (s *Store) lock(ctx context.Context) (release func() error, err error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() {
		if err != nil {
			<-s.turn
		}
	}()
	wait := firstWait
	for {
		unlock, err := atomicfile.Lock(filepath.Join(s.dir, lockFile))
		if err == nil {
			return func() error { defer func() { <-s.turn }(); return unlock() }, nil
		}
		if !errors.Is(err, atomicfile.ErrLocked) {
			return nil, err
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, longWait)
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

// update changes the index under the lock.
func (s *Store) update(ctx context.Context, change func(index *ocispec.Index) error) error {
	release, err := s.lock(ctx)
	if err != nil {
		return err
	}
	err = func() error {
		index, err := s.readIndex()
		if err != nil {
			return err
		}
		if err := change(index); err != nil {
			return err
		}
		return s.writeIndex(index)
	}()
	return errors.Join(err, release())
}
