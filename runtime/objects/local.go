package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// LocalOptions say where and how [Local] keeps what it fetches.
type LocalOptions struct {
	// Context ends transfers that are under way; the background's when nil.
	Context context.Context
	// Dir is the directory of the cache; empty is that of the environment variable
	// ONNXRL_OBJECTS_CACHE, else DefaultCacheDir.
	Dir string
	// MaxBytes limits the parts in the cache, and the trees in it, each; 0 is the number of the
	// environment variable ONNXRL_OBJECTS_CACHE_BYTES, else DefaultCacheBytes.
	MaxBytes int64
	// Begin is called before a tree is fetched, with its reference and size, and returns what is
	// told of bytes that come, and what is called at the end. It may be nil.
	Begin func(r Reference, bytes int64) (progress func(int64), end func())
}

// Environment variables with the directory of the cache and its limit in bytes.
const (
	CacheVariable = "ONNXRL_OBJECTS_CACHE"
	LimitVariable = "ONNXRL_OBJECTS_CACHE_BYTES"
)

// process is what Local works with.
var process = struct {
	sync.Mutex
	o     LocalOptions
	files *files
}{}

// SetLocal says how [Local] works from now on, in this process.
func SetLocal(o LocalOptions) {
	process.Lock()
	defer process.Unlock()
	process.o, process.files = o, nil
}

// Local returns the path of a file or directory on this machine: s itself, or where s is a
// [Reference], such as s3://bucket/data#sha256:…/bars.parquet, that of a copy. The tree is fetched
// unless this machine has it, and compared with its digest once in every process. Its files can
// only be read. They stay for as long as the process lives; what no process uses is removed where
// the limit asks for it, the least recently used first.
func Local(s string) (string, error) {
	if !strings.Contains(s, "://") {
		return s, nil
	}
	r, err := ParseReference(s)
	if err != nil {
		return "", err
	}
	process.Lock()
	defer process.Unlock()
	files, err := localFiles()
	if err != nil {
		return "", err
	}
	dir, err := files.tree(r)
	if err != nil {
		return "", fmt.Errorf("%s: %w", Redact(r.URL)+"#"+string(r.Tree), err)
	}
	path := filepath.Join(dir, filepath.FromSlash(r.Path))
	if _, err := os.Lstat(path); err != nil && !strings.ContainsAny(r.Path, "*?[") {
		return "", fmt.Errorf("%s#%s has no file %q", Redact(r.URL), r.Tree, r.Path)
	}
	return path, nil
}

// localFiles opens what Local works with. The caller holds the lock.
func localFiles() (*files, error) {
	if process.files == nil {
		f, err := openFiles(process.o)
		if err != nil {
			return nil, err
		}
		process.files = f
	}
	return process.files, nil
}

// LocalCache is the cache of parts that Local uses.
func LocalCache() (*Cache, error) {
	process.Lock()
	defer process.Unlock()
	files, err := localFiles()
	if err != nil {
		return nil, err
	}
	return files.cache, nil
}

// IsReference reports whether Local would look for s in a storage.
func IsReference(s string) bool {
	return strings.Contains(s, "://") && strings.Contains(s, "#"+digestPrefix)
}

// files are trees in a directory that several processes share. Of each there is a folder:
//
//	trees/HEX/content  the tree; it is renamed to this name when it is whole
//	trees/HEX/bytes    how large it is, from before it comes; touched when it is used
//	trees/HEX/users    a locked file of every process that uses it
//	trees/HEX/.lock    held while it is fetched, verified or removed
type files struct {
	ctx   context.Context
	dir   string
	most  int64
	cache *Cache
	begin func(r Reference, bytes int64) (func(int64), func())
	// held are the trees that this process has verified, and will find.
	held map[Digest]string
	// keep are the open files that say so.
	keep []atomicfile.File
}

func openFiles(o LocalOptions) (*files, error) {
	f := &files{ctx: o.Context, dir: o.Dir, most: o.MaxBytes, begin: o.Begin, held: map[Digest]string{}}
	var err error
	if f.ctx == nil {
		f.ctx = context.Background()
	}
	if f.dir == "" {
		f.dir = os.Getenv(CacheVariable)
	}
	if f.dir == "" {
		if f.dir, err = DefaultCacheDir(); err != nil {
			return nil, err
		}
	}
	if text := os.Getenv(LimitVariable); f.most == 0 && text != "" {
		if f.most, err = strconv.ParseInt(text, 10, 64); err != nil || f.most <= 0 {
			return nil, fmt.Errorf("%s=%q: expected a positive number of bytes", LimitVariable, text)
		}
	}
	if f.most == 0 {
		f.most = DefaultCacheBytes
	}
	if f.begin == nil {
		f.begin = func(Reference, int64) (func(int64), func()) { return func(int64) {}, func() {} }
	}
	if f.dir, err = filepath.Abs(f.dir); err != nil {
		return nil, err
	}
	f.cache, err = OpenCache(f.dir, f.most)
	return f, err
}

func (f *files) folder(d Digest) string { return filepath.Join(f.dir, "trees", d.hex()) }

