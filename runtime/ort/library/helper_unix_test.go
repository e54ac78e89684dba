//go:build unix

package library

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// librarySize is enough for several progress reports, and small enough to be
// compressed quickly under the race detector.
const librarySize = 300 << 10

// world is a machine of its own: a cache, a PATH that holds nothing but the fake
// package clients put there, and a catalogue of the packages they deliver.
type world struct {
	t       *testing.T
	root    string
	library []byte
	l       *locator
}

const (
	npmEntry = "package/bin/libonnxruntime.so.1"
	pipEntry = "onnxruntime/capi/libonnxruntime.so." + Version
)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir(), library: make([]byte, librarySize)}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range w.library {
		w.library[i] = byte(r.Uint32())
	}
	for _, d := range []string{"bin", "cache", "served", "system"} {
		if err := os.Mkdir(filepath.Join(w.root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(w.root, "bin"))
	w.l = testLocator(w.root, int64(len(w.library)), sum(w.library))
	return w
}

func testLocator(root string, size int64, sha string) *locator {
	p := hostPlatform()
	return &locator{
		platform: p,
		catalog: catalogue{p: {
			{client: "npm", entry: npmEntry, size: size, sha256: sha},
			{client: "pip", tag: "any", entry: pipEntry, size: size, sha256: sha},
		}},
		getenv:     func(string) string { return "" },
		cacheRoot:  filepath.Join(root, "cache"),
		systemDirs: []string{filepath.Join(root, "system")},
	}
}

func sum(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }

func (w *world) write(path string, data []byte, mode os.FileMode) string {
	w.t.Helper()
	path = filepath.Join(w.root, path)
	if err := os.WriteFile(path, data, mode); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// client installs a fake package client. The script finds the packages under
// $served, appends its name to $calls, and runs in the download directory.
func (w *world) client(name, script string) {
	w.t.Helper()
	w.write("bin/"+name, fmt.Appendf(nil, "#!/bin/sh\nPATH=/usr/bin:/bin\nserved=%q\necho \"%s $*\" >>%q\n%s\n",
		filepath.Join(w.root, "served"), name, filepath.Join(w.root, "calls"), script), 0o755)
}

const deliverNPM, deliverPip = `cp "$served/p.tgz" onnxruntime-node.tgz`, `cp "$served/p.whl" onnxruntime.whl`

// calls returns the command lines that the fake clients received.
func (w *world) calls() []string {
	data, err := os.ReadFile(filepath.Join(w.root, "calls"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func (w *world) tgz(entry string, content []byte) []byte {
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	tw := tar.NewWriter(gz)
	for _, f := range []struct {
		name string
		data []byte
	}{{"package/package.json", []byte("{}")}, {entry, content}} {
		if err := tw.WriteHeader(&tar.Header{Name: f.name, Size: int64(len(f.data)), Mode: 0o644}); err != nil {
			w.t.Fatal(err)
		}
		if _, err := tw.Write(f.data); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		w.t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		w.t.Fatal(err)
	}
	return b.Bytes()
}

func (w *world) whl(entry string, content []byte) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create(entry)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := f.Write(content); err != nil {
		w.t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		w.t.Fatal(err)
	}
	return b.Bytes()
}

func (w *world) installedPath() string {
	return filepath.Join(w.l.cacheDir(), w.l.platform.libraryName())
}

// wantInstalled fails unless the installed file is complete and nothing else but
// the lock lies beside it.
func (w *world) wantInstalled() {
	w.t.Helper()
	data, err := os.ReadFile(w.installedPath())
	if err != nil {
		w.t.Fatal(err)
	}
	if !bytes.Equal(data, w.library) {
		w.t.Errorf("installed file has %d bytes and SHA-256 %s, expected %d and %s", len(data), sum(data), len(w.library), sum(w.library))
	}
	w.wantOnly("lock", w.l.platform.libraryName())
}

// wantOnly fails unless the cache directory holds just these names.
func (w *world) wantOnly(names ...string) {
	w.t.Helper()
	entries, err := os.ReadDir(w.l.cacheDir())
	if err != nil {
		w.t.Fatal(err)
	}
	got := map[string]bool{}
	for _, e := range entries {
		got[e.Name()] = true
	}
	for _, n := range names {
		if !got[n] {
			w.t.Errorf("cache lacks %s", n)
		}
		delete(got, n)
	}
	for n := range sorted.All(got) {
		w.t.Errorf("cache holds %s, expected only %v", n, names)
	}
}

// The test binary runs itself as another process when this variable is set.
const envHelper = "ONNXRL_TEST_INSTALLER"

// installerSpec is the input of a helper process.
type installerSpec struct {
	Root     string
	Size     int64
	SHA256   string
	Routines int
	// Stall makes the process announce the middle of an extraction and stay there
	// until it is killed.
	Stall bool
}

func TestMain(m *testing.M) {
	if spec := os.Getenv(envHelper); spec != "" {
		runInstaller(spec)
		return
	}
	os.Exit(m.Run())
}

func runInstaller(encoded string) {
	var spec installerSpec
	if err := json.Unmarshal([]byte(encoded), &spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	o := Options{AllowInstall: true}
	if spec.Stall {
		o.Progress = func(p Progress) {
			if p.Phase == PhaseExtracting && p.Bytes > 0 && p.Bytes < p.Total {
				fmt.Println("extracting")
				select {}
			}
		}
	}
	var wg sync.WaitGroup
	for range spec.Routines {
		wg.Go(func() {
			found, err := testLocator(spec.Root, spec.Size, spec.SHA256).locate(context.Background(), o)
			if err != nil {
				fmt.Println("error", err)
				return
			}
			fmt.Println("found", found.Source, found.SHA256, found.Path)
		})
	}
	wg.Wait()
}
