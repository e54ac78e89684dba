// Package buildinfo says which program runs: its version, and a digest that two programs share if, and
// only if, they compute the same.
package buildinfo

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// Info says which code runs; the JSON keys are stable. Revision is empty in a build without version
// control.
type Info struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	// Modified says that the sources were not those of the revision.
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	// Digest identifies the code that computes, as SHA-256 in hexadecimal digits: of the versions of
	// all modules where the build recorded them, so that releases for different platforms agree, and
	// else of the program's file. It is empty where that file cannot be read.
	Digest string `json:"digest,omitempty"`
}

// This describes the running program. The first call may read the whole of its file.
var This = sync.OnceValue(func() Info {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return Info{Version: "unknown", Go: runtime.Version(), Digest: fileDigest()}
	}
	v := Info{Version: Version(), Go: runtime.Version(), Digest: cmp.Or(modulesDigest(b), fileDigest())}
	v.Revision, v.Modified = revision(b)
	return v
})

// String is the version with the beginning of the digest.
func (v Info) String() string {
	if v.Digest == "" {
		return v.Version
	}
	return fmt.Sprintf("%s (build %.12s)", v.Version, v.Digest)
}

// Same reports whether two programs compute the same. A program without a digest is the same as
// none.
func (v Info) Same(other Info) bool { return v.Digest != "" && v.Digest == other.Digest }

// Version is the version of the running program: that of a release, else the first twelve digits of
// its revision, else its module's version.
func Version() string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := b.Main.Version; released(v) {
		return v
	}
	if r, _ := revision(b); len(r) >= 12 {
		return r[:12]
	}
	return cmp.Or(b.Main.Version, "devel")
}

// Program is the name and the version of the running program.
func Program() string {
	name := "program"
	if b, ok := debug.ReadBuildInfo(); ok && b.Path != "" {
		name = filepath.Base(b.Path)
	}
	return name + " " + Version()
}

// released reports whether a module's version is the tag of a release: not one that is made up from
// a revision, nor that of changed sources.
func released(version string) bool {
	return semver.IsValid(version) && semver.Build(version) == "" && !module.IsPseudoVersion(version)
}

func revision(b *debug.BuildInfo) (id string, modified bool) {
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			id = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	return id, modified
}

// modulesDigest is empty where the build does not say what it was made from: sources under version
// control that were changed, or under none, a module in a directory.
func modulesDigest(b *debug.BuildInfo) string {
	id, modified := revision(b)
	if b.Main.Sum == "" && (id == "" || modified) {
		return ""
	}
	h := sha256.New()
	fmt.Fprintln(h, b.GoVersion, b.Path, b.Main.Path, b.Main.Version, b.Main.Sum, id)
	for _, d := range b.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		if d.Sum == "" {
			return ""
		}
		fmt.Fprintln(h, d.Path, d.Version, d.Sum)
	}
	// Platform and cgo are no part of it: they change the last bits of results, not what is computed.
	for _, s := range b.Settings {
		if slices.Contains([]string{"-tags", "-gcflags", "GOEXPERIMENT", "GOFIPS140"}, s.Key) {
			fmt.Fprintln(h, s.Key, s.Value)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// fileDigest is empty where the program's file cannot be read.
func fileDigest() string {
	// On Linux it is what runs, even if another file has taken its place meanwhile.
	path := "/proc/self/exe"
	if runtime.GOOS != "linux" {
		var err error
		if path, err = os.Executable(); err != nil {
			return ""
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}