// lockFolder waits for the lock of a tree's folder.
func (f *files) lockFolder(folder string) (func() error, error) {
	for {
		release, err := atomicfile.Lock(filepath.Join(folder, ".lock"))
		if !errors.Is(err, atomicfile.ErrLocked) {
			return release, err
		}
		if err := sleep(f.ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// tree returns the directory of a tree.
func (f *files) tree(r Reference) (_ string, err error) {
	if dir := f.held[r.Tree]; dir != "" {
		return dir, nil
	}
	if f.ctx.Err() != nil {
		return "", context.Cause(f.ctx)
	}
	folder := f.folder(r.Tree)
	if err := os.MkdirAll(filepath.Join(folder, "users"), 0o777); err != nil {
		return "", err
	}
	release, err := f.lockFolder(folder)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, release()) }()
	user, err := atomicfile.OS.Create(atomicfile.TempName(filepath.Join(folder, "users", "user")))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(folder, "content")
	if err := f.fill(r, dir); err != nil {
		return "", errors.Join(err, user.Close())
	}
	now := time.Now()
	if err := os.Chtimes(filepath.Join(folder, "bytes"), now, now); err != nil {
		return "", errors.Join(err, user.Close())
	}
	f.held[r.Tree], f.keep = dir, append(f.keep, user)
	return dir, nil
}

// fill fetches a tree unless it is there. The caller holds the lock of its folder.
func (f *files) fill(r Reference, dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		switch got, err := TreeDigest(f.ctx, dir); {
		case err == nil && got == r.Tree:
			return nil
		case f.ctx.Err() != nil:
			return err
		}
		if err := removeTree(dir); err != nil {
			return err
		}
	}
	count := func(int64) {}
	s, err := Open(f.ctx, r.URL, Options{Cache: f.cache, Progress: func(n int64) { count(n) }})
	if err != nil {
		return err
	}
	// Everything has been received by then.
	defer func() { _ = s.Close() }()
	size, err := s.treeSize(f.ctx, r.Tree)
	if err != nil {
		return err
	}
	if err := f.makeRoom(filepath.Dir(dir), size); err != nil {
		return err
	}
	progress, end := f.begin(r, size)
	defer end()
	count = progress
	if err := s.getTree(f.ctx, r.Tree, dir); err != nil {
		return err
	}
	return chmodTree(dir, 0o555, 0o444)
}

// chmodTree sets the permissions of all directories and files, where the system has such.
func chmodTree(dir string, dirs, files fs.FileMode) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, dirs)
		}
		return os.Chmod(path, files)
	})
}

// IsCopy reports whether a path is one that [Local] has returned, or below one. Nothing may be
// written there.
func IsCopy(path string) bool {
	path, err := filepath.Abs(path)
	process.Lock()
	defer process.Unlock()
	if err != nil || process.files == nil {
		return false
	}
	rel, err := filepath.Rel(filepath.Join(process.files.dir, "trees"), path)
	return err == nil && filepath.IsLocal(rel)
}

// treeSize is the sum of the files of a tree in bytes.
func (s *Store) treeSize(ctx context.Context, ref Digest) (int64, error) {
	text, err := s.getPart(ctx, Blob{ref, -1})
	if err != nil {
		return 0, err
	}
	var t tree
	if err := json.Unmarshal(text, &t); err != nil || t.Kind != treeKind {
		return 0, errors.New("it is not a tree")
	}
	if err := t.check(s.most); err != nil {
		return 0, fmt.Errorf("tree: %w", err)
	}
	size := int64(0)
	for _, file := range t.Files {
		size += file.Size
	}
	return size, nil
}

// removeTree removes a directory so that none is half there.
func removeTree(dir string) error {
	temp := atomicfile.TempName(dir)
	if err := os.Rename(dir, temp); err != nil {
		return err
	}
	// Nothing can be removed from a directory that cannot be written to.
	if err := chmodTree(temp, 0o755, 0o644); err != nil {
		return err
	}
	return os.RemoveAll(temp)
}

// makeRoom writes down the size of a tree that comes, and removes others that nobody uses while all
// together are larger than the limit.
func (f *files) makeRoom(folder string, size int64) (err error) {
	if size > f.most {
		return fmt.Errorf("its files have %d bytes, and the cache %s at most %d: set %s", size, f.dir, f.most, LimitVariable)
	}
	release, err := f.lockFolder(filepath.Dir(folder))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	names, err := os.ReadDir(filepath.Dir(folder))
	if err != nil {
		return err
	}
	var others []cacheEntry
	total := size
	for _, e := range names {
		path := filepath.Join(filepath.Dir(folder), e.Name())
		text, err := os.ReadFile(filepath.Join(path, "bytes"))
		if err != nil || path == folder {
			continue
		}
		info, err := os.Stat(filepath.Join(path, "bytes"))
		n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || bad != nil {
			n, info = 0, nil
		}
		entry := cacheEntry{path: path, size: n}
		if info != nil {
			entry.used = info.ModTime()
		}
		others, total = append(others, entry), total+n
	}
	slices.SortFunc(others, func(a, b cacheEntry) int { return a.used.Compare(b.used) })
	for _, e := range others {
		if total <= f.most {
			break
		}
		gone, err := f.evictTree(e.path)
		if err != nil {
			return err
		}
		if gone {
			total -= e.size
		}
	}
	if total > f.most {
		return fmt.Errorf("no room for %d bytes in the cache %s of %d: the trees in it are in use; set %s", size, f.dir, f.most, LimitVariable)
	}
	return os.WriteFile(filepath.Join(folder, "bytes"), []byte(strconv.FormatInt(size, 10)+"\n"), 0o666)
}

// evictTree removes a tree that no process uses.
func (f *files) evictTree(folder string) (bool, error) {
	release, err := atomicfile.Lock(filepath.Join(folder, ".lock"))
	if errors.Is(err, atomicfile.ErrLocked) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	gone, err := func() (bool, error) {
		users := filepath.Join(folder, "users")
		if err := atomicfile.Clean(users); err != nil {
			return false, err
		}
		if left, err := os.ReadDir(users); err != nil || len(left) > 0 {
			return false, err
		}
		if err := removeTree(filepath.Join(folder, "content")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		return true, os.Remove(filepath.Join(folder, "bytes"))
	}()
	return gone, errors.Join(err, release())
}
