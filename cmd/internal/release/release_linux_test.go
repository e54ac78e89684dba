package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

const root = "../../.."

// TestRelease builds a snapshot for this machine as .ci/release does, and uses each of its files as
// somebody would who has nothing else.
func TestRelease(t *testing.T) {
	longtest.Nightly(t)
	platform := target{os: runtime.GOOS, arch: runtime.GOARCH}
	dist := filepath.Join(t.TempDir(), "new", "dist")
	var said bytes.Buffer
	if err := run(t.Context(), []string{"--snapshot", "--source", root, "--target", platform.String(), "--out", dist}, &said); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(dist))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the files: %v, %v", entries, err)
	}
	files := checked(t, dist)
	if len(files) != 2 || !strings.HasSuffix(files[0], ".whl") && !strings.HasSuffix(files[1], ".whl") {
		t.Fatalf("files %v", files)
	}
	slices.SortFunc(files, func(a, b string) int { return strings.Compare(filepath.Ext(a), filepath.Ext(b)) })
	program := t.TempDir()
	ran := 0
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{
		{"archive", func(t *testing.T) { useArchive(t, filepath.Join(dist, files[0]), program, platform) }},
		{"list", func(t *testing.T) { checkList(t, program, platform) }},
		{"wheel", func(t *testing.T) { checkWheel(t, filepath.Join(dist, files[1])) }},
		{"pip", func(t *testing.T) { usePip(t, filepath.Join(dist, files[1])) }},
		{"page", func(t *testing.T) { followPage(t, dist) }},
	} {
		t.Run(c.name, c.test)
		ran++
	}
	if ran != 5 {
		t.Errorf("%d parts ran", ran)
	}
	if err := run(t.Context(), []string{"--snapshot", "--source", root, "--out", dist}, io.Discard); err == nil || !strings.Contains(err.Error(), "new folder") {
		t.Errorf("a folder that is there: %v", err)
	}
}

// checked compares the files with SHA256SUMS, and returns their names.
func checked(t *testing.T, dist string) (files []string) {
	t.Helper()
	entries, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	sums := ""
	for _, e := range entries {
		if e.Name() == "SHA256SUMS" {
			continue
		}
		files = append(files, e.Name())
		content, err := os.ReadFile(filepath.Join(dist, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(content), e.Name())
	}
	if text, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS")); err != nil || string(text) != sums {
		t.Errorf("SHA256SUMS is\n%s\nexpected\n%s%v", text, sums, err)
	}
	return files
}

// unpack writes what is below the only folder of an archive to dir.
func unpack(t *testing.T, path, dir string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	top := strings.TrimSuffix(filepath.Base(path), ".tar.gz") + "/"
	for a := tar.NewReader(z); ; {
		h, err := a.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(h.Name, top)
		if !ok || h.Uid != 0 || h.Uname != "" || h.Typeflag != tar.TypeReg {
			t.Errorf("entry %+v", h)
		}
		content, err := io.ReadAll(a)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, h.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

// useArchive unpacks it to dir and trains, evaluates and exports with the program where there is
// nothing else: no home, no Go, no programs.
func useArchive(t *testing.T, path, dir string, platform target) {
	unpack(t, path, dir)
	empty := t.TempDir()
	onnxrl := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "onnxrl"), args...)
		cmd.Dir, cmd.Env = empty, []string{"HOME=" + empty, "PATH=" + filepath.Join(empty, "bin")}
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("onnxrl %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
		}
		return string(out)
	}
	var v struct {
		Version, Platform string
		Cgo               bool
	}
	if err := json.Unmarshal([]byte(onnxrl("version", "--json")), &v); err != nil {
		t.Fatal(err)
	}
	if v.Version == "" || v.Platform != platform.os+"/"+platform.arch || v.Cgo {
		t.Errorf("%+v", v)
	}
	learn(t, onnxrl)
	if out := onnxrl("evaluate", "runs/c", "--episodes", "2", "--json"); !strings.Contains(out, `"mean_reward"`) {
		t.Errorf("evaluate printed %s", out)
	}
}

