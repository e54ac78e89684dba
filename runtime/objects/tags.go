package objects

import (
	"context"
	"fmt"
	"io/fs"
	"path"
)

// maxTag is the largest value of a tag in bytes.
const maxTag = 64 << 10

func tagKey(name string) (string, error) {
	if !fs.ValidPath(name) || name == "." {
		return "", fmt.Errorf("tag %q: expected a relative path", name)
	}
	return path.Join("tags", name), nil
}

// SetTag replaces the value of a name, a relative path. It is the only thing in a store that
// changes; the last of several writers wins.
func (s *Store) SetTag(ctx context.Context, name string, value []byte) error {
	key, err := tagKey(name)
	if err == nil && len(value) > maxTag {
		err = fmt.Errorf("%d bytes, expected at most %d", len(value), maxTag)
	}
	if err == nil {
		err = s.write(ctx, key, value)
	}
	return s.wrap("tag "+name, err)
}

// Tag returns the value of a name; fs.ErrNotExist where it has none.
func (s *Store) Tag(ctx context.Context, name string) ([]byte, error) {
	key, err := tagKey(name)
	if err != nil {
		return nil, err
	}
	b, err := s.readAll(ctx, key, maxTag)
	return b, s.wrap("tag "+name, err)
}
