package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"embed"
	"encoding/base64"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed python/*.py
var python embed.FS

// oldestGlibc is the 2.N below which no wheel asks for less.
const oldestGlibc = 17

// platformTags are the platforms of a wheel by PEP 425 and its successors. Go 1.26 needs macOS 12.
// A program without cgo needs no C library at all.
func platformTags(t target, program string) ([]string, error) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[t.arch]
	switch {
	case t.os == "darwin" && t.arch == "arm64":
		return []string{"macosx_12_0_arm64"}, nil
	case t.os == "darwin":
		return []string{"macosx_12_0_x86_64"}, nil
	case t.os == "windows":
		return []string{"win_" + t.arch}, nil
	case !t.cgo:
		return []string{fmt.Sprintf("manylinux_2_%d_%s", oldestGlibc, arch), "musllinux_1_1_" + arch}, nil
	}
	glibc, err := glibcOf(program)
	return []string{fmt.Sprintf("manylinux_2_%d_%s", glibc, arch)}, err
}

// glibcOf is the N of the newest version GLIBC_2.N of a symbol that a program needs.
func glibcOf(program string) (int, error) {
	f, err := elf.Open(program)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", program, err)
	}
	newest := oldestGlibc
	for _, s := range symbols {
		if text, ok := strings.CutPrefix(s.Version, "GLIBC_2."); ok {
			text, _, _ = strings.Cut(text, ".")
			n, err := strconv.Atoi(text)
			if err != nil {
				return 0, fmt.Errorf("%s: symbol %s of version %s: %w", program, s.Name, s.Version, err)
			}
			newest = max(newest, n)
		}
	}
	return newest, nil
}

// writeWheel writes the wheel of a target: the program, which pip puts beside its own, and a module
// with the class that export --format python writes, for policies of any folder. Where a platform
// has a wheel with cgo and a portable one pip takes the first that fits, which is the one with cgo.
func writeWheel(root, files, program string, content []byte, texts []entry, info *buildinfo.BuildInfo, t target, v version) error {
	platforms, err := platformTags(t, program)
	if err != nil {
		return err
	}
	base := "onnxrl-" + v.pep
	meta := base + ".dist-info/"
	var tags strings.Builder
	for _, p := range platforms {
		fmt.Fprintf(&tags, "Tag: py3-none-%s\n", p)
	}
	agent, err := os.ReadFile(filepath.Join(root, "export", "format", "python", "agent.py"))
	if err != nil {
		return err
	}
	entries := []entry{{"onnxrl/agent.py", 0o644, agent}}
	scripts, err := python.ReadDir("python")
	if err != nil {
		return err
	}
	for _, s := range scripts {
		text, err := python.ReadFile(path.Join("python", s.Name()))
		if err != nil {
			return err
		}
		text = bytes.Replace(text, []byte(`"VERSION"`), []byte(strconv.Quote(v.pep)), 1)
		entries = append(entries, entry{"onnxrl/" + s.Name(), 0o644, text})
	}
	entries = append(entries, entry{base + ".data/scripts/onnxrl" + t.exe(), 0o755, content})
	for _, e := range texts {
		entries = append(entries, entry{meta + "licenses/" + e.name, e.mode, e.content})
	}
	entries = append(entries,
		entry{meta + "METADATA", 0o644, []byte(strings.NewReplacer("VERSION", v.pep, "MODULE", info.Main.Path).Replace(metadata))},
		entry{meta + "WHEEL", 0o644, []byte("Wheel-Version: 1.0\nGenerator: onnxrl-release\nRoot-Is-Purelib: false\n" + tags.String())})
	var record bytes.Buffer
	for _, e := range entries {
		sum := sha256.Sum256(e.content)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", e.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(e.content))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", meta)
	entries = append(entries, entry{meta + "RECORD", 0o644, record.Bytes()})
	return writeArchive(filepath.Join(files, fmt.Sprintf("%s-py3-none-%s.whl", base, strings.Join(platforms, "."))), zipped, entries, v.time)
}

const metadata = `Metadata-Version: 2.1
Name: onnxrl
Version: VERSION
Summary: Train, evolve and serve reinforcement-learning agents whose networks are ONNX graphs
License: Apache-2.0
Project-URL: Source, https://MODULE
Requires-Python: >=3.9
Provides-Extra: predict
Requires-Dist: numpy>=1.23; extra == "predict"
Requires-Dist: onnxruntime>=1.17; extra == "predict"
Description-Content-Type: text/markdown

The program onnxrl, written in Go, which trains, evolves and serves reinforcement-learning agents whose networks are ONNX graphs:

    onnxrl train cartpole_ppo --out runs/cartpole

and, with the extra predict, what acts with its policies as a model of Stable-Baselines3 does:

    import onnxrl
    policy = onnxrl.Policy.load("runs/cartpole")
    action, state = policy.predict(observation, deterministic=True)
`
