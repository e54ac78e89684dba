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

// Cache keeps what was received in a directory: parts of blobs under their digests, and trees that
// [Local] has fetched. All of it together has at most a number of bytes; parts go before trees, and
// what was used least recently goes first. Any number of processes may share the directory: the
// limit is theirs together. What is read from it is compared with its digest; damaged files are
// removed and fetched again. Losing the directory loses nothing.
//
//	sha256/HEX  a part
//	trees/HEX   a tree; see files
//	total       the bytes of all of them, or more
//	.lock       held while something is added or removed
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
		return "", fmt.Errorf("directory of caches: %w; set %s", err, CacheVariable)
	}
	return filepath.Join(dir, "onnxrl", "objects"), nil
}

func (c *Cache) blobs() string          { return filepath.Join(c.dir, "sha256") }
func (c *Cache) path(d Digest) string   { return filepath.Join(c.blobs(), d.hex()) }
func (c *Cache) trees() string          { return filepath.Join(c.dir, "trees") }
func (c *Cache) folder(d Digest) string { return filepath.Join(c.trees(), d.hex()) }
func (c *Cache) total() (string, string) {
	return filepath.Join(c.dir, "total"), filepath.Join(c.dir, ".lock")
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
	from := onlyParts
	if err == nil && used+size > c.most {
		parts, failed := c.parts()
		if err = failed; bytesOf(parts)+size <= c.most/partShare {
			from = treesFirst
		}
	}
	if err == nil {
		err = c.reserve(used, size, from)
	}
	if errors.Is(err, errFull) {
		return errors.Join(f.Close(), os.Remove(temp))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// partShare is a share of the limit, as one part of so many. Up to it parts take the room of
// trees that nobody uses, so that the fetching of another one can go on where it was.
const partShare = 10

// errFull says that nothing more can be removed.
var errFull = errors.New("no room in the cache")

// victims are what makes room.
type victims int

const (
	onlyParts victims = iota
	// treesFirst is for parts within their share: parts before them are of the same tree.
	treesFirst
	// partsFirst is for trees: parts are of trees that are there, or were given up.
	partsFirst
)

// reserve makes room for size bytes beside those that are used, and counts them. The caller holds
// the lock and adds the bytes afterwards: a process that is killed in between leaves a total that
// is too large.
func (c *Cache) reserve(used, size int64, from victims) (err error) {
	if used+size > c.most {
		if used, err = c.evict(size, from); err != nil {
			return err
		}
	}
	return c.setUsed(used + size)
}

// reserveTree counts the bytes of a tree that comes into a folder, which the caller has locked.
func (c *Cache) reserveTree(ctx context.Context, folder string, size int64) (err error) {
	if size > c.most {
		return fmt.Errorf("its files have %d bytes, and the cache %s at most %d: set %s", size, c.dir, c.most, LimitVariable)
	}
	release, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	old := treeBytes(folder)
	used, err := c.used()
	if err == nil {
		err = c.reserve(used, size-old.size, partsFirst)
	}
	if errors.Is(err, errFull) {
		return fmt.Errorf("no room for %d bytes in the cache %s of %d: the trees in it are in use; set %s", size, c.dir, c.most, LimitVariable)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "bytes"), []byte(strconv.FormatInt(size, 10)+"\n"), 0o666)
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
	parts, err := c.parts()
	if err != nil {
		return 0, err
	}
	trees, err := c.treeEntries()
	return bytesOf(parts) + bytesOf(trees), err
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

// parts lists the parts of blobs.
func (c *Cache) parts() ([]cacheEntry, error) {
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

// treeEntries lists the folders of trees, also of those that are on their way.
func (c *Cache) treeEntries() ([]cacheEntry, error) {
	names, err := os.ReadDir(c.trees())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var entries []cacheEntry
	for _, e := range names {
		if entry := treeBytes(filepath.Join(c.trees(), e.Name())); entry.size > 0 {
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// treeBytes reads how large the tree in a folder is and when it was used; 0 bytes where there is
// none.
func treeBytes(folder string) cacheEntry {
	e := cacheEntry{path: folder}
	text, err := os.ReadFile(filepath.Join(folder, "bytes"))
	if err != nil {
		return e
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
		e.size = n
	}
	if info, err := os.Stat(filepath.Join(folder, "bytes")); err == nil {
		e.used = info.ModTime()
	}
	return e
}

// evict removes what was used least recently, of trees those that no process uses, until there is
// room for size bytes; of parts some more, so that the directory is not read for every entry. It
// returns the bytes that are left, and errFull where that is not enough. The caller holds the lock.
func (c *Cache) evict(size int64, from victims) (int64, error) {
	if err := atomicfile.Clean(c.blobs()); err != nil {
		return 0, err
	}
	parts, err := c.parts()
	if err != nil {
		return 0, err
	}
	trees, err := c.treeEntries()
	if err != nil {
		return 0, err
	}
	used := bytesOf(parts) + bytesOf(trees)
	remove := func(list []cacheEntry, goal int64, gone func(path string) (bool, error)) error {
		slices.SortFunc(list, func(a, b cacheEntry) int { return a.used.Compare(b.used) })
		for _, e := range list {
			if used <= goal {
				break
			}
			ok, err := gone(e.path)
			if err != nil {
				return err
			}
			if ok {
				used -= e.size
			}
		}
		return nil
	}
	enough := c.most - size
	if from == treesFirst {
		if err := remove(trees, enough, evictTree); err != nil {
			return 0, err
		}
	}
	if used > enough {
		err := remove(parts, min(enough, c.most/10*9), func(path string) (bool, error) {
			err := os.Remove(path)
			// Some systems do not remove what is being read.
			return err == nil || errors.Is(err, fs.ErrNotExist), nil
		})
		if err != nil {
			return 0, err
		}
	}
	if from == partsFirst {
		if err := remove(trees, enough, evictTree); err != nil {
			return 0, err
		}
	}
	if used > enough {
		// The total found is the one that counts from now on.
		return 0, errors.Join(errFull, c.setUsed(used))
	}
	return used, nil
}
