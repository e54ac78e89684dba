package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// DefaultCacheBytes is the limit of a cache when nothing else is said.
const DefaultCacheBytes = 16 << 30

// Cache keeps blobs that were received in a directory, under their digests, up to a number of
// bytes; what was used least recently goes first. Any number of processes may share the directory:
// the limit is theirs together, and the files in it never have more bytes. What is read from it is
// compared with its digest; damaged files are removed and fetched again. Losing the directory loses
// nothing.
type Cache struct {
	dir  string
	most int64
	mu   sync.Mutex
}

// OpenCache makes the directory where it is missing. maxBytes is DefaultCacheBytes when 0;
// processes that share a directory should agree about it.
func OpenCache(dir string, maxBytes int64) (*Cache, error) {
	if maxBytes == 0 {
		maxBytes = DefaultCacheBytes
	}
	if maxBytes < 0 {
		return nil, fmt.Errorf("cache %s: limit of %d bytes; expected a positive number", dir, maxBytes)
	}
	c := &Cache{dir: dir, most: maxBytes}
	if err := os.MkdirAll(c.blobs(), 0o777); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return c, nil
}

// DefaultCacheDir is the user's directory for caches, with a folder of this program's.
func DefaultCacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("directory of caches: %w", err)
	}
	return filepath.Join(dir, "onnxrl", "objects"), nil
}

func (c *Cache) blobs() string        { return filepath.Join(c.dir, "sha256") }
func (c *Cache) path(d Digest) string { return filepath.Join(c.blobs(), d.hex()) }
func (c *Cache) total() (string, string) {
	return filepath.Join(c.dir, "bytes"), filepath.Join(c.dir, ".lock")
}

// touch makes an entry the one used last. That fails where another process has just removed it.
func (c *Cache) touch(path string) {
	now := time.Now()
	_ = os.Chtimes(path, now, now)
}

// get returns a blob of at most limit bytes.
func (c *Cache) get(d Digest, limit int64) ([]byte, bool) {
	if c == nil {
		return nil, false
	}
	path := c.path(d)
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil || int64(len(b)) > limit {
		return nil, false
	}
	if DigestOf(b) != d {
		// The total is too large from now on until it is counted again, which errs on the safe
		// side.
		_ = os.Remove(path)
		return nil, false
	}
	c.touch(path)
	return b, true
}

// put adds a blob, unless it is larger than the whole cache.
func (c *Cache) put(ctx context.Context, d Digest, b []byte) error {
	if c == nil || int64(len(b)) > c.most {
		return nil
	}
	temp := atomicfile.TempName(c.path(d))
	f, err := atomicfile.OS.Create(temp)
	if err != nil {
		return err
	}
	// Not synced: what a power failure spoils is found out by its digest.
	_, err = f.Write(b)
	if err == nil {
		err = c.adopt(ctx, f, temp, d, int64(len(b)))
	} else {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return nil
}

// adopt makes room for a temporary file that has been written, closes it and gives it its name. It
// stays open until the directory is locked: nobody then removes it as one that a killed process has
// left.
func (c *Cache) adopt(ctx context.Context, f atomicfile.File, temp string, d Digest, size int64) (err error) {
	release, err := c.lock(ctx)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	defer func() { err = errors.Join(err, release()) }()
	path := c.path(d)
	if st, err := os.Stat(path); err == nil && st.Size() == size {
		c.touch(path)
		return errors.Join(f.Close(), os.Remove(temp))
	}
	used, err := c.used()
	if err == nil && used+size > c.most {
		used, err = c.evict(size)
	}
	// The total goes first: a process that is killed in between leaves one that is too large.
	if err == nil {
		err = c.setUsed(used + size)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// lock waits for the lock of the directory.
func (c *Cache) lock(ctx context.Context) (func() error, error) {
	c.mu.Lock()
	_, path := c.total()
	for {
		release, err := atomicfile.Lock(path)
		if err == nil {
			return func() error { defer c.mu.Unlock(); return release() }, nil
		}
		if errors.Is(err, atomicfile.ErrLocked) {
			err = sleep(ctx, time.Millisecond)
		}
		if err != nil {
			c.mu.Unlock()
			return nil, err
		}
	}
}

// used returns the bytes of all entries, or a larger number. The caller holds the lock.
func (c *Cache) used() (int64, error) {
	path, _ := c.total()
	b, err := os.ReadFile(path)
	if err == nil {
		n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err == nil && n >= 0 && strings.HasSuffix(string(b), "\n") {
			return n, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	entries, err := c.entries()
	return bytesOf(entries), err
}

func (c *Cache) setUsed(n int64) error {
	path, _ := c.total()
	return os.WriteFile(path, []byte(strconv.FormatInt(n, 10)+"\n"), 0o666)
}

type cacheEntry struct {
	path string
	size int64
	used time.Time
}

func bytesOf(entries []cacheEntry) int64 {
	n := int64(0)
	for _, e := range entries {
		n += e.size
	}
	return n
}

func (c *Cache) entries() ([]cacheEntry, error) {
	names, err := os.ReadDir(c.blobs())
	if err != nil {
		return nil, err
	}
	var entries []cacheEntry
	for _, e := range names {
		if atomicfile.IsTemp(e.Name()) {
			continue
		}
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, cacheEntry{filepath.Join(c.blobs(), e.Name()), st.Size(), st.ModTime()})
	}
	return entries, nil
}

// evict removes what was used least recently until there is room for size bytes, and some more, so
// that the directory is not read for every entry. It returns the bytes that are left. The caller
// holds the lock.
func (c *Cache) evict(size int64) (int64, error) {
	if err := atomicfile.Clean(c.blobs()); err != nil {
		return 0, err
	}
	entries, err := c.entries()
	if err != nil {
		return 0, err
	}
	slices.SortFunc(entries, func(a, b cacheEntry) int { return a.used.Compare(b.used) })
	used := bytesOf(entries)
	goal := min(c.most-size, c.most/10*9)
	if used <= c.most-size {
		// The total was too large.
		goal = used
	}
	for _, e := range entries {
		if used <= goal {
			break
		}
		if err := os.Remove(e.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			// Some systems do not remove what is being read.
			continue
		}
		used -= e.size
	}
	if used > c.most-size {
		return 0, fmt.Errorf("cache %s: no room for %d bytes", c.dir, size)
	}
	return used, nil
}
