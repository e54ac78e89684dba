package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// fileBucket is a directory.
type fileBucket struct{ dir string }

// openFile opens file:///DIR.
func openFile(_ context.Context, u *url.URL) (Bucket, error) {
	if err := noQuery(u); err != nil {
		return nil, err
	}
	if u.Host != "" && u.Host != "localhost" {
		return nil, fmt.Errorf("host %q: expected none, as in file:///absolute/path", u.Host)
	}
	path := u.Path
	if runtime.GOOS == "windows" && len(path) > 2 && path[2] == ':' {
		path = path[1:]
	}
	if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
		return nil, fmt.Errorf("path %q: expected an absolute one, as in file:///absolute/path", u.Path)
	}
	return fileBucket{path}, nil
}

func (b fileBucket) path(key string) (string, error) {
	if !fs.ValidPath(key) {
		return "", Final(fmt.Errorf("key %q is no relative path", key))
	}
	return filepath.Join(b.dir, filepath.FromSlash(key)), nil
}

func (b fileBucket) open(key string) (*os.File, Info, error) {
	path, err := b.path(key)
	if err != nil {
		return nil, Info{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, Info{}, Final(err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, Info{}, Final(errors.Join(err, f.Close()))
	}
	return f, Info{Size: st.Size(), Tag: fmt.Sprintf("%d-%d", st.Size(), st.ModTime().UnixNano())}, nil
}

func (b fileBucket) Stat(_ context.Context, key string) (Info, error) {
	f, info, err := b.open(key)
	if err != nil {
		return Info{}, err
	}
	return info, f.Close()
}

func (b fileBucket) Read(_ context.Context, key string, r Range) (io.ReadCloser, error) {
	f, info, err := b.open(key)
	if err != nil {
		return nil, err
	}
	if r.Tag != "" && r.Tag != info.Tag {
		return nil, errors.Join(ErrChanged, f.Close())
	}
	length := info.Size - r.Offset
	if r.Length >= 0 {
		length = r.Length
	}
	return readCloser{io.NewSectionReader(f, r.Offset, max(0, length)), f}, nil
}

func (b fileBucket) Write(_ context.Context, key string, content []byte) error {
	path, err := b.path(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return Final(err)
	}
	return Final(atomicfile.WriteBytes(path, content))
}

func (fileBucket) Close() error { return nil }

type readCloser struct {
	io.Reader
	io.Closer
}

// splitKey returns the last element of a slash-separated path, and what stands before it.
func splitKey(path string) (dir, base string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i+1], path[i+1:]
}
