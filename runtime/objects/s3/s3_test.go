package s3_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/objects"
	_ "github.com/onnxrl/onnxrl/runtime/objects/s3"
	"github.com/onnxrl/onnxrl/runtime/objects/s3/s3test"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// part is the size above which package objects stores files in parts, in bytes.
const part = 16 << 20

func TestMain(m *testing.M) {
	if os.Getenv("ONNXRL_TEST_CHILD") != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child moves a tree: put URL DIR or get URL DIR REF CACHE. It stops for good when a number of
// blobs have gone, and says so.
func child() error {
	f := strings.Split(os.Getenv("ONNXRL_TEST_CHILD"), "\n")
	stop, err := strconv.Atoi(f[1])
	if err != nil {
		return err
	}
	var gone atomic.Int64
	// One after the other: what has come is in the cache when the next is asked for.
	o := objects.Options{Parallel: 1, Progress: func(int64) {
		if gone.Add(1) == int64(stop) {
			fmt.Println("stopped")
			select {}
		}
	}}
	if f[0] == "get" {
		if o.Cache, err = objects.OpenCache(f[5], 0); err != nil {
			return err
		}
	}
	s, err := objects.Open(context.Background(), f[2], o)
	if err != nil {
		return err
	}
	if f[0] == "get" {
		return s.GetTree(context.Background(), objects.Digest(f[4]), f[3])
	}
	ref, err := s.PutTree(context.Background(), f[3])
	fmt.Println(ref)
	return err
}

// start runs a child. With stop it is killed when that number of blobs have gone.
func start(t *testing.T, stop int, args ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ONNXRL_TEST_CHILD="+strings.Join(slices.Insert(args, 1, strconv.Itoa(stop)), "\n"))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if stop > 0 {
		if line != "stopped\n" {
			t.Errorf("the child printed %q, %v, %s", line, err, errs.String())
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return ""
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	return strings.TrimSpace(line)
}

func randomBytes(seed uint64, n int) []byte {
	r := rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, seed)))
	b := make([]byte, n)
	_, _ = r.Read(b)
	return b
}

