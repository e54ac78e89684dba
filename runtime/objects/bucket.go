package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Bucket is what a kind of storage provides: whole objects by key. It is never listed. Keys are
// slash-separated and relative. Implementations are safe for concurrent use. An error that is
// fs.ErrNotExist, fs.ErrPermission, ErrChanged or made by [Final] is final; others are tried again.
type Bucket interface {
	// Stat describes an object.
	Stat(ctx context.Context, key string) (Info, error)
	// Read opens a part of an object.
	Read(ctx context.Context, key string, r Range) (io.ReadCloser, error)
	// Write makes or replaces an object, as a whole or not at all; nil means that it is durable.
	Write(ctx context.Context, key string, b []byte) error
	Close() error
}

// Info describes an object.
type Info struct {
	// Size is in bytes.
	Size int64
	// Tag differs where the content does, like an HTTP entity tag.
	Tag string
}

// Range is a part of an object.
type Range struct {
	// Offset is the first byte, and Length the number of bytes; negative means the rest.
	Offset, Length int64
	// Tag makes the reading of an object with another tag an ErrChanged. Empty takes any.
	Tag string
}

// ErrChanged says that an object was replaced while it was read.
var ErrChanged = errors.New("the object has changed meanwhile")

// Final marks an error as one that trying again does not mend.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &finalError{err}
}

type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

// Driver opens the bucket of a URL. The URL has no user info and no fragment; its path is a prefix
// of all keys. The driver refuses parameters of the query that it does not know, without repeating
// their values.
type Driver func(ctx context.Context, u *url.URL) (Bucket, error)

var drivers = struct {
	sync.RWMutex
	of map[string]Driver
}{of: map[string]Driver{"file": openFile, "mem": openMemory}}

// Register adds a scheme of URLs. Packages of drivers do so when they are imported. It panics where
// the scheme is taken.
func Register(scheme string, d Driver) {
	drivers.Lock()
	defer drivers.Unlock()
	if drivers.of[scheme] != nil {
		panic("objects: scheme " + scheme + " is registered twice")
	}
	drivers.of[scheme] = d
}

// Schemes are those of the drivers there are, sorted.
func Schemes() []string {
	drivers.RLock()
	defer drivers.RUnlock()
	var s []string
	for name := range drivers.of {
		s = append(s, name)
	}
	slices.Sort(s)
	return s
}

// IsURL reports whether s is a URL of a scheme that has a driver. Paths of files are none.
func IsURL(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return ok && slices.Contains(Schemes(), scheme)
}

func openBucket(ctx context.Context, u *url.URL) (Bucket, error) {
	drivers.RLock()
	d := drivers.of[u.Scheme]
	drivers.RUnlock()
	if d == nil {
		return nil, fmt.Errorf("no storage has the scheme %q; expected one of %s", u.Scheme, strings.Join(Schemes(), ", "))
	}
	return d(ctx, u)
}

// noQuery refuses all parameters.
func noQuery(u *url.URL) error {
	if u.RawQuery != "" {
		return fmt.Errorf("a URL of scheme %s has no parameters", u.Scheme)
	}
	return nil
}
