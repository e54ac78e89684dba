package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// A release is that of a tag and of nothing else; a snapshot is anything.
func TestVersionOf(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=1700000000 +0100", "GIT_AUTHOR_DATE=1700000000 +0100")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	refused := func(says string) {
		t.Helper()
		if v, err := versionOf(t.Context(), dir, false); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v, %v: expected an error that says %q", v, err, says)
		}
		if v, err := versionOf(t.Context(), dir, true); err != nil || !v.snapshot || !strings.HasPrefix(v.name, "snapshot-") || !strings.HasPrefix(v.pep, "0.0.0.dev0+g") {
			t.Errorf("a snapshot: %+v, %v", v, err)
		}
	}
	released := func(name, pep string) {
		t.Helper()
		v, err := versionOf(t.Context(), dir, false)
		if want := (version{name: name, pep: pep, time: time.Unix(1700000000, 0).UTC()}); err != nil || v != want {
			t.Errorf("%+v, %v: expected %+v", v, err, want)
		}
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "first")
	refused("no tag")
	git("tag", "v1")
	git("tag", "latest")
	git("tag", "v1.0.0+dirty")
	refused("no tag")
	git("tag", "v0.9.0-rc.1")
	released("v0.9.0-rc.1", "0.9.0rc1")
	git("tag", "v0.10.0")
	released("v0.10.0", "0.10.0")
	if err := os.WriteFile(filepath.Join(dir, "new.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused("new.go")
	git("add", "new.go")
	refused("clean tree")
	git("commit", "-q", "-m", "second")
	refused("no tag")
	git("tag", "v1.0.0-mine")
	if _, err := versionOf(t.Context(), dir, false); err == nil || !strings.Contains(err.Error(), "-rc.N") {
		t.Errorf("a tag that pip does not know: %v", err)
	}
	if _, err := versionOf(t.Context(), t.TempDir(), true); err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Errorf("without version control: %v", err)
	}
}

// Six platforms are published, and what is asked for is there or refused.
func TestChoose(t *testing.T) {
	all, err := choose(t.Context(), nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string]int{}
	for _, c := range all {
		if c.cgo {
			continue
		}
		names, err := platformTags(c, "")
		if err != nil {
			t.Error(err)
		}
		for _, n := range names {
			tags[n]++
		}
	}
	var got []string
	for tag := range sorted.All(tags) {
		got = append(got, tag)
	}
	want := []string{"macosx_12_0_arm64", "macosx_12_0_x86_64", "manylinux_2_17_aarch64", "manylinux_2_17_x86_64", "musllinux_1_1_aarch64", "musllinux_1_1_x86_64", "win_amd64", "win_arm64"}
	if !slices.Equal(got, want) {
		t.Errorf("wheels for %v", got)
	}
	one, err := choose(t.Context(), []string{"windows/arm64/portable", "darwin/amd64/portable"}, io.Discard)
	if err != nil || len(one) != 2 || one[0].String() != "darwin/amd64/portable" || one[1].exe() != ".exe" {
		t.Errorf("%v, %v", one, err)
	}
	for _, name := range []string{"linux", "linux/386", "plan9/amd64", "windows/arm64/static"} {
		if _, err := choose(t.Context(), []string{name}, io.Discard); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var said bytes.Buffer
	if c, err := choose(t.Context(), []string{"windows/arm64"}, &said); err != nil || len(c) == 1 && !strings.Contains(said.String(), "no C compiler for windows/arm64") {
		t.Errorf("%v, %v: %s", c, err, said.String())
	}
}

// The same entries are the same archive, whose files keep their names, modes and time.
func TestArchives(t *testing.T) {
	at := time.Unix(1700000000, 0).UTC()
	entries := []entry{{"a/onnxrl", 0o755, []byte("program")}, {"a/" + strings.Repeat("long/", 40) + "LICENSE", 0o644, []byte("terms")}}
	for i, pack := range []func(io.Writer, []entry, time.Time) error{tarball, zipped} {
		var a, b bytes.Buffer
		if err := pack(&a, entries, at); err != nil {
			t.Fatal(err)
		}
		if err := pack(&b, entries, at); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("archive %d differs, %v", i, err)
		}
	}
}