// writeTree makes a directory like one of a run. With large there is a file of three parts.
func writeTree(t *testing.T, seed uint64, large bool) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	files := map[string][]byte{"config.yaml": []byte("a: 1\n"), "empty": nil}
	for i := range uint64(8) {
		files[fmt.Sprintf("checkpoints/%04d/arrays", i)] = randomBytes(100*seed+i, 10_000+int(i))
	}
	if large {
		files["data/bars.parquet"] = randomBytes(100*seed+50, 2*part+12345)
	}
	for name, b := range sorted.All(files) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		got[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func same(t *testing.T, got, want string) {
	t.Helper()
	a, b := content(t, got), content(t, want)
	if len(a) != len(b) {
		t.Errorf("%d files, want %d", len(a), len(b))
	}
	for name, v := range sorted.All(b) {
		if a[name] != v {
			t.Errorf("%s: %d bytes, want %d, or others", name, len(a[name]), len(v))
		}
	}
}

func fileURL(dir string) string {
	return "file:///" + strings.TrimPrefix(filepath.ToSlash(dir), "/")
}

func open(t *testing.T, url string, o objects.Options) *objects.Store {
	t.Helper()
	s, err := objects.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// storage is one that every test of the table is done with.
type storage struct {
	name, url string
	// file is where an object is; nil where that is no file.
	file func(key string) string
	line *s3test.Line
}

// memories counts the storages in memory.
var memories atomic.Int64

// storages are a directory, memory and, where there is a server, S3.
func storages(t *testing.T, each func(t *testing.T, s storage)) {
	t.Run("file", func(t *testing.T) {
		dir := t.TempDir()
		each(t, storage{name: "file", url: fileURL(dir), file: func(key string) string { return filepath.Join(dir, filepath.FromSlash(key)) }})
	})
	t.Run("mem", func(t *testing.T) {
		// One of its own for every run of the test in this process.
		each(t, storage{name: "mem", url: fmt.Sprintf("mem://%s-%d/pre/fix", strings.ReplaceAll(t.Name(), "/", "-"), memories.Add(1))})
	})
	t.Run("s3", func(t *testing.T) {
		server := s3test.Start(t)
		line := s3test.NewLine(t, server.Address)
		each(t, storage{name: "s3", url: s3test.URL(line.Address, "pre/fix"), line: line, file: func(key string) string { return server.File("pre/fix/" + key) }})
	})
}

// TestStorages: trees, bytes, blobs and tags go there and back, what is there is not sent again,
// and what is not there is said not to be.
func TestStorages(t *testing.T) {
	longtest.Slow(t)
	storages(t, func(t *testing.T, st storage) {
		ctx := t.Context()
		s := open(t, st.url, objects.Options{})
		nothing := objects.DigestOf([]byte("nothing"))
		_, err := s.Get(ctx, nothing)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("nothing: %v", err)
		}
		if _, err := s.Tag(ctx, "a/b"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no tag: %v", err)
		}
		if err := s.GetTree(ctx, nothing, filepath.Join(t.TempDir(), "x")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no tree: %v", err)
		}
		dir := writeTree(t, 1, true)
		ref, err := s.PutTree(ctx, dir)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "copy")
		if err := s.GetTree(ctx, ref, to); err != nil {
			t.Fatal(err)
		}
		same(t, to, dir)
		sent := s.Stats()
		if again, err := s.PutTree(ctx, to); err != nil || again != ref {
			t.Errorf("again %s, %v, want %s", again, err, ref)
		}
		// But for the list of parts of the large file.
		if n := s.Stats().Sent - sent.Sent; n != 1 || sent.Retries != 0 {
			t.Errorf("%d objects sent again, %+v", n, sent)
		}
		for _, b := range [][]byte{nil, []byte("x"), randomBytes(3, part)} {
			d, err := s.Put(ctx, b)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Get(ctx, d)
			if err != nil || !bytes.Equal(got, b) {
				t.Errorf("%d bytes back, %v, want %d", len(got), err, len(b))
			}
		}
		large := randomBytes(4, part+1)
		blob := objects.Blob{Digest: objects.DigestOf(large), Size: int64(len(large))}
		if ok, err := s.HasBlob(ctx, blob); ok || err != nil {
			t.Errorf("there already: %v, %v", ok, err)
		}
		if err := s.PutBlob(ctx, blob, bytes.NewReader(large)); err != nil {
			t.Fatal(err)
		}
		if ok, err := s.HasBlob(ctx, blob); !ok || err != nil {
			t.Errorf("not there: %v, %v", ok, err)
		}
		r, err := s.OpenBlob(ctx, blob)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, large) {
			t.Errorf("%d bytes back, %v", len(got), err)
		}
		for _, v := range []string{"one", "two"} {
			if err := s.SetTag(ctx, "a/b", []byte(v)); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Tag(ctx, "a/b"); err != nil || string(got) != v {
				t.Errorf("tag %q, %v, want %q", got, err, v)
			}
		}
	})
}

// blobs are the requests of a method for blobs.
func blobs(done map[string]int, method string) map[string]int {
	n := map[string]int{}
	for request, times := range sorted.All(done) {
		if _, key, ok := strings.Cut(request, "/blobs/"); ok && strings.HasPrefix(request, method+" ") {
			n[key] = times
		}
	}
	return n
}

// TestKilled kills processes in the middle of an upload and of a download. A tree is not there
// before it is whole, and what has arrived does not go over the line again.
func TestKilled(t *testing.T) {
	longtest.Slow(t)
	storages(t, func(t *testing.T, st storage) {
		if st.name == "mem" {
			return // It ends with its process.
		}
		dir := writeTree(t, 2, true)
		want, err := open(t, "mem://want-"+st.name, objects.Options{}).PutTree(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, st.url, objects.Options{})
		to := filepath.Join(t.TempDir(), "copies", "copy")
		for _, stop := range []int{2, 7, 11} {
			start(t, stop, "put", st.url, dir)
			if err := s.GetTree(t.Context(), want, to); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("killed after %d blobs, and the tree: %v", stop, err)
			}
		}
		if got := start(t, 0, "put", st.url, dir); got != string(want) {
			t.Errorf("reference %s, want %s", got, want)
		}
		cache := filepath.Join(t.TempDir(), "cache")
		var put map[string]int
		if st.line != nil {
			put = blobs(st.line.Done(), "PUT")
		}
		for _, stop := range []int{2, 7, 11} {
			start(t, stop, "get", st.url, to, string(want), cache)
			if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("killed after %d blobs, and the directory is there: %v", stop, err)
			}
			left, err := os.ReadDir(filepath.Dir(to))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range left {
				if !atomicfile.IsTemp(e.Name()) {
					t.Errorf("%s is left", e.Name())
				}
			}
		}
		start(t, 0, "get", st.url, to, string(want), cache)
		same(t, to, dir)
		if st.line == nil {
			return
		}
		got := blobs(st.line.Done(), "GET")
		// Eleven files, one of which has three parts, and the manifest. An empty file is not asked
		// for.
		if len(put) != 14 || len(got) != 13 {
			t.Errorf("%d blobs were sent and %d received, want 14 and 13", len(put), len(got))
		}
		for what, n := range sorted.All(map[string]map[string]int{"sent": put, "received": got}) {
			for key, times := range sorted.All(n) {
				if times != 1 {
					t.Errorf("%s was %s %d times", key, what, times)
				}
			}
		}
	})
}

