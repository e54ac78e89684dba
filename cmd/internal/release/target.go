package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// target is a platform, with cgo or portable.
type target struct {
	os, arch string
	cgo      bool
	// cc is the C compiler; empty for that of the go command.
	cc string
}

// targets are all that are published, each with cgo where this machine has a C compiler for it.
var targets = []target{
	{os: "linux", arch: "amd64"}, {os: "linux", arch: "arm64"},
	{os: "darwin", arch: "amd64"}, {os: "darwin", arch: "arm64"},
	{os: "windows", arch: "amd64"}, {os: "windows", arch: "arm64"},
}

// crossCompilers are GCC's names for compilers of another architecture's Linux.
var crossCompilers = map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}

func (t target) String() string { return strings.Join(append([]string{t.os}, t.words()[1:]...), "/") }

// words name a target in that of its files. What is portable says so, because the other is what
// most want.
func (t target) words() []string {
	w := []string{t.os, t.arch}
	if !t.cgo {
		w = append(w, "portable")
	}
	return w
}

func (t target) exe() string {
	if t.os == "windows" {
		return ".exe"
	}
	return ""
}

// withCgo is the target with cgo, and whether this machine has a compiler for it.
func (t target) withCgo(ctx context.Context) (target, bool) {
	t.cgo = true
	if t.os == runtime.GOOS && t.arch == runtime.GOARCH {
		out, err := exec.CommandContext(ctx, "go", "env", "CC").Output()
		if err != nil {
			return t, false
		}
		words := strings.Fields(string(out))
		if len(words) == 0 {
			return t, false
		}
		_, err = exec.LookPath(words[0])
		return t, err == nil
	}
	if t.os != "linux" || runtime.GOOS != "linux" {
		return t, false
	}
	t.cc = crossCompilers[t.arch]
	_, err := exec.LookPath(t.cc)
	return t, err == nil
}

// choose returns the targets of these names, all without any, and tells w for what there is no C
// compiler. A name without a variant asks for both.
func choose(ctx context.Context, names []string, w io.Writer) (chosen []target, err error) {
	asked := map[string]bool{}
	for _, n := range names {
		asked[n] = true
	}
	found := map[string]bool{}
	for _, t := range targets {
		c, ok := t.withCgo(ctx)
		platform := t.os + "/" + t.arch
		wanted := len(names) == 0 || asked[platform]
		switch {
		case ok && (wanted || asked[platform+"/cgo"]):
			chosen = append(chosen, c)
		case !ok && asked[platform+"/cgo"]:
			return nil, fmt.Errorf("target %s/cgo: this machine has no C compiler for it", platform)
		case !ok && wanted:
			fmt.Fprintf(w, "no C compiler for %s: portable only\n", platform)
		}
		if wanted || asked[t.String()] {
			chosen = append(chosen, t)
		}
		found[platform], found[platform+"/cgo"], found[t.String()] = true, true, true
	}
	for _, n := range names {
		if !found[n] {
			return nil, fmt.Errorf("target %q: expected one of %v, with /cgo or /portable behind it for that alone", n, targets)
		}
	}
	return chosen, nil
}

// environ is that of the go command for the target.
func (t target) environ() []string {
	cgo := "0"
	if t.cgo {
		cgo = "1"
	}
	env := append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED="+cgo)
	if t.cc != "" {
		env = append(env, "CC="+t.cc)
	}
	return env
}

// build writes the program. A release does not begin without what version control says; of a
// snapshot that is welcome.
func (t target) build(ctx context.Context, root, program string, snapshot bool) error {
	vcs := "-buildvcs=true"
	if snapshot {
		vcs = "-buildvcs=auto"
	}
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", vcs, "-ldflags=-s -w", "-o", program, "./cmd/onnxrl")
	cmd.Dir, cmd.Env = root, t.environ()
	return runs(cmd)
}

// runs runs a command whose error has what it printed. Stopped, it is asked to end first, so that
// what it has started ends too.
func runs(cmd *exec.Cmd) error {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
