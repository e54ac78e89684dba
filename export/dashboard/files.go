package dashboard

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// FileInfo is a file of a run or a report.
type FileInfo struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// mostFiles is the most files of a list.
const mostFiles = 300

// Files lists the files of an item, those of stores below it apart.
func (b *Board) Files(kind Kind, id string) ([]FileInfo, error) {
	it, err := b.item(kind, id)
	if err != nil {
		return nil, err
	}
	list := []FileInfo{}
	if info, err := os.Stat(it.path); err == nil && !info.IsDir() {
		return append(list, FileInfo{filepath.Base(it.path), info.Size()}), nil
	}
	err = fs.WalkDir(os.DirFS(it.path), ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // It has gone meanwhile.
		case len(list) == mostFiles:
			return fs.SkipAll
		case e.IsDir() && (e.Name() == "artifacts" || generation.MatchString(e.Name())):
			return fs.SkipDir
		case e.Type().IsRegular() && e.Name() != ".lock":
			if info, err := e.Info(); err == nil {
				list = append(list, FileInfo{p, info.Size()})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("files of %s: %w", id, err)
	}
	return list, nil
}

// openFile opens a regular file of an item; neither the path nor a link leads out of its folder.
func (b *Board) openFile(kind Kind, id, file string) (f *os.File, name string, err error) {
	it, err := b.item(kind, id)
	if err != nil {
		return nil, "", err
	}
	dir := it.path
	if info, err := os.Stat(it.path); err == nil && !info.IsDir() {
		if dir = filepath.Dir(it.path); file != filepath.Base(it.path) {
			return nil, "", fmt.Errorf("%s has no file %q: %w", id, file, errMissing)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(file))
	if err != nil || !info.Mode().IsRegular() {
		return nil, "", fmt.Errorf("%s has no file %q: %w", id, file, errMissing)
	}
	f, err = root.Open(filepath.FromSlash(file))
	return f, path.Base(file), err
}
