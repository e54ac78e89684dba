package prepared

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// made prepares a set and says what became of the cache.
func made(t *testing.T, c Config, want *Set, says string) {
	t.Helper()
	s, notes, err := Make(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := same(s, want); err != nil {
		t.Errorf("the set differs: %v", err)
	}
	if s.Manifest.Config != want.Manifest.Config || s.Manifest.ConfigSHA256 != want.Manifest.ConfigSHA256 || !slices.Equal(s.Manifest.Notes, want.Manifest.Notes) {
		t.Errorf("the manifest differs: %+v", s.Manifest)
	}
	if text := strings.Join(notes, "; "); says == "" && text != "" || !strings.Contains(text, says) {
		t.Errorf("notes %q, expected %q", text, says)
	}
}

// kept goes through the life of a cache: the set is made, found, found again from another place,
// and made again after every change of what it depends on, and after damage.
func kept(t *testing.T, place string, damage func(t *testing.T, change func([]byte) []byte), empty func(t *testing.T)) {
	text := csvText(31)
	c := config(t, text)
	want := mustBuild(t, c)
	c.Cache = place
	made(t, c, want, "")
	made(t, c, want, "the set is that of the entry")

	moved := config(t, text)
	other := mustBuild(t, moved)
	moved.Cache = place
	made(t, moved, other, "the set is that of the entry")

	changed := config(t, strings.Replace(text, "ALL,", "ALL,1", 1))
	other = mustBuild(t, changed)
	changed.Cache = place
	made(t, changed, other, "")
	longer := c
	longer.Window = 11
	longer.Cache = ""
	other = mustBuild(t, longer)
	longer.Cache = place
	made(t, longer, other, "")
	// So is what is joined: older bars, twice under one name.
	joined := c
	joined.Source.Join = filepath.Join(t.TempDir(), "older.csv")
	for _, price := range []string{"10", "11"} {
		row := "2014-12-01,ALL," + strings.Repeat(price+",", 5) + "100,12\n"
		lines := strings.SplitAfterN(text, "\n", 6) // the header and the first day
		if err := os.WriteFile(joined.Source.Join, []byte(lines[0]+row+strings.Join(lines[1:4], "")), 0o644); err != nil {
			t.Fatal(err)
		}
		joined.Cache = ""
		other = mustBuild(t, joined)
		joined.Cache = place
		made(t, joined, other, "")
	}

	ran := 0
	for _, change := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:len(b)/2] },
		func(b []byte) []byte { b[len(b)*9/10] ^= 1; return b },
		func(b []byte) []byte { b[len(entryMagic)+40] ^= 0x40; return b },
		func(b []byte) []byte { return []byte("another program's") },
		func(b []byte) []byte { return nil },
	}[:longtest.Cases(t, 5, 2)] {
		damage(t, change)
		made(t, c, want, "is damaged and is made again")
		made(t, c, want, "the set is that of the entry")
		ran++
	}
	if ran != longtest.Cases(t, 5, 2) {
		t.Errorf("%d damages", ran)
	}
	empty(t)
	made(t, c, want, "")
}

func TestFolderCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	files := func(t *testing.T) []string {
		t.Helper()
		list, err := filepath.Glob(filepath.Join(dir, "*.set"))
		if err != nil || len(list) == 0 {
			t.Fatalf("%v, %v", list, err)
		}
		return list
	}
	kept(t, dir, func(t *testing.T, change func([]byte) []byte) {
		t.Helper()
		for _, path := range files(t) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, change(data), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}, func(t *testing.T) {
		t.Helper()
		for _, path := range files(t) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	})
	// A place that cannot be written to costs the cache and nothing else.
	c := config(t, csvText(31))
	want := mustBuild(t, c)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.Cache = filepath.Join(file, "cache")
	made(t, c, want, "the set is not kept")
	c.Cache = "redis://:secret@localhost"
	if _, _, err := Make(context.Background(), c); err == nil || !strings.Contains(err.Error(), "environment variable ONNXRL_REDIS_PASSWORD") || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// redisVar names a redis-server to test with; one that is found by its name is used, too.
const redisVar = "ONNXRL_REDIS_SERVER"

func TestRedisCache(t *testing.T) {
	longtest.Slow(t)
	program := os.Getenv(redisVar)
	if program == "" {
		var err error
		if program, err = exec.LookPath("redis-server"); err != nil {
			t.Skip(redisVar + " is not set, and there is no redis-server")
		}
	}
	dir, err := os.MkdirTemp("", "redis") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	t.Setenv(passwordVar, "open")
	server := exec.Command(program, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir, "--requirepass", "open", "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru", "--maxmemory-samples", "64")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			_ = server.Process.Kill()
			_ = server.Wait()
		}
	}
	t.Cleanup(stop)
	place := "unix://" + socket
	store, err := openCache(place)
	if err != nil {
		t.Fatal(err)
	}
	defer store.close()
	client := store.(*redisCache).Client
	ctx := t.Context()
	for i := 0; client.Ping(ctx).Err() != nil; i++ {
		if i == 3000 {
			t.Fatal("the server does not answer")
		}
		time.Sleep(20 * time.Millisecond)
	}
	keys := func(t *testing.T) []string {
		t.Helper()
		list, err := client.Keys(ctx, "onnxrl:set:*").Result()
		if err != nil || len(list) == 0 {
			t.Fatalf("%v, %v", list, err)
		}
		return list
	}
	kept(t, place, func(t *testing.T, change func([]byte) []byte) {
		t.Helper()
		for _, key := range keys(t) {
			data, err := client.Get(ctx, key).Bytes()
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Set(ctx, key, change(data), 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}, func(t *testing.T) {
		t.Helper()
		// Others fill the memory, and the server evicts.
		junk := strings.Repeat("x", 1<<20)
		for i := 0; ; i++ {
			if err := client.Set(ctx, fmt.Sprint("other:", i), junk, 0).Err(); err != nil {
				t.Fatal(err)
			}
			left, err := client.Keys(ctx, "onnxrl:set:*").Result()
			if err != nil || i > 2000 {
				t.Fatalf("%d entries are left, %v", len(left), err)
			}
			if len(left) == 0 {
				return
			}
		}
	})
	stop()
	c := config(t, csvText(31))
	want := mustBuild(t, c)
	c.Cache = place
	made(t, c, want, "the set is computed; cache: the set is not kept")
}
