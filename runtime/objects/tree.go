package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// treeKind tells a manifest from other blobs.
const treeKind = "onnxrl.tree.v1"

// tree is the manifest of a directory. Its digest is the tree's reference. Equal directories have
// equal manifests: paths are sorted, and times and permissions are not part of it.
type tree struct {
	Kind  string     `json:"kind"`
	Files []treeFile `json:"files"`
	// Empty are directories without files.
	Empty []string `json:"empty_directories,omitempty"`
	// one says that it was made of a file.
	one bool
}

type treeFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Digest Digest `json:"digest"`
}

// PutTree stores a directory with everything below it and returns its reference, the digest of a
// manifest with path, size and digest of every file. Of a file it makes a tree with that alone.
// Files, and parts of large ones, that the store has are not sent again. The manifest is written
// last: until PutTree returns there is no tree, and one that was interrupted goes on where it was.
// Temporary files ([atomicfile.IsTemp]) are left out; a link, a device or a file that changes
// meanwhile is an error.
func (s *Store) PutTree(ctx context.Context, dir string) (Digest, error) {
	d, err := s.putTree(ctx, dir)
	return d, s.wrap("put tree "+dir, err)
}

func (s *Store) putTree(ctx context.Context, dir string) (Digest, error) {
	t, err := scan(dir)
	if err != nil {
		return "", err
	}
	if t.one {
		dir = filepath.Dir(dir)
	}
	g, inner := errgroup.WithContext(ctx)
	var large []*sending
	for i := range t.Files {
		var o *sending
		if o, err = s.sendFile(inner, g, dir, &t.Files[i]); err != nil {
			break
		}
		if len(o.parts.Parts) > 1 {
			large = append(large, o)
		}
	}
	// An error of the group is the reason why reading ended.
	if failed := g.Wait(); failed != nil {
		err = failed
	}
	if err != nil {
		return "", err
	}
	for _, o := range large {
		if err := s.seal(ctx, o); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	if int64(len(text)) > maxPart {
		return "", fmt.Errorf("%d files: their list has %d bytes, expected at most %d", len(t.Files), len(text), maxPart)
	}
	d := DigestOf(text)
	return d, s.putPart(ctx, d, text)
}

func (s *Store) sendFile(ctx context.Context, g *errgroup.Group, dir string, file *treeFile) (*sending, error) {
	path := filepath.Join(dir, filepath.FromSlash(file.Path))
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return nil, err
	}
	o, err := s.send(ctx, g, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	after, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !after.ModTime().Equal(before.ModTime()) || after.Size() != o.blob.Size {
		return nil, fmt.Errorf("%s: %w", path, ErrChanged)
	}
	file.Size, file.Digest = o.blob.Size, o.blob.Digest
	return o, nil
}

// TreeDigest returns the reference that PutTree would give a directory, and stores nothing.
func TreeDigest(ctx context.Context, dir string) (Digest, error) {
	return newStore(nowhere{}, "nowhere", Options{}).putTree(ctx, dir)
}

// nowhere is a bucket that forgets.
type nowhere struct{}

func (nowhere) Stat(context.Context, string) (Info, error) { return Info{}, fs.ErrNotExist }
func (nowhere) Read(context.Context, string, Range) (io.ReadCloser, error) {
	return nil, fs.ErrNotExist
}
func (nowhere) Write(context.Context, string, []byte) error { return nil }
func (nowhere) Close() error                                { return nil }

// scan lists a directory, or a file.
func scan(dir string) (*tree, error) {
	t := &tree{Kind: treeKind, Files: []treeFile{}}
	st, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if st.Mode().IsRegular() {
		t.Files, t.one = append(t.Files, treeFile{Path: filepath.Base(dir)}), true
		return t, nil
	}
	if !st.IsDir() {
		return nil, fmt.Errorf("%s is neither a file nor a directory", dir)
	}
	entries := map[string]int{}
	var dirs []string
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == "." {
			return err
		}
		if atomicfile.IsTemp(e.Name()) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel = filepath.ToSlash(rel)
		parent, _ := splitKey(rel)
		entries[strings.TrimSuffix(parent, "/")]++
		switch {
		case e.IsDir():
			dirs = append(dirs, rel)
		case e.Type().IsRegular():
			t.Files = append(t.Files, treeFile{Path: rel})
		default:
			return fmt.Errorf("%s is neither a file nor a directory", path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		if entries[d] == 0 {
			t.Empty = append(t.Empty, d)
		}
	}
	slices.SortFunc(t.Files, func(a, b treeFile) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(t.Empty)
	return t, nil
}

// check refuses manifests that would write elsewhere, or twice to a place. They come from
// strangers.
func (t *tree) check(most int64) error {
	if t.Kind != treeKind {
		return fmt.Errorf("it is of kind %q, expected %q", t.Kind, treeKind)
	}
	total := int64(0)
	seen := map[string]bool{}
	local := func(p string) error {
		if !fs.ValidPath(p) || p == "." || !filepath.IsLocal(filepath.FromSlash(p)) || seen[p] {
			return fmt.Errorf("path %q is not a relative path, or there twice", p)
		}
		seen[p] = true
		return nil
	}
	for _, f := range t.Files {
		if err := errors.Join(local(f.Path), Blob{f.Digest, f.Size}.check()); err != nil {
			return err
		}
		if f.Size > most-total {
			return fmt.Errorf("its files have more than %d bytes", most)
		}
		total += f.Size
	}
	for _, d := range t.Empty {
		if err := local(d); err != nil {
			return err
		}
	}
	return nil
}

// GetTree makes dir, which must not exist, the directory that PutTree has stored. Every file is
// compared with its digest. Files are put together in a temporary directory beside dir, synced and
// renamed, so that dir is there as a whole or not at all. Parts that the cache has are not fetched,
// so one that was interrupted goes on where it was. Where dir exists the error is fs.ErrExist,
// where the store does not have the tree fs.ErrNotExist, where it has something else ErrDamaged.
func (s *Store) GetTree(ctx context.Context, ref Digest, dir string) error {
	return s.wrap(fmt.Sprintf("get tree %s into %s", ref, dir), s.getTree(ctx, ref, dir))
}

func (s *Store) getTree(ctx context.Context, ref Digest, dir string) (err error) {
	if err := ref.Check(); err != nil {
		return err
	}
	// A directory that was renamed to the name of an empty one would take its place on some
	// systems.
	switch _, err := os.Lstat(dir); {
	case err == nil:
		return &fs.PathError{Op: "mkdir", Path: dir, Err: fs.ErrExist}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	text, err := s.getPart(ctx, Blob{ref, -1})
	if err != nil {
		return err
	}
	var t tree
	if err := json.Unmarshal(text, &t); err != nil {
		return fmt.Errorf("it is not a tree: %w", err)
	}
	if err := t.check(s.most); err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	temp := atomicfile.TempName(dir)
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	if err := s.fill(ctx, &t, temp); err != nil {
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		return err
	}
	return atomicfile.OS.SyncDir(filepath.Dir(dir))
}

// fill makes the directories and files of a tree, durably.
func (s *Store) fill(ctx context.Context, t *tree, dir string) error {
	made := map[string]bool{}
	mkdir := func(path string) error {
		if made[path] {
			return nil
		}
		made[path] = true
		return os.MkdirAll(path, 0o777)
	}
	if err := mkdir(dir); err != nil {
		return err
	}
	for _, d := range t.Empty {
		if err := mkdir(filepath.Join(dir, filepath.FromSlash(d))); err != nil {
			return err
		}
	}
	g, inner := errgroup.WithContext(ctx)
	var err error
	for _, file := range t.Files {
		path := filepath.Join(dir, filepath.FromSlash(file.Path))
		if err = mkdir(filepath.Dir(path)); err == nil {
			err = s.receiveFile(inner, g, file, path)
		}
		if err != nil {
			break
		}
	}
	if failed := g.Wait(); failed != nil {
		err = failed
	}
	if err != nil {
		return err
	}
	// Names become durable from the leaves to the root; the order does not matter before the
	// rename.
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return atomicfile.OS.SyncDir(path)
	})
}

func (s *Store) receiveFile(ctx context.Context, g *errgroup.Group, file treeFile, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	err = s.receive(ctx, g, Blob{file.Digest, file.Size}, f, func(whole bool) error {
		if !whole {
			return f.Close()
		}
		return errors.Join(f.Sync(), f.Close())
	})
	if err != nil {
		return fmt.Errorf("%s: %w", file.Path, err)
	}
	return nil
}
