package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/runtime/processes"
)

// fetch lets the package client of src put its archive into scratch, and returns
// the archive's path. It notes the command and the client's words in a.
func (in *installer) fetch(ctx context.Context, src source, scratch string, r *reporter, a *Attempt) (string, error) {
	argv, err := src.command()
	if err != nil {
		return "", err
	}
	out := filepath.Join(scratch, "package")
	if err := os.Mkdir(out, 0o755); err != nil {
		return "", fmt.Errorf("create scratch directory: %w", err)
	}
	a.Command = strings.Join(append([]string{filepath.Base(argv[0])}, argv[1:]...), " ")

	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = out // both clients write into the working directory
	// Temporary files land where a killed installation is cleaned up, and where
	// their growth can be seen.
	cmd.Env = append(os.Environ(), "TMPDIR="+scratch, "TMP="+scratch, "TEMP="+scratch,
		"NO_COLOR=1", "NO_UPDATE_NOTIFIER=1", "PIP_DISABLE_PIP_VERSION_CHECK=1")
	words := &processes.Tail{Limit: 2048}
	cmd.Stdout, cmd.Stderr = words, words
	// A client that ignores the polite signal, or a child of it that keeps the
	// output open, must not hold up the caller.
	cmd.Cancel = func() error { return interrupt(cmd.Process) }
	cmd.WaitDelay = 3 * time.Second

	r.report(Progress{Phase: PhaseDownloading, Client: src.client})
	stop := watchSize(scratch, func(n int64) {
		r.report(Progress{Phase: PhaseDownloading, Client: src.client, Bytes: n})
	})
	err = cmd.Run()
	stop()
	a.Output = words.String()
	if err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("run package client: %w", err)
	}
	return onlyArchive(out)
}

// command returns the absolute program and arguments that download the package
// of src into the working directory.
func (s source) command() ([]string, error) {
	args := s.arguments()
	if s.client == "npm" {
		npm, err := lookPath("npm")
		if err != nil {
			return nil, err
		}
		return append([]string{npm}, args[1:]...), nil
	}
	for _, name := range []string{"pip3", "pip"} {
		if pip, err := lookPath(name); err == nil {
			return append([]string{pip}, args[1:]...), nil
		}
	}
	for _, name := range []string{"python3", "python"} {
		// A Python often comes without its pip.
		if python, err := lookPath(name); err == nil && exec.Command(python, "-m", "pip", "--version").Run() == nil {
			return append([]string{python, "-m", "pip"}, args[1:]...), nil
		}
	}
	return nil, fmt.Errorf("%w: pip", ErrClientMissing)
}

// arguments is the command line of command with the client's own name, as a person would type it.
func (s source) arguments() []string {
	if s.client == "npm" {
		// pack never runs the package's install scripts, which would fetch
		// accelerator libraries from elsewhere.
		return []string{"npm", "pack", npmPackage + "@" + Version, "--ignore-scripts", "--loglevel=error"}
	}
	return []string{"pip", "download", "--no-deps", "--only-binary=:all:", "--no-input",
		"--progress-bar", "off", "--implementation", "cp", "--python-version", pipPython, "--abi", pipABI,
		"--platform", s.tag, "--dest", ".", pipPackage + "==" + Version}
}

func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: %s", ErrClientMissing, name)
	}
	return path, nil
}

// interrupt asks a client to end, so that it can remove its own temporary files.
func interrupt(p *os.Process) error {
	if err := p.Signal(os.Interrupt); err != nil {
		return p.Kill() // Windows cannot deliver the signal
	}
	return nil
}

// onlyArchive returns the one .tgz or .whl of a directory. Clients print the
// name, but among warnings whose form varies with their release.
func onlyArchive(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("read downloads: %w", err)
	}
	var archives []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext == ".tgz" || ext == ".whl" {
			archives = append(archives, filepath.Join(dir, e.Name()))
		}
	}
	if len(archives) != 1 {
		return "", fmt.Errorf("read downloads: %d packages delivered, expected 1", len(archives))
	}
	return archives[0], nil
}

// watchSize reports the size of a directory a few times per second until the
// returned function is called, after which it reports nothing.
func watchSize(dir string, report func(int64)) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		last := int64(0)
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if n := dirSize(dir); n != last {
					last = n
					report(n)
				}
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

func dirSize(dir string) int64 {
	var n int64
	// Files come and go while a client works; whatever cannot be read counts 0.
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if info, err := d.Info(); err == nil && d.Type().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}