// TestDamage: what is damaged in the cache is fetched again; what is damaged in the storage is
// said to be, and nothing is made of it.
func TestDamage(t *testing.T) {
	storages(t, func(t *testing.T, st storage) {
		dir := writeTree(t, 3, false)
		cacheDir := filepath.Join(t.TempDir(), "cache")
		cache, err := objects.OpenCache(cacheDir, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, st.url, objects.Options{Cache: cache})
		ref, err := s.PutTree(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		parent := t.TempDir()
		if err := s.GetTree(t.Context(), ref, filepath.Join(parent, "a")); err != nil {
			t.Fatal(err)
		}
		victim := objects.DigestOf(randomBytes(300, 10_000))
		hex := strings.TrimPrefix(string(victim), "sha256:")
		damage := func(path string) {
			t.Helper()
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/2] ^= 1
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		damage(filepath.Join(cacheDir, "sha256", hex))
		before := s.Stats().Received
		if err := s.GetTree(t.Context(), ref, filepath.Join(parent, "b")); err != nil {
			t.Fatal(err)
		}
		same(t, filepath.Join(parent, "b"), dir)
		if n := s.Stats().Received - before; n != 1 {
			t.Errorf("%d blobs received, want the damaged one", n)
		}
		if st.file == nil {
			return
		}
		damage(st.file("blobs/sha256/" + hex))
		err = open(t, st.url, objects.Options{}).GetTree(t.Context(), ref, filepath.Join(parent, "c"))
		if !errors.Is(err, objects.ErrDamaged) || !strings.Contains(err.Error(), string(victim)) && !strings.Contains(err.Error(), hex) {
			t.Errorf("damaged in the storage: %v", err)
		}
		if _, err := os.Lstat(filepath.Join(parent, "c")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a directory was made of it: %v", err)
		}
	})
}

// TestFaults moves trees over a line that refuses, waits, hangs up, cuts and spoils.
func TestFaults(t *testing.T) {
	longtest.Slow(t)
	server := s3test.Start(t)
	failed := map[string]int{}
	const trials = 4
	for seed := range uint64(trials) {
		line := s3test.NewLine(t, server.Address)
		line.Fail(s3test.Faults{Seed: seed, Rate: 0.25, Slow: 5 * time.Millisecond})
		dir := writeTree(t, 10+seed, false)
		s := open(t, s3test.URL(line.Address, fmt.Sprintf("faults/%d", seed)), objects.Options{Attempts: 30})
		ref, err := s.PutTree(t.Context(), dir)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		to := filepath.Join(t.TempDir(), "copy")
		// An answer that is spoilt three times running is damage.
		for err = s.GetTree(t.Context(), ref, to); errors.Is(err, objects.ErrDamaged); err = s.GetTree(t.Context(), ref, to) {
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		same(t, to, dir)
		for kind, n := range sorted.All(line.Failed()) {
			failed[kind] += n
		}
	}
	for _, kind := range s3test.Kinds {
		if failed[kind] == 0 {
			t.Errorf("no fault of kind %q in %d trials", kind, trials)
		}
	}
	if runtime.NumGoroutine() > 1000 {
		t.Errorf("%d goroutines are left", runtime.NumGoroutine())
	}
}

// TestStale publishes trees under a tag that moves, over a line that fails and whose answers do not
// have yet what was written, both together, while others follow the tag. What they get is whole.
func TestStale(t *testing.T) {
	longtest.Slow(t)
	server := s3test.Start(t)
	seen := map[string]int{}
	const trials, versions = 4, 3
	for seed := range uint64(trials) {
		line := s3test.NewLine(t, server.Address)
		at := s3test.URL(line.Address, fmt.Sprintf("stale/%d", seed))
		line.Fail(s3test.Faults{Seed: seed, Rate: 0.1, Stale: 0.2})
		dirs := map[string]string{}
		var list []string
		for i := range uint64(versions) {
			dir := writeTree(t, 100+10*seed+i, false)
			ref, err := objects.TreeDigest(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			dirs[string(ref)], list = dir, append(list, string(ref))
		}
		to := filepath.Join(t.TempDir(), "copy")
		// follow reports whether there was a tree, and which.
		follow := func() string {
			t.Helper()
			s := open(t, at, objects.Options{Attempts: 10})
			tag, err := s.Tag(t.Context(), "latest")
			if err == nil && dirs[string(tag)] == "" {
				// The line has flipped a bit: a tag has no digest of its own.
				seen["spoilt tag"]++
				err = fs.ErrNotExist
			}
			if err == nil {
				err = s.GetTree(t.Context(), objects.Digest(tag), to)
			}
			if err != nil {
				seen["not yet"]++
				if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, objects.ErrDamaged) && !strings.Contains(err.Error(), "tried 10 times") {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if _, err := os.Lstat(to); err == nil {
					t.Fatalf("seed %d: a tree that is not there was made", seed)
				}
				return ""
			}
			seen["whole"]++
			same(t, to, dirs[string(tag)])
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
			return string(tag)
		}
		for i, ref := range list {
			s := open(t, at, objects.Options{Attempts: 30})
			if got, err := s.PutTree(t.Context(), dirs[ref]); err != nil || string(got) != ref {
				t.Fatalf("seed %d: %s, %v", seed, got, err)
			}
			if got := follow(); slices.Contains(list[i:], got) {
				t.Errorf("seed %d: tree %d is followed before its tag is set", seed, i)
			}
			if err := s.SetTag(t.Context(), "latest", []byte(ref)); err != nil {
				t.Fatal(err)
			}
			for range 4 {
				if got := follow(); got != "" && got != ref {
					t.Errorf("seed %d: %s is followed, of a tag that is %s", seed, got, ref)
				}
			}
		}
		line.Fail(s3test.Faults{})
		if got := follow(); got != list[versions-1] {
			t.Errorf("seed %d: in the end %q is followed, want %s", seed, got, list[versions-1])
		}
		seen["stale"] += line.Failed()["stale"]
		seen["500"] += line.Failed()["500"]
	}
	if seen["whole"] < trials || seen["not yet"] < trials || seen["stale"] < trials || seen["500"] == 0 {
		t.Errorf("%v", seen)
	}
}

// TestServersErrors: what a real server says to wrong credentials and about a missing bucket.
func TestServersErrors(t *testing.T) {
	server := s3test.Start(t)
	s3url := s3test.URL(server.Address, "x")
	for name, c := range sorted.All(map[string]struct {
		access, secret, url string
		want                []string
		is                  error
	}{
		"wrong secret":   {s3test.Access, "wrong-" + s3test.Secret, s3url, []string{"403 SignatureDoesNotMatch", `may read and write bucket "team"`}, fs.ErrPermission},
		"nobody":         {"nobody", s3test.Secret, s3url, []string{"permission denied: the server answers 404 XAdminUserNotFound"}, fs.ErrPermission},
		"missing bucket": {s3test.Access, s3test.Secret, strings.Replace(s3url, "//team/", "//none/", 1), []string{`bucket "none" is not there; expected one that exists`}, nil},
	}) {
		t.Setenv("AWS_ACCESS_KEY_ID", c.access)
		t.Setenv("AWS_SECRET_ACCESS_KEY", c.secret)
		s := open(t, c.url, objects.Options{})
		_, put := s.PutTree(t.Context(), writeTree(t, 1, false))
		_, get := s.Get(t.Context(), objects.DigestOf(nil))
		for _, err := range []error{put, get} {
			if err == nil || c.is != nil && !errors.Is(err, c.is) || c.is == nil && errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: error %v", name, err)
				continue
			}
			if strings.Contains(err.Error(), s3test.Secret) || !strings.Contains(err.Error(), objects.Redact(c.url)) {
				t.Errorf("%s: error %v", name, err)
			}
		}
		// A HEAD has no body that would say more.
		if text := get.Error(); !contains(text, c.want) {
			t.Errorf("%s: error %s, want %q", name, text, c.want)
		}
		if n := s.Stats().Retries; n != 0 {
			t.Errorf("%s: tried again %d times", name, n)
		}
	}
}

func contains(text string, want []string) bool {
	return !slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(text, w) })
}
