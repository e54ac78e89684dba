package prepared

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/filehash"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Make prepares a set: of the rows, or from the cache of the configuration if it has the set. What
// is in the cache is found by the contents of the files, the configuration and the program, so that
// it is never stale. An entry that is gone or damaged, or a cache that does not answer, costs the
// computation and nothing else. notes say what became of the cache; there are none without one.
func Make(ctx context.Context, c Config) (s *Set, notes []string, err error) {
	note := func(format string, args ...any) { notes = append(notes, "cache: "+fmt.Sprintf(format, args...)) }
	var store cacheStore
	var key string
	if c.Cache != "" {
		if err := configs.Validate(c); err != nil {
			return nil, nil, fmt.Errorf("prepare: %w", err)
		}
		if store, err = openCache(c.Cache); err != nil {
			return nil, nil, fmt.Errorf("prepare: cache: %w", err)
		}
		defer store.close()
		if key, err = cacheKey(c); err != nil {
			return nil, nil, fmt.Errorf("prepare: cache: %w", err)
		}
		entry, err := store.get(ctx, key)
		if err == nil && entry != nil {
			if s, err = decodeEntry(c, entry); err == nil {
				note("the set is that of the entry %s", key[:12])
				return s, notes, nil
			}
			note("the entry %s is damaged and is made again: %v", key[:12], err)
		} else if err != nil {
			note("%v; the set is computed", err)
		}
	}
	data, err := examined(c, readAway, nil)
	if err != nil {
		return nil, notes, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	if s, err = Build(c, data); err != nil || store == nil {
		return s, notes, err
	}
	entry, err := encodeEntry(s)
	if err == nil {
		err = store.put(ctx, key, entry)
	}
	if err != nil {
		note("the set is not kept: %v", err)
	}
	return s, notes, nil
}

// cacheStore keeps entries by key. get gives nil for one that is not there.
type cacheStore interface {
	get(ctx context.Context, key string) ([]byte, error)
	put(ctx context.Context, key string, entry []byte) error
	close()
}

// passwordVar holds the password of a Redis server, which belongs into no configuration.
const passwordVar = "ONNXRL_REDIS_PASSWORD"

// checkCache says what is wrong with a place.
func checkCache(place string) error {
	if !redisURL(place) {
		return nil
	}
	o, err := redis.ParseURL(place)
	if err != nil {
		return fmt.Errorf("expected a folder, or a server such as redis://localhost:6379/0: %w", err)
	}
	if o.Password != "" {
		return fmt.Errorf("the password belongs into the environment variable %s: configurations are recorded", passwordVar)
	}
	return nil
}

func redisURL(place string) bool {
	return strings.HasPrefix(place, "redis://") || strings.HasPrefix(place, "rediss://") || strings.HasPrefix(place, "unix://")
}

func openCache(place string) (cacheStore, error) {
	if !redisURL(place) {
		return folderCache(place), nil
	}
	o, err := redis.ParseURL(place)
	if err != nil {
		return nil, err
	}
	logging.Disable() // what goes wrong is reported once, as an error
	o.Password = os.Getenv(passwordVar)
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.MaxRetries = 5*time.Second, time.Minute, time.Minute, 1
	return &redisCache{redis.NewClient(o)}, nil
}

// folderCache keeps each entry in a file.
type folderCache string

func (d folderCache) file(key string) string { return filepath.Join(string(d), key+".set") }
func (d folderCache) close()                 {}

func (d folderCache) get(_ context.Context, key string) ([]byte, error) {
	entry, err := os.ReadFile(d.file(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entry, err
}

func (d folderCache) put(_ context.Context, key string, entry []byte) error {
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteBytes(d.file(key), entry)
}

// redisCache keeps entries under onnxrl:set: and their key; when one goes is the server's choice.
type redisCache struct{ *redis.Client }

// redisLimit is the longest value that Redis holds.
const redisLimit = 512 << 20

func (r *redisCache) close() { _ = r.Client.Close() } // Nothing is left to be written.

func (r *redisCache) get(ctx context.Context, key string) ([]byte, error) {
	entry, err := r.Get(ctx, "onnxrl:set:"+key).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return entry, err
}

func (r *redisCache) put(ctx context.Context, key string, entry []byte) error {
	if len(entry) > redisLimit {
		return fmt.Errorf("it has %d bytes, and Redis holds at most %d of one value; use a folder", len(entry), redisLimit)
	}
	return r.Set(ctx, "onnxrl:set:"+key, entry, 0).Err()
}

// program identifies what computes features.
var program = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filehash.SHA256(path)
})

// cacheKey is the digest of everything that a set depends on. Where the files lie is not part of
// it, but for their names, which say symbols and orders.
func cacheKey(c Config) (string, error) {
	code, err := program()
	if err != nil {
		return "", err
	}
	files, err := bars.Contents(c.Source)
	if c.Synthetic.Kind != "" {
		files, err = nil, nil
	}
	if err != nil {
		return "", err
	}
	var more []string
	if c.Source.Join != "" {
		more = append(more, c.Source.Join)
	}
	for _, s := range c.Series {
		more = append(more, s.Path)
	}
	for _, path := range more {
		list, err := bars.Contents(bars.Source{Path: path})
		if err != nil {
			return "", err
		}
		files = append(files, list...)
	}
	for _, path := range []string{c.Source.Exchange, c.Universe.Path} {
		if path == "" || path == c.Source.Exchange && !strings.HasSuffix(path, ".csv") {
			continue
		}
		path, err := objects.Local(path)
		if err != nil {
			return "", err
		}
		sum, err := filehash.SHA256(path)
		if err != nil {
			return "", err
		}
		files = append(files, bars.File{Name: filepath.Base(path), SHA256: sum})
	}
	where := c
	where.Cache, where.Source.Path = "", filepath.Base(c.Source.Path)
	if c.Universe.Path != "" {
		where.Universe.Path = filepath.Base(c.Universe.Path)
	}
	where.Series = append([]bars.PublishedSource(nil), c.Series...)
	for i := range where.Series {
		where.Series[i].Path = filepath.Base(where.Series[i].Path)
	}
	digest, err := configs.Digest(where)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(struct {
		Program, Config string
		Files           []bars.File
	}{code, digest, files})
	return hash(text), err
}

// entryMagic begins an entry; the checksum of the rest and three parts with their lengths follow:
// the manifest and the two tables.
const entryMagic = "onnxrl set 1\n"

func encodeEntry(s *Set) ([]byte, error) {
	m := s.Manifest // the tables' hashes are not part of a set that was not saved
	var features, prices bytes.Buffer
	if err := errors.Join(s.featureTable(&features), s.priceTable(&prices)); err != nil {
		return nil, err
	}
	text, err := json.Marshal(&m)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	for _, part := range [][]byte{text, features.Bytes(), prices.Bytes()} {
		body.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(part))))
		body.Write(part)
	}
	sum := sha256.Sum256(body.Bytes())
	return append(append([]byte(entryMagic), sum[:]...), body.Bytes()...), nil
}

func decodeEntry(c Config, entry []byte) (*Set, error) {
	body, ok := bytes.CutPrefix(entry, []byte(entryMagic))
	if !ok || len(body) < sha256.Size {
		return nil, errors.New("it is no entry")
	}
	sum, body := body[:sha256.Size], body[sha256.Size:]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:]) {
		return nil, errors.New("its checksum does not fit")
	}
	var parts [3][]byte
	for i := range parts {
		if len(body) < 8 || binary.LittleEndian.Uint64(body) > uint64(len(body)-8) {
			return nil, errors.New("it is too short")
		}
		n := binary.LittleEndian.Uint64(body)
		parts[i], body = body[8:8+n], body[8+n:]
	}
	s := &Set{}
	m := &s.Manifest
	if err := json.Unmarshal(parts[0], m); err != nil {
		return nil, err
	}
	loc := time.UTC
	if m.Timezone != "" {
		var err error
		if loc, err = time.LoadLocation(m.Timezone); err != nil {
			return nil, err
		}
	}
	s.alloc(m.T, m.N, m.F, len(m.Extra))
	if err := s.load(parts[1], parts[2], loc); err != nil {
		return nil, err
	}
	return s, m.configured(c)
}
