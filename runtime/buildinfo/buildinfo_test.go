package buildinfo

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// A version is that of a release where it is a tag alone.
func TestReleased(t *testing.T) {
	for version, want := range sorted.All(map[string]bool{
		"v1.2.3": true, "v0.4.0-rc.1": true, "": false, "(devel)": false, "v1.2.3+dirty": false,
		"v0.0.0-20261126195623-95e31c9112a4": false, "v1.2.4-0.20261126195623-95e31c9112a4": false,
	}) {
		if got := released(version); got != want {
			t.Errorf("%q: %v, expected %v", version, got, want)
		}
	}
}

// TestModulesDigest: a digest of modules' versions is that of all that computes, and of nothing else.
func TestModulesDigest(t *testing.T) {
	made := func(change func(*debug.BuildInfo)) string {
		b := &debug.BuildInfo{
			GoVersion: "go1.26", Path: "example.org/m/cmd/p", Main: debug.Module{Path: "example.org/m", Version: "v1.0.0", Sum: "h1:m"},
			Deps:     []*debug.Module{{Path: "example.org/d", Version: "v0.1.0", Sum: "h1:d"}},
			Settings: []debug.BuildSetting{{Key: "GOARCH", Value: "amd64"}, {Key: "-tags", Value: "a"}},
		}
		change(b)
		return modulesDigest(b)
	}
	same := made(func(*debug.BuildInfo) {})
	if len(same) != 64 {
		t.Fatalf("%q", same)
	}
	for name, c := range sorted.All(map[string]struct {
		want   string // "" where there is none, "other" for another one
		change func(*debug.BuildInfo)
	}{
		"platform":   {same, func(b *debug.BuildInfo) { b.Settings[0].Value = "arm64" }},
		"version":    {"other", func(b *debug.BuildInfo) { b.Main.Version = "v1.0.1" }},
		"dependency": {"other", func(b *debug.BuildInfo) { b.Deps[0].Sum = "h1:e" }},
		"tags":       {"other", func(b *debug.BuildInfo) { b.Settings[1].Value = "b" }},
		"go":         {"other", func(b *debug.BuildInfo) { b.GoVersion = "go1.27" }},
		"revision": {"other", func(b *debug.BuildInfo) {
			b.Main.Sum = ""
			b.Settings = append(b.Settings, debug.BuildSetting{Key: "vcs.revision", Value: "ab"})
		}},
		"changed sources": {"", func(b *debug.BuildInfo) {
			b.Main.Sum = ""
			b.Settings = append(b.Settings, debug.BuildSetting{Key: "vcs.revision", Value: "ab"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"})
		}},
		"no version control":    {"", func(b *debug.BuildInfo) { b.Main.Sum = "" }},
		"module in a directory": {"", func(b *debug.BuildInfo) { b.Deps[0].Replace = &debug.Module{Path: "../d"} }},
	}) {
		got := made(c.change)
		if c.want == "other" && (len(got) != 64 || got == same) || c.want != "other" && got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestFileDigest: two programs without a stamp, which are both "(devel)", have their own digests.
func TestFileDigest(t *testing.T) {
	if os.Getenv("PRINT_BUILD") != "" {
		os.Stdout.WriteString(This().Digest)
		os.Exit(0)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		exe, exeErr := os.Executable()
		if exeErr != nil {
			t.Fatal(exeErr)
		}
		if self, err = os.ReadFile(exe); err != nil {
			t.Fatal(err)
		}
	}
	digest := func(file []byte) string {
		path := filepath.Join(t.TempDir(), "program.exe")
		if err := os.WriteFile(path, file, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(path, "-test.run", "^TestFileDigest$")
		cmd.Env = append(os.Environ(), "PRINT_BUILD=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	own := This()
	if own.Digest == "" || digest(self) != own.Digest || !own.Same(own) {
		t.Errorf("%+v", own)
	}
	// Bytes behind the end of a program change nothing but the file.
	other := Info{Version: own.Version, Digest: digest(append(self, "other"...))}
	if other.Digest == own.Digest || other.Same(own) || (Info{}).Same(Info{}) {
		t.Errorf("%v and %v", own, other)
	}
}
