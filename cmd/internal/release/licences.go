package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// termsFile is what files with the terms of a module or a part of it are called.
var termsFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([._-].*)?$`)

// licences returns the terms of Go and of every module that is linked, below
// licences/MODULE@VERSION: those at the module's top and in the folders of its packages. A module
// without any has to say in its README what they are.
func licences(ctx context.Context, root string, t target, info *buildinfo.BuildInfo) (out []entry, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", "./cmd/onnxrl")
	cmd.Dir, cmd.Env = root, t.environ()
	list, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	// Folders that are looked at, by module, and its own.
	folders, tops := map[string]map[string]bool{}, map[string]string{}
	for line := range strings.Lines(string(list)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 3 {
			continue
		}
		if folders[f[0]] == nil {
			folders[f[0]], tops[f[0]] = map[string]bool{}, f[1]
		}
		for dir := f[2]; ; dir = filepath.Dir(dir) {
			folders[f[0]][dir] = true
			if dir == f[1] || len(dir) <= len(f[1]) {
				break
			}
		}
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("the licence of Go: %w", err)
	}
	out = append(out, entry{"licences/" + info.GoVersion + "/LICENSE", 0o644, text})
	for _, d := range info.Deps {
		top := tops[d.Path]
		if top == "" {
			return nil, fmt.Errorf("module %s is linked, but go list does not know it", d.Path)
		}
		before := len(out)
		add := func(dir, name string) error {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(top, dir)
			if err != nil {
				return err
			}
			out = append(out, entry{path.Join("licences", d.Path+"@"+d.Version, filepath.ToSlash(rel), name), 0o644, text})
			return nil
		}
		for dir := range sorted.All(folders[d.Path]) {
			files, err := os.ReadDir(dir)
			if err != nil {
				return nil, err
			}
			for _, f := range files {
				if f.Type().IsRegular() && termsFile.MatchString(f.Name()) && !strings.HasSuffix(f.Name(), ".go") {
					if err := add(dir, f.Name()); err != nil {
						return nil, err
					}
				}
			}
		}
		if len(out) > before {
			continue
		}
		readme, err := os.ReadFile(filepath.Join(top, "README.md"))
		if err != nil || !regexp.MustCompile(`(?i)licen[cs]e`).Match(readme) {
			return nil, fmt.Errorf("module %s %s has no licence in %s: it cannot be published", d.Path, d.Version, top)
		}
		if err := add(top, "README.md"); err != nil {
			return nil, err
		}
	}
	return out, nil
}
