package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"sync/atomic"
)

// maxPart is the largest object that a Store writes, in bytes, and so the most that an interruption
// makes it send again. It is part of the format: larger blobs are stored as parts of this size.
const maxPart = 16 << 20

// Options say how a Store works.
type Options struct {
	// Cache keeps what was received, on this machine. Nil keeps nothing.
	Cache *Cache
	// Parallel is how many objects are transferred at once, 4 when 0. Each needs up to 16 MiB of
	// memory.
	Parallel int
	// Attempts is how often an operation is tried without progress in between, DefaultAttempts when
	// 0.
	Attempts int
	// MaxBytes is the largest accepted sum of a tree's files, DefaultMaxBytes when 0.
	MaxBytes int64
	// Verify reads objects that are there already before it relies on them, and writes damaged
	// ones again. Without it an object that is there with the expected size is left as it is.
	Verify bool
	// Progress is called as bytes go, by several goroutines; it may be nil. Bytes that the other
	// side has are counted too.
	Progress func(bytes int64)
}

// DefaultMaxBytes is the largest tree that is fetched when nothing else is said.
const DefaultMaxBytes = 64 << 30

// Store is content-addressed storage behind a URL. It is safe for concurrent use, by any number of
// processes.
type Store struct {
	source
	url     string
	cache   *Cache
	verify  bool
	slots   chan struct{}
	most    int64
	part    int64
	report  func(int64)
	counted counters
	// mended are the digests of the objects that Repaired counts.
	mended sync.Map
}

type counters struct{ sent, sentBytes, skipped, repaired, received, receivedBytes, cached, retries, cacheFailures atomic.Int64 }

// Stats count what a Store has done.
type Stats struct {
	// Sent and SentBytes are the objects written; Skipped the blobs that were there already.
	Sent      int64 `json:"sent"`
	SentBytes int64 `json:"sent_bytes"`
	Skipped   int64 `json:"skipped"`
	// Repaired are those of the objects written that were there and damaged, with Options.Verify.
	Repaired int64 `json:"repaired"`
	// Received are the blobs read, ReceivedBytes the bytes read, including those of attempts that
	// failed; Cached the blobs that came from the cache.
	Received      int64 `json:"received"`
	ReceivedBytes int64 `json:"received_bytes"`
	Cached        int64 `json:"cached"`
	// Retries counts waits after an error; CacheFailures what could not be put into the cache,
	// which slows down and is no error.
	Retries       int64 `json:"retries"`
	CacheFailures int64 `json:"cache_failures"`
}

// ErrDamaged marks what is not what its digest says.
var ErrDamaged = errors.New("damaged")

// Open opens the storage at a URL: file:///DIR, mem://NAME (of this process, for tests), and what
// the imported drivers add. Nothing is created before something is put. A URL with user info is
// refused.
func Open(ctx context.Context, rawURL string, o Options) (*Store, error) {
	u, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	if u.Fragment != "" {
		return nil, fmt.Errorf("URL %s: a store has no fragment", Redact(rawURL))
	}
	b, err := openBucket(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", Redact(rawURL), err)
	}
	return newStore(b, Redact(rawURL), o), nil
}

func newStore(b Bucket, shownURL string, o Options) *Store {
	if o.Parallel <= 0 {
		o.Parallel = 4
	}
	if o.Attempts <= 0 {
		o.Attempts = DefaultAttempts
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	s := &Store{url: shownURL, cache: o.Cache, verify: o.Verify, slots: make(chan struct{}, o.Parallel), most: o.MaxBytes, part: maxPart, report: o.Progress}
	s.source = source{bucket: b, attempts: o.Attempts, stats: &s.counted, sleep: sleep}
	return s
}

// URL is where the store is, without what may be secret.
func (s *Store) URL() string { return s.url }

// Verifies says whether Options.Verify was set.
func (s *Store) Verifies() bool { return s.verify }

// Close releases connections.
func (s *Store) Close() error { return s.bucket.Close() }

// Stats returns what the store has done so far.
func (s *Store) Stats() Stats {
	c := &s.counted
	return Stats{Sent: c.sent.Load(), SentBytes: c.sentBytes.Load(), Skipped: c.skipped.Load(), Repaired: c.repaired.Load(), Received: c.received.Load(), ReceivedBytes: c.receivedBytes.Load(),
		Cached: c.cached.Load(), Retries: c.retries.Load(), CacheFailures: c.cacheFailures.Load()}
}

func (s *Store) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", s.url, what, err)
}

