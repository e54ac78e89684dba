package layout

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestOwnProgram builds testdata/own, a module of its own that requires this one as it would be
// published: as a zip of a version, from a module proxy. Its program has all subcommands over its
// own environment, and calls itself by its name. Dependencies come from this machine's module
// cache, so nothing is downloaded.
func TestOwnProgram(t *testing.T) {
	longtest.Nightly(t)
	dir := t.TempDir()
	proxy := filepath.Join(dir, "proxy")
	publishModule(t, proxy)
	own := ownModule(t, "")
	env := append(os.Environ(), "GOFLAGS=-mod=mod -trimpath -modcacherw -buildvcs=false", "GOWORK=off", "GOSUMDB=off", "GOTOOLCHAIN=local",
		"GOMODCACHE="+filepath.Join(dir, "mod"), "GOPROXY="+fileURL(proxy)+","+fileURL(filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download")))
	exe := filepath.Join(dir, "own.exe")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", exe, ".")
	build.Dir, build.Env = own, env
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}

	command := func(code int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), exe, args...)
		cmd.Dir, cmd.Env = own, append(os.Environ(), "ONNXRL_NICE=0")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run() // How it ended is what is looked at.
		if cmd.ProcessState.ExitCode() != code {
			t.Fatalf("own %s: exit status %d, expected %d\n%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), code, out.String())
		}
		return out.String()
	}
	says := func(text string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("it does not say %q:\n%s", w, text)
			}
		}
		if strings.Contains(text, "onnxrl ") || strings.Contains(text, "onnxrl:") {
			t.Errorf("it calls itself onnxrl:\n%s", text)
		}
	}
	says(command(0, "env", "ls"), "thermostat", "a room that loses heat", "cartpole")
	says(command(0, "train", "--help"), "own train ", "--resume")
	says(command(1, "train", "thermostat.yaml", "--set", "env.traget=21"), "own: ", "env.traget", "target")
	says(command(0, "train", "thermostat.yaml", "--engine", "portable", "-q", "--out", "run"), "run")
	says(command(1, "train", "thermostat.yaml", "--engine", "portable", "-q", "--out", "run"), "own: ", "--resume")
	manifests, err := filepath.Glob(filepath.Join(own, "run", "checkpoints", "*", "manifest.json"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no checkpoint: %v", err)
	}
	says(readText(t, manifests[0]), `"program": "own 1.2.3"`)
	command(0, "train", "--resume", "run", "--engine", "portable", "-q", "--set", "train.total_env_steps=512")
	if metrics := readText(t, filepath.Join(own, "run", "metrics.jsonl")); !strings.Contains(metrics, `"step":512,`) {
		t.Errorf("the run was not gone on with:\n%s", metrics)
	}
	says(command(0, "evaluate", "run", "--engine", "portable", "-q"), "mean reward")
}

// TestOwnProgramCompiles compiles testdata/own against the packages as they lie here, without
// linking it: it needs nothing of them that is gone, or that others may not import.
func TestOwnProgramCompiles(t *testing.T) {
	longtest.Slow(t)
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-f", "{{.Name}} {{.Export}}", ".")
	list.Dir = ownModule(t, "\nreplace "+modulePath(t)+" => "+here+"\n")
	list.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off", "GOTOOLCHAIN=local")
	if out, err := list.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "main /") {
		t.Errorf("go list: %v\n%s", err, out)
	}
}

// ownModule copies testdata/own, with what go get would write beside the requirement: with all
// versions named, the go command need not read the requirements of modules that nothing is built
// of, which the cache need not hold.
func ownModule(t *testing.T, more string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "own")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "own"))); err != nil {
		t.Fatal(err)
	}
	_, requirements, _ := strings.Cut(readText(t, filepath.Join(root, "go.mod")), "\nrequire (")
	writeText(t, filepath.Join(dir, "go.mod"), readText(t, filepath.Join(dir, "go.mod"))+"\nrequire ("+requirements+more)
	writeText(t, filepath.Join(dir, "go.sum"), readText(t, filepath.Join(root, "go.sum")))
	return dir
}

// publishModule lays this module out as a version on a proxy of files.
func publishModule(t *testing.T, proxy string) {
	t.Helper()
	m := module.Version{Path: modulePath(t), Version: "v0.0.0-test"}
	at := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(at, m.Version+".info"), `{"Version":"`+m.Version+`"}`)
	writeText(t, filepath.Join(at, m.Version+".mod"), readText(t, filepath.Join(root, "go.mod")))
	w, err := os.Create(filepath.Join(at, m.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := zip.Create(w, m, moduleFiles(t, root)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// moduleFiles lists what git does not ignore, so that what lies about beside it is not published; a
// source tree without git is taken as it is.
func moduleFiles(t *testing.T, root string) []zip.File {
	t.Helper()
	var files []zip.File
	if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output(); err == nil && len(out) > 0 {
		for _, name := range strings.Split(strings.Trim(string(out), "\x00"), "\x00") {
			// Removed files are listed until that is committed.
			if f := (treeFile{root, name}); exists(f) {
				files = append(files, f)
			}
		}
		return files
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, treeFile{root, name})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// treeFile is a file of the source tree, by its path with slashes.
type treeFile struct{ root, name string }

func (f treeFile) Path() string                 { return f.name }
func (f treeFile) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(f.root, f.name)) }
func (f treeFile) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.root, f.name)) }

func exists(f treeFile) bool {
	_, err := f.Lstat()
	return err == nil
}

func modulePath(t *testing.T) string {
	t.Helper()
	line, _, _ := strings.Cut(readText(t, filepath.Join(root, "go.mod")), "\n")
	return strings.TrimSpace(strings.TrimPrefix(line, "module "))
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func fileURL(path string) string { return "file:///" + strings.TrimPrefix(filepath.ToSlash(path), "/") }

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
