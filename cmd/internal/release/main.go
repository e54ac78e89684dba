package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run builds what args say and reports progress to w. The folder appears when it is complete.
func run(ctx context.Context, args []string, w io.Writer) (err error) {
	var names []string
	fl := flag.NewFlagSet("release", flag.ContinueOnError)
	fl.SetOutput(w)
	root := fl.String("source", ".", "the checkout that is built")
	out := fl.String("out", "dist", "the new folder for the files")
	snapshot := fl.Bool("snapshot", false, "build whatever lies there, tagged or not, changed or not: to try it out")
	fl.Func("target", "build this one only, such as linux/amd64 or linux/amd64/portable; may be repeated", func(s string) error {
		names = append(names, s)
		return nil
	})
	if err := fl.Parse(args); err != nil {
		return err
	}
	if fl.NArg() > 0 {
		return fmt.Errorf("arguments %q: expected flags only", fl.Args())
	}
	chosen, err := choose(ctx, names, w)
	if err != nil {
		return err
	}
	if _, err := os.Stat(*out); err == nil {
		return fmt.Errorf("%s: expected a new folder: %w", *out, fs.ErrExist)
	}
	v, err := versionOf(ctx, *root, *snapshot)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(*out), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(*out), "."+filepath.Base(*out)+".tmp-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	files := filepath.Join(temp, "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for i, t := range chosen {
		fmt.Fprintf(w, "%d of %d: %s %s\n", i+1, len(chosen), v.name, t)
		if err := publish(ctx, *root, temp, files, t, v); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	entries, err := os.ReadDir(files)
	if err != nil {
		return err
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(files, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	if err := os.WriteFile(filepath.Join(files, "SHA256SUMS"), []byte(sums.String()), 0o644); err != nil {
		return err
	}
	if err := os.Rename(files, *out); err != nil {
		return err
	}
	_, err = fmt.Fprint(w, sums.String())
	return err
}

// publish builds a target, and writes its archive and its wheel to files.
func publish(ctx context.Context, root, temp, files string, t target, v version) error {
	program := filepath.Join(temp, "onnxrl"+t.exe())
	if err := t.build(ctx, root, program, v.snapshot); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	if !v.snapshot && info.Main.Version != v.name {
		return fmt.Errorf("the program says that it is %q, expected %s: build in a clone, not in a further work tree, whose version Go does not see", info.Main.Version, v.name)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	texts, err := licences(ctx, root, t, info)
	if err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "THIRD_PARTY_NOTICES"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		texts = append(texts, entry{name, 0o644, text})
	}
	list, err := sbom(info, t, v, content)
	if err != nil {
		return err
	}
	texts = append(texts, entry{"sbom.spdx.json", 0o644, list})
	name := strings.Join(append([]string{"onnxrl", v.name}, t.words()...), "-")
	archive := []entry{{name + "/onnxrl" + t.exe(), 0o755, content}}
	for _, e := range texts {
		archive = append(archive, entry{name + "/" + e.name, e.mode, e.content})
	}
	slices.SortFunc(archive, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	packed, suffix := tarball, ".tar.gz"
	if t.os == "windows" {
		packed, suffix = zipped, ".zip"
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := writeArchive(filepath.Join(files, name+suffix), packed, archive, v.time); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return writeWheel(root, files, program, content, texts, info, t, v)
}
