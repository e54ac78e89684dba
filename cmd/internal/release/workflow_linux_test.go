package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// workflow is what of release.yml is looked at.
type workflow struct {
	On struct {
		Push struct{ Tags []string }
	}
	Permissions map[string]string
	Jobs        map[string]struct {
		Needs       string
		Permissions map[string]string
		Steps       []step
	}
}

type step struct {
	ID, Name, Uses, Run string
	Env, With           map[string]any
}

// On a tag the workflow runs .ci/release, and publishes all of its files with their checksums, the
// signature of these and their provenance; then it builds, runs and signs the image. Its commands
// are run here in the order of its steps, as GitHub's shell does; what it uses of others is stood in
// for. actionlint, in .ci/run, checks the rest of the file.
func TestReleaseWorkflow(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "release.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w.On.Push.Tags, []string{"v*"}) || len(w.Permissions) != 1 || w.Permissions["contents"] != "read" || len(w.Jobs) != 2 || w.Jobs["image"].Needs != "files" {
		t.Errorf("%+v", w)
	}
	for job, needs := range sorted.All(map[string][]string{"files": {"contents", "id-token", "attestations"}, "image": {"packages", "id-token", "attestations"}}) {
		for _, p := range needs {
			if w.Jobs[job].Permissions[p] != "write" {
				t.Errorf("%s: %s is %q, expected write", job, p, w.Jobs[job].Permissions[p])
			}
		}
	}
	for tag, pre := range sorted.All(map[string]bool{"v1.2.3": false, "v1.2.3-rc.1": true}) {
		did := performed(t, &w, tag)
		want := []string{
			"sudo apt-get update", "sudo apt-get install --yes --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross", "release",
			"cosign sign-blob --yes --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS", "provenance of dist/*",
			"gh release create " + tag, "image of configs/deploy/Dockerfile as registry.example/owner/repo:" + tag,
			"docker run --rm registry.example/owner/repo@sha256:ab version", "cosign sign --yes registry.example/owner/repo@sha256:ab", "provenance of registry.example/owner/repo@sha256:ab",
		}
		if len(did) != len(want) {
			t.Fatalf("%s: %q, expected %q", tag, did, want)
		}
		for i, d := range did {
			if i == 5 {
				if !strings.HasPrefix(d, want[i]+" --verify-tag ") || strings.Contains(d, "--prerelease") != pre || !strings.HasSuffix(d, " dist/SHA256SUMS dist/SHA256SUMS.sigstore.json dist/onnxrl.tar.gz dist/provenance.sigstore.json") {
					t.Errorf("%s: %q", tag, d)
				}
			} else if d != want[i] {
				t.Errorf("%s: %q, expected %q", tag, d, want[i])
			}
		}
	}
}

// performed takes the steps of both jobs for a tag, and returns what they have asked for.
func performed(t *testing.T, w *workflow, tag string) (did []string) {
	t.Helper()
	dir := t.TempDir()
	log, output, bundle := filepath.Join(dir, "log"), filepath.Join(dir, "output"), filepath.Join(dir, "bundle")
	sum := sha256.Sum256([]byte("archive\n"))
	for name, text := range sorted.All(map[string]string{
		"bin/sudo": `echo sudo "$@" >> "$LOG"`, "bin/gh": `echo gh "$@" >> "$LOG"; for f in "$@"; do case $f in dist/*) test -s "$f" ;; esac; done`,
		"bin/cosign":  `echo cosign "$@" >> "$LOG"; test "$1" != sign-blob || echo bundle > "$4"`,
		"bin/docker":  `echo docker "$@" >> "$LOG"; echo "onnxrl $GITHUB_REF_NAME"`,
		".ci/release": fmt.Sprintf(`echo release "$@" >> "$LOG"; mkdir dist; echo archive > dist/onnxrl.tar.gz; echo "%x  onnxrl.tar.gz" > dist/SHA256SUMS`, sum),
	}) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\nset -e\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, content := range sorted.All(map[string][]byte{log: nil, output: nil, bundle: []byte("bundle\n")}) {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	values := map[string]string{"github.token": "token", "vars.REGISTRY": "registry.example", "github.ref_name": tag, "github.actor": "owner", "steps.provenance.outputs.bundle-path": bundle, "steps.build.outputs.digest": "sha256:ab"}
	fill := func(v any) string {
		return regexp.MustCompile(`\$\{\{ (\S+) \}\}`).ReplaceAllStringFunc(fmt.Sprint(v), func(e string) string {
			key := strings.TrimSuffix(strings.TrimPrefix(e, "${{ "), " }}")
			value, ok := values[key]
			if !ok {
				t.Errorf("%s: nothing gives it", key)
			}
			return value
		})
	}
	note := func(format string, args ...any) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = fmt.Fprintf(f, format+"\n", args...)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, job := range []string{"files", "image"} {
		for _, s := range w.Jobs[job].Steps {
			with := func(key string) string { return fill(s.With[key]) }
			switch action, version, _ := strings.Cut(s.Uses, "@"); action {
			case "":
				cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "LOG="+log, "GITHUB_OUTPUT="+output, "GITHUB_REF_NAME="+tag, "GITHUB_REPOSITORY=Owner/Repo")
				for k, v := range sorted.All(s.Env) {
					cmd.Env = append(cmd.Env, k+"="+fill(v))
				}
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %s: %v\n%s", job, s.Run, err, out)
				}
				text, err := os.ReadFile(output)
				if err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(string(text)) {
					if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && s.ID != "" {
						values["steps."+s.ID+".outputs."+k] = v
					}
				}
			case "actions/attest-build-provenance":
				if of := s.With["subject-path"]; of != nil {
					note("provenance of %s", of)
				} else {
					note("provenance of %s@%s", with("subject-name"), with("subject-digest"))
				}
			case "docker/build-push-action":
				if with("push") != "true" || with("context") != "." {
					t.Errorf("%+v", s.With)
				}
				note("image of %s as %s", with("file"), with("tags"))
			case "actions/checkout", "actions/setup-go", "sigstore/cosign-installer", "docker/setup-buildx-action", "docker/login-action":
				if version == "" {
					t.Errorf("%s has no version", action)
				}
			default:
				t.Errorf("%s: an action that this test does not know", s.Uses)
			}
		}
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
