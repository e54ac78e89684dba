package objects

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"sync"
)

// memory has the buckets of mem:// by host. They live as long as the process.
var memory = struct {
	sync.Mutex
	of map[string]*memoryBucket
}{of: map[string]*memoryBucket{}}

// memoryBucket is for tests and examples.
type memoryBucket struct {
	mu sync.RWMutex
	of map[string][]byte
}

// memoryPrefix is a memoryBucket under a prefix.
type memoryPrefix struct {
	*memoryBucket
	prefix string
}

// openMemory opens mem://NAME/PREFIX; whoever opens the same name in this process sees the same.
func openMemory(_ context.Context, u *url.URL) (Bucket, error) {
	if err := noQuery(u); err != nil {
		return nil, err
	}
	memory.Lock()
	defer memory.Unlock()
	b := memory.of[u.Host]
	if b == nil {
		b = &memoryBucket{of: map[string][]byte{}}
		memory.of[u.Host] = b
	}
	return memoryPrefix{b, strings.Trim(u.Path, "/")}, nil
}

func (b memoryPrefix) get(key string) ([]byte, Info, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	content, ok := b.of[path.Join(b.prefix, key)]
	if !ok {
		return nil, Info{}, fmt.Errorf("%s: %w", key, fs.ErrNotExist)
	}
	return content, Info{Size: int64(len(content)), Tag: string(DigestOf(content))}, nil
}

func (b memoryPrefix) Stat(ctx context.Context, key string) (Info, error) {
	_, info, err := b.get(key)
	return info, err
}

func (b memoryPrefix) Read(ctx context.Context, key string, r Range) (io.ReadCloser, error) {
	content, info, err := b.get(key)
	if err != nil {
		return nil, err
	}
	if r.Tag != "" && r.Tag != info.Tag {
		return nil, ErrChanged
	}
	content = content[min(r.Offset, info.Size):]
	if r.Length >= 0 {
		content = content[:min(r.Length, int64(len(content)))]
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

func (b memoryPrefix) Write(ctx context.Context, key string, content []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of[path.Join(b.prefix, key)] = bytes.Clone(content)
	return nil
}

func (memoryPrefix) Close() error { return nil }
