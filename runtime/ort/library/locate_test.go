package library

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestCatalogue(t *testing.T) {
	if len(published) != 4 {
		t.Errorf("%d platforms, expected 4", len(published))
	}
	sha := regexp.MustCompile(`^[0-9a-f]{64}$`)
	seen := map[string]string{}
	rows := 0
	for p, sources := range sorted.Func(published, func(a, b platform) int { return strings.Compare(a.String(), b.String()) }) {
		for _, s := range sources {
			rows++
			where := p.String() + " " + s.client
			if !sha.MatchString(s.sha256) || seen[s.sha256] != "" {
				t.Errorf("%s: checksum %q is malformed or also that of %q", where, s.sha256, seen[s.sha256])
			}
			seen[s.sha256] = where
			if s.size < 10<<20 {
				t.Errorf("%s: size %d", where, s.size)
			}
			if (s.client == "pip") != (s.tag != "") {
				t.Errorf("%s: platform tag %q", where, s.tag)
			}
			if s.client == "pip" && p.os != "windows" && !strings.Contains(s.entry, Version) {
				t.Errorf("%s: entry %s is of another release", where, s.entry)
			}
			if got := published.bySum(p, s.sha256); got == nil || *got != s {
				t.Errorf("%s: not found by its checksum", where)
			}
		}
		if len(sources) != 1 || sources[0].client != "pip" {
			t.Errorf("%s: sources %v, expected pip", p, sources)
		}
	}
	if rows != 4 {
		t.Errorf("%d rows checked, expected 4", rows)
	}
}

func TestUnsupportedPlatform(t *testing.T) {
	l := newLocator()
	l.platform = platform{"plan9", "mips"}
	l.cacheRoot, l.cacheErr = t.TempDir(), nil
	l.systemDirs = nil
	l.getenv = func(string) string { return "" }
	_, err := l.locate(t.Context(), Options{AllowInstall: true})
	var missing *NotFoundError
	if !errors.As(err, &missing) || !errors.Is(err, ErrUnsupportedPlatform) || !strings.Contains(missing.Hint(), "portable engine") {
		t.Fatalf("error %v", err)
	}
}

// A library that a person names is refused, never replaced by something else.
func TestNamedLibraryIsNeverSkipped(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "libonnxruntime.so")
	if err := os.WriteFile(text, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, flag, env string
		is              error
		says            string
	}{
		{"flag, absent", filepath.Join(dir, "absent.so"), "", fs.ErrNotExist, Flag},
		{"flag, text", text, "", ErrIncompatible, Flag},
		{"flag wins", text, filepath.Join(dir, "absent.so"), ErrIncompatible, Flag},
		{"environment, absent", "", filepath.Join(dir, "absent.so"), fs.ErrNotExist, EnvLibrary},
		{"environment, text", "", text, ErrIncompatible, EnvLibrary},
	}
	for _, c := range cases {
		l := newLocator()
		l.getenv = func(k string) string {
			if k == EnvLibrary {
				return c.env
			}
			return ""
		}
		_, err := l.locate(t.Context(), Options{Path: c.flag, AllowInstall: true})
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, expected %v", c.name, err, c.is)
		}
		if r := l.status(c.flag); len(r.Candidates) == 0 || !errors.Is(r.Candidates[0].Err, c.is) {
			t.Errorf("%s: status %+v", c.name, r.Candidates)
		} else if _, ok := r.Chosen(); ok {
			t.Errorf("%s: status chooses a library that Locate refuses", c.name)
		}
	}
}

// The running program is a valid object file of this machine, and not ONNX
// Runtime.
func TestForeignLibraryIsRefused(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inspect(exe, hostPlatform()); !errors.Is(err, ErrIncompatible) {
		t.Errorf("test binary: %v", err)
	}
	if _, err := inspect(t.TempDir(), hostPlatform()); !errors.Is(err, ErrIncompatible) {
		t.Errorf("directory: %v", err)
	}
	for _, p := range []platform{{"linux", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}} {
		garbage := filepath.Join(t.TempDir(), "garbage")
		if err := os.WriteFile(garbage, []byte(strings.Repeat("\x7fELF\x02\x01", 40)), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := inspect(garbage, p); !errors.Is(err, ErrIncompatible) {
			t.Errorf("garbage on %s: %v", p, err)
		}
	}
}

func TestReleases(t *testing.T) {
	for version, usable := range sorted.All(map[string]bool{
		"": true, "1.32.0": true, "1.28": true, "1.30.1": true,
		"1.27.0": false, "1.23.2": false, "1.9.0": false, "2.0.0": false, "x": false, "1.": false,
	}) {
		if err := checkRelease(version); (err == nil) != usable || err != nil && !errors.Is(err, ErrIncompatible) {
			t.Errorf("release %q: %v, usable should be %v", version, err, usable)
		}
	}
}

func TestSystemDirs(t *testing.T) {
	env := map[string]string{"LD_LIBRARY_PATH": "/a/lib::relative:/usr/local/lib:/a/lib/"}
	dirs := systemDirs(platform{"linux", "amd64"}, func(k string) string { return env[k] })
	count := map[string]int{}
	for _, d := range dirs {
		count[d]++
		if !filepath.IsAbs(d) || count[d] > 1 {
			t.Errorf("directory %q is relative or repeated in %v", d, dirs)
		}
	}
	for _, want := range []string{"/a/lib", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu"} {
		if count[want] != 1 {
			t.Errorf("%v lacks %s", dirs, want)
		}
	}
}