// Put stores at most 16 MiB under their digest, unless they are there already.
func (s *Store) Put(ctx context.Context, b []byte) (Digest, error) {
	d := DigestOf(b)
	if int64(len(b)) > s.part {
		return "", s.wrap("put "+string(d), fmt.Errorf("%d bytes, expected at most %d", len(b), s.part))
	}
	return d, s.wrap("put "+string(d), s.putPart(ctx, d, b))
}

// Get returns what Put has stored. What the store has under the digest and is something else is
// ErrDamaged, what it does not have is fs.ErrNotExist.
func (s *Store) Get(ctx context.Context, d Digest) ([]byte, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	b, err := s.getPart(ctx, Blob{d, -1})
	return b, s.wrap("get "+string(d), err)
}

func blobKey(d Digest) string { return path.Join("blobs", "sha256", d.hex()) }

// putPart writes an object unless one of this size is there, which with Options.Verify has the
// digest, too. Objects are written as a whole, from bytes that have this digest.
func (s *Store) putPart(ctx context.Context, d Digest, b []byte) error {
	info, err := s.stat(ctx, blobKey(d))
	there := err == nil && info.Size == int64(len(b))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	damaged := false
	if there && s.verify {
		_, err := s.readPart(ctx, Blob{d, info.Size})
		switch damaged = errors.Is(err, ErrDamaged); {
		case damaged || errors.Is(err, fs.ErrNotExist):
			there = false
		case err != nil:
			return err
		}
	}
	if there {
		s.counted.skipped.Add(1)
	} else if err := s.write(ctx, blobKey(d), b); err != nil {
		return err
	} else if damaged {
		// Files of one tree with the same content may be sent at the same time.
		if _, twice := s.mended.LoadOrStore(d, true); !twice {
			s.counted.repaired.Add(1)
		}
	}
	s.report(int64(len(b)))
	return nil
}

// getPart returns an object from the cache or the bucket, compared with its digest. The size may be
// -1 for one that is not known.
func (s *Store) getPart(ctx context.Context, want Blob) ([]byte, error) {
	if b, ok := s.cache.get(want.Digest, s.part); ok {
		s.counted.cached.Add(1)
		s.report(int64(len(b)))
		return b, nil
	}
	b, err := s.readPart(ctx, want)
	if err != nil {
		return nil, err
	}
	s.counted.received.Add(1)
	if err := s.cache.put(ctx, want.Digest, b); err != nil {
		s.counted.cacheFailures.Add(1)
	}
	s.report(int64(len(b)))
	return b, nil
}

// readPart reads an object of the bucket, compared with its digest; see getPart.
func (s *Store) readPart(ctx context.Context, want Blob) (b []byte, err error) {
	err = s.verified(ctx, blobKey(want.Digest), func() (err error) {
		if want.Size < 0 {
			b, err = s.readAll(ctx, blobKey(want.Digest), s.part)
		} else {
			w := newBuffer(want.Size)
			err = s.copyRange(ctx, w, blobKey(want.Digest), "", 0, want.Size)
			b = w.b
		}
		if err != nil {
			return Final(err)
		}
		if got := DigestOf(b); got != want.Digest {
			return fmt.Errorf("%w: it has digest %s and %d bytes", ErrDamaged, got, len(b))
		}
		return nil
	})
	return b, err
}

// verified calls do, which reads an object, again where what came is damaged: the line may be bad.
// Errors of the storage itself have been tried again by then.
func (s *Store) verified(ctx context.Context, key string, do func() error) error {
	again := s.source
	again.attempts = damagedAttempts
	err := again.retry(ctx, "verify "+key, func() (bool, error) { return false, do() })
	if errors.Is(err, ErrDamaged) {
		return s.damage(key, err)
	}
	return err
}

// damage says which object is damaged, and what mends it.
func (s *Store) damage(key string, err error) error {
	return fmt.Errorf("%w; the object %s in %s is damaged: sending what it is a part of there once more, with --verify (models push --verify), writes it again", err, key, s.url)
}

// damagedAttempts is how often an object whose content is wrong is read.
const damagedAttempts = 3

type buffer struct{ b []byte }

func newBuffer(size int64) *buffer { return &buffer{make([]byte, 0, size)} }

func (w *buffer) Write(p []byte) (int, error) {
	w.b = append(w.b, p...)
	return len(p), nil
}

// acquire takes a slot for an object in memory.
func (s *Store) acquire(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Store) release() { <-s.slots }
