package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
	// MaxBytes limits all that is in the cache together; 0 is the number of the environment
	// variable ONNXRL_OBJECTS_CACHE_BYTES, else DefaultCacheBytes.
	MaxBytes int64
	// Begin is called before a tree is fetched, with its reference and size, and returns a
	// function that receives the bytes that come, and one that is called at the end. It may be
	// nil.
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
// the limit asks for it, the least recently used first. A data set of the Hub of Hugging Face,
// hf://datasets/OWNER/NAME, with @REVISION and /PATH behind it, is fetched from HF_ENDPOINT with the
// token HF_TOKEN: its tables, which nothing removes.
func Local(s string) (string, error) {
	if !strings.Contains(s, "://") {
		return s, nil
	}
	if strings.HasPrefix(s, hubPrefix) {
		process.Lock()
		defer process.Unlock()
		files, err := localFiles()
		if err != nil {
			return "", err
		}
		return files.hubPath(s)
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
	return strings.Contains(s, "://") && strings.Contains(s, "#"+digestPrefix) || strings.HasPrefix(s, hubPrefix)
}

// files are trees in the directory of a [Cache]. Of each there is a folder:
//
//	trees/HEX/content  the tree; it is renamed to this name when it is whole
//	trees/HEX/bytes    how large it is, from before it comes; touched when it is used
//	trees/HEX/users    a locked file of every process that uses it
//	trees/HEX/.lock    held while it is fetched, verified or removed
type files struct {
	ctx   context.Context
	cache *Cache
	begin func(r Reference, bytes int64) (func(int64), func())
	// held are the trees that this process has verified, and will find, with the URLs that they
	// were asked for with.
	held map[Digest]heldTree
	// keep are the open files that say so.
	keep []atomicfile.File
	// hubs are the copies of the Hub's that this process has verified, by data set and revision.
	hubs map[string]string
}

type heldTree struct{ dir, url string }

func openFiles(o LocalOptions) (*files, error) {
	f := &files{ctx: o.Context, begin: o.Begin, held: map[Digest]heldTree{}, hubs: map[string]string{}}
	dir, most := o.Dir, o.MaxBytes
	var err error
	if f.ctx == nil {
		f.ctx = context.Background()
	}
	if dir == "" {
		dir = os.Getenv(CacheVariable)
	}
	if dir == "" {
		if dir, err = DefaultCacheDir(); err != nil {
			return nil, err
		}
	}
	if text := os.Getenv(LimitVariable); most == 0 && text != "" {
		if most, err = strconv.ParseInt(text, 10, 64); err != nil || most <= 0 {
			return nil, fmt.Errorf("%s=%q: expected a positive number of bytes", LimitVariable, text)
		}
	}
	if f.begin == nil {
		f.begin = func(Reference, int64) (func(int64), func()) { return func(int64) {}, func() {} }
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	f.cache, err = OpenCache(dir, most)
	return f, err
}

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
	if t, ok := f.held[r.Tree]; ok {
		return t.dir, nil
	}
	if f.ctx.Err() != nil {
		return "", context.Cause(f.ctx)
	}
	folder := f.cache.folder(r.Tree)
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
	f.held[r.Tree], f.keep = heldTree{dir, r.URL}, append(f.keep, user)
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
	// Nobody else is in the folder: what lies there is what killed processes have left.
	if err := cleanFolder(filepath.Dir(dir)); err != nil {
		return err
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
	if err := f.cache.reserveTree(f.ctx, filepath.Dir(dir), size); err != nil {
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
	rel, err := filepath.Rel(process.files.cache.trees(), path)
	return err == nil && filepath.IsLocal(rel)
}

// Named returns the reference of what a path that [Local] has returned is a copy of, or of what
// lies below one, and other paths as they are. It is what is written down: it means the same
// elsewhere.
func Named(path string) string {
	process.Lock()
	defer process.Unlock()
	if process.files == nil || path == "" {
		return path
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if name, ok := process.files.hubNamed(abs); ok {
		return name
	}
	rel, err := filepath.Rel(process.files.cache.trees(), abs)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	hex, below, _ := strings.Cut(filepath.ToSlash(rel), "/")
	d := Digest(digestPrefix + hex)
	t, ok := process.files.held[d]
	content, inside, _ := strings.Cut(below, "/")
	if !ok || content != "content" {
		return path
	}
	return Reference{URL: t.url, Tree: d, Path: inside}.String()
}

// Abs returns a path as it means the same from any folder and, where it is a reference or a copy of
// what one names, on any machine. References stay what they are, and copies become references
// again.
func Abs(path string) (string, error) {
	if IsReference(path) {
		return path, nil
	}
	if name := Named(path); IsReference(name) || filepath.IsAbs(path) {
		return name, nil
	}
	return filepath.Abs(path)
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
	return removeReadOnly(temp)
}

// removeReadOnly removes a directory of files that can only be read: nothing can be removed from
// one that cannot be written to.
func removeReadOnly(dir string) error {
	if err := chmodTree(dir, 0o755, 0o644); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// cleanFolder removes trees that were on their way into a folder, or out of it, when their process
// was killed. The caller holds its lock.
func cleanFolder(folder string) error {
	names, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range names {
		if e.IsDir() && atomicfile.IsTemp(e.Name()) {
			if err := removeReadOnly(filepath.Join(folder, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// evictTree removes a tree that no process uses.
func evictTree(folder string) (bool, error) {
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
		if err := cleanFolder(folder); err != nil {
			return false, err
		}
		return true, os.Remove(filepath.Join(folder, "bytes"))
	}()
	return gone, errors.Join(err, release())
}