// learn trains a policy in runs/c and exports it to the folder c.
func learn(t *testing.T, onnxrl func(...string) string) {
	t.Helper()
	onnxrl("train", "-q", "cartpole_ppo", "--out", "runs/c", "--set", "train.total_env_steps=2048", "--set", "train.validation.every_steps=2048", "--set", "publish={observations: 64, allow_ties: true}")
	onnxrl("export", "-q", "runs/c", "--format", "python", "-o", "c", "--rows", "64", "--allow-ties")
}

// checkList compares the list with the program: SPDX 2.3 has all that it requires, and every module
// that is linked is in it and has its terms beside the program.
func checkList(t *testing.T, dir string, platform target) {
	info, err := buildinfo.ReadFile(filepath.Join(dir, "onnxrl"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "sbom.spdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d spdxDocument
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if d.Version != "SPDX-2.3" || d.DataLicense != "CC0-1.0" || d.ID != "SPDXRef-DOCUMENT" || d.Name == "" || !strings.HasPrefix(d.Namespace, "https://"+info.Main.Path+"/") || strings.Contains(d.Namespace, "#") {
		t.Errorf("document %+v", d)
	}
	if _, err := time.Parse("2006-01-02T15:04:05Z", d.Creation.Created); err != nil || len(d.Creation.Creators) == 0 {
		t.Errorf("%+v %v", d.Creation, err)
	}
	ids, versions := map[string]bool{d.ID: true}, map[string]string{}
	for _, p := range d.Packages {
		if !regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`).MatchString(p.ID) || ids[p.ID] {
			t.Errorf("%s: id %q", p.Name, p.ID)
		}
		if p.Name == "" || p.Version == "" || p.DownloadLocation == "" || p.Concluded == "" || p.Declared == "" || p.Copyright == "" || p.FilesAnalyzed || len(p.References) != 1 {
			t.Errorf("%+v", p)
		}
		ids[p.ID], versions[p.Name] = true, p.Version
	}
	related := map[string]bool{}
	for _, r := range d.Relationships {
		if !ids[r.Element] || !ids[r.Related] || related[r.Related] || r.Type != "DESCRIBES" && r.Type != "DEPENDS_ON" {
			t.Errorf("%+v", r)
		}
		related[r.Related] = true
	}
	if len(related) != len(d.Packages) || len(d.Packages) != len(info.Deps)+2 || len(info.Deps) < 40 {
		t.Errorf("%d packages, %d related, %d modules", len(d.Packages), len(related), len(info.Deps))
	}
	for _, m := range info.Deps {
		if versions[m.Path] != m.Version {
			t.Errorf("%s %s is listed as %q", m.Path, m.Version, versions[m.Path])
		}
		terms, err := os.ReadDir(filepath.Join(dir, "licences", filepath.FromSlash(m.Path+"@"+m.Version)))
		if err != nil || len(terms) == 0 {
			t.Errorf("%s: terms %v, %v", m.Path, terms, err)
		}
	}
	for _, name := range []string{"LICENSE", "THIRD_PARTY_NOTICES", "licences/" + info.GoVersion + "/LICENSE"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if versions["std"] == "" || "go"+versions["std"] != info.GoVersion || versions[info.Path] == "" || platform.cgo {
		t.Errorf("versions of %s and Go: %q, %q", info.Path, versions[info.Path], versions["std"])
	}
}

// checkWheel compares every file of a wheel with RECORD, which names all but itself.
func checkWheel(t *testing.T, path string) {
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	lines, record, text := map[string]bool{}, "", map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		text[f.Name] = string(content)
		if strings.HasSuffix(f.Name, ".dist-info/RECORD") {
			record = f.Name
			continue
		}
		sum := sha256.Sum256(content)
		lines[fmt.Sprintf("%s,sha256=%s,%d", f.Name, base64.RawURLEncoding.EncodeToString(sum[:]), len(content))] = true
	}
	lines[record+",,"] = true
	found := 0
	for line := range strings.Lines(text[record]) {
		if !lines[strings.TrimSpace(line)] {
			t.Errorf("RECORD has %q", line)
		}
		found++
	}
	if found != len(lines) || len(lines) < 50 {
		t.Errorf("%d lines of RECORD, %d files", found, len(lines))
	}
	meta := strings.TrimSuffix(record, "RECORD")
	parts := strings.Split(strings.TrimSuffix(filepath.Base(path), ".whl"), "-")
	if len(parts) != 5 || parts[0] != "onnxrl" || meta != parts[0]+"-"+parts[1]+".dist-info/" || !strings.Contains(text[meta+"METADATA"], "\nVersion: "+parts[1]+"\n") {
		t.Fatalf("%v, %s", parts, meta)
	}
	for _, platform := range strings.Split(parts[4], ".") {
		if !strings.Contains(text[meta+"WHEEL"], "Tag: py3-none-"+platform+"\n") {
			t.Errorf("no tag of %s in %s", platform, text[meta+"WHEEL"])
		}
	}
}

// pythonVar names a Python with numpy and onnxruntime.
const pythonVar = "ONNXRL_EXPORT_PYTHON"

// environment makes an environment of the Python that is lent, in dir/venv and without what that
// one has, and returns its interpreter.
func environment(t *testing.T, dir string) string {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), os.Getenv(pythonVar), "-m", "venv", filepath.Join(dir, "venv")).CombinedOutput(); err != nil {
		t.Fatalf("venv: %v\n%s", err, out)
	}
	return filepath.Join(dir, "venv", "bin", "python3")
}

// lendNumpy gives an environment numpy and onnxruntime of the Python that is lent.
func lendNumpy(t *testing.T, own string) {
	t.Helper()
	print := func(python, what string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), python, "-c", "import os, sysconfig; "+what).Output()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return strings.TrimSpace(string(out))
	}
	from := print(os.Getenv(pythonVar), "import numpy, onnxruntime; print(os.path.dirname(os.path.dirname(numpy.__file__)))")
	to := print(own, "print(sysconfig.get_path('purelib'))")
	if err := os.WriteFile(filepath.Join(to, "lent.pth"), []byte(from+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// usePip installs the wheel into an environment of its own, with nothing from elsewhere but numpy
// and onnxruntime, trains with the program that pip installed, and compares what Policy does with
// what Go computed.
func usePip(t *testing.T, wheel string) {
	if os.Getenv(pythonVar) == "" {
		fmt.Printf("the wheel: not installed by pip (set %s)\n", pythonVar)
		return
	}
	dir := t.TempDir()
	call := func(path string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "PIP_DISABLE_PIP_VERSION_CHECK=1", "PYTHONDONTWRITEBYTECODE=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", path, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	own := environment(t, dir)
	call(own, "-m", "pip", "install", "--no-index", "--no-deps", wheel)
	installed := filepath.Join(dir, "venv", "bin", "onnxrl")
	if version := call(installed, "version"); !strings.HasPrefix(version, "onnxrl ") || call(own, "-m", "onnxrl", "version") != version {
		t.Errorf("python -m onnxrl version is not %q", version)
	}
	if printed := strings.TrimSpace(call(own, "-c", "import onnxrl; print(onnxrl.__version__)")); !strings.HasPrefix(filepath.Base(wheel), "onnxrl-"+printed+"-") {
		t.Errorf("__version__ is %q of %s", printed, wheel)
	}
	// Without the extra there is no numpy, and the error says what to install.
	cmd := exec.CommandContext(t.Context(), own, "-c", "import onnxrl; onnxrl.Policy")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "pip install 'onnxrl[predict]'") {
		t.Errorf("without numpy: %v\n%s", err, out)
	}
	lendNumpy(t, own)
	learn(t, func(args ...string) string { return call(installed, args...) })
	// The policy of a program's own folder needs no name.
	for path, want := range sorted.All(map[string]string{"compare.py": "64 of 64 actions, 3 policies, 3 refusals\n", filepath.Join("c", "compare.py"): "64 of 64 actions, 4 policies, 2 refusals\n"}) {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(comparison), 0o644); err != nil {
			t.Fatal(err)
		}
		if out := call(own, path); !strings.HasSuffix(out, want) {
			t.Errorf("predict: %s", out)
		}
	}
}

// comparison gives Policy the observations that Go recorded, all at once and one by one.
const comparison = `
import warnings
import numpy as np, onnxrl
recorded = np.load("c/recorded.npz")
observations, actions = recorded["input.observation"], recorded["output.action"]
policies = [onnxrl.Policy.load(p) for p in ("c", "runs/c", "runs/c/best.onnx")]
refused = 0
try:
    policies.append(onnxrl.Policy())
except FileNotFoundError as e:
    refused += "expected an ONNX file" in str(e)
for policy in policies:
    got, state = policy.predict(observations, state=None, deterministic=True)
    assert state is None and got.dtype == actions.dtype and np.array_equal(got, actions), (got, actions)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    policies[0].predict(observations, deterministic=False)
    assert not told, told
    for _ in range(2):  # Nobody said whether actions are drawn.
        policies[0].predict(observations)
    assert [str(w.message)[:17] for w in told] == ["actions are drawn"], told
same = sum(policies[0].predict(o, deterministic=True)[0] == a for o, a in zip(observations, actions))
for path in ("none.onnx", "runs"):
    try:
        onnxrl.Policy.load(path)
    except FileNotFoundError as e:
        refused += path in str(e)
print(f"{same} of {len(actions)} actions, {len(policies)} policies, {refused} refusals")
`

// followPage runs every command of docs/install.md in the folder with the files. What stands in for
// Go, Docker and Kubernetes looks whether the files are there that they are given.
func followPage(t *testing.T, dist string) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	bin, home := t.TempDir(), t.TempDir()
	given := `while [ $# -gt 0 ]; do
	case "$1" in
	-f) test -f "$ROOT/$2" ;;
	./cmd/*) test -d "$ROOT/$1" ;;
	esac
	shift
done`
	pip := os.Getenv(pythonVar) != ""
	path := bin + ":" + os.Getenv("PATH")
	if pip {
		lendNumpy(t, environment(t, home))
		path = bin + ":" + filepath.Join(home, "venv", "bin") + ":" + os.Getenv("PATH")
	}
	for name, text := range sorted.All(map[string]string{
		"go": given, "docker": given, "kubectl": given, "release": `test -x "$ROOT/.ci/release" && test "$*" = "--snapshot --target linux/amd64/portable"`,
		"onnxrl": `exec "$HOME/venv/bin/onnxrl" "$@" --set train.total_env_steps=2048 --set train.validation.every_steps=2048 --set 'publish={observations: 64, allow_ties: true}'`,
	}) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nset -e\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(bin, filepath.Join(dist, ".ci")); err != nil {
		t.Fatal(err)
	}
	ran, printed := 0, ""
	for _, block := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		if block[1] != "" {
			continue // TestReleaseWorkflow checks what publishing a version asks of GitHub.
		}
		ran++
		if !pip && strings.Contains(block[2], "pip install") {
			fmt.Printf("docs/install.md: the wheel: not installed by pip (set %s)\n", pythonVar)
			continue
		}
		text := block[2]
		if !strings.HasPrefix(text, ".ci/") {
			text = strings.ReplaceAll(text, "linux-amd64", "linux-"+runtime.GOARCH)
		}
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", text)
		cmd.Dir, cmd.Env = dist, append(os.Environ(), "HOME="+home, "PATH="+path, "ROOT="+top, "PIP_NO_INDEX=1", "PIP_DISABLE_PIP_VERSION_CHECK=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("docs/install.md: %s%v\n%s", text, err, out)
		}
		printed += string(out)
	}
	wants := []string{".whl: OK", ".tar.gz: OK", "without cgo"}
	if pip {
		wants = append(wants, "Successfully installed onnxrl", "actions (3,)")
	}
	for _, want := range wants {
		if !strings.Contains(printed, want) {
			t.Errorf("nothing printed %q in\n%s", want, printed)
		}
	}
	if ran != 7 {
		t.Errorf("%d blocks of docs/install.md ran", ran)
	}
}

// A program that is linked with the C library asks for versions of its symbols, the newest of which
// is that of its wheel.
func TestGlibc(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	got, err := glibcOf(git)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(git)
	if err != nil {
		t.Fatal(err)
	}
	want := oldestGlibc
	for _, m := range regexp.MustCompile(`GLIBC_2\.(\d+)`).FindAllSubmatch(content, -1) {
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		want = max(want, n)
	}
	if got != want {
		t.Errorf("%s needs glibc 2.%d, expected 2.%d", git, got, want)
	}
	if _, err := glibcOf(filepath.Join(root, "go.mod")); err == nil {
		t.Error("a text is a program")
	}
}
