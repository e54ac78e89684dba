package library

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// installer installs one release for one platform into one directory.
type installer struct {
	*locator
	dir    string
	report func(Progress)
	log    *slog.Logger
}

// scratchPrefix begins the names of directories that only an installation in
// progress uses.
const scratchPrefix = ".install-"

// install returns the installed library, or what each package client said.
func (in *installer) install(ctx context.Context) (Found, []Attempt, error) {
	r := &reporter{call: in.report}
	if err := os.MkdirAll(in.dir, 0o755); err != nil {
		return Found{}, nil, fmt.Errorf("create cache: %w", err)
	}
	lock, err := lockFile(ctx, filepath.Join(in.dir, "lock"), func() {
		r.report(Progress{Phase: PhaseWaiting})
	})
	if err != nil {
		return Found{}, nil, err
	}
	defer lock.unlock()
	// Whoever held the lock before has probably installed it.
	if c := in.checkCache(); c.Err == nil {
		return c.found(), nil, nil
	}
	in.removeLeftovers()

	var attempts []Attempt
	for _, src := range in.catalog[in.platform] {
		a := in.try(ctx, src, r)
		if a.Err == nil {
			path := filepath.Join(in.dir, in.platform.libraryName())
			in.log.Info("installed ONNX Runtime", "version", Version, "client", src.client, "path", path)
			r.report(Progress{Phase: PhaseDone, Client: src.client, Bytes: src.size, Total: src.size})
			return Found{Path: path, Version: Version, Source: SourceInstalled, SHA256: src.sha256}, nil, nil
		}
		if ctx.Err() != nil {
			return Found{}, nil, context.Cause(ctx)
		}
		in.log.Warn("installing ONNX Runtime failed", "client", src.client, "error", a.Err, "output", a.Output)
		attempts = append(attempts, a)
	}
	return Found{}, attempts, errors.New("every package client failed")
}

// try fetches one package and publishes its library.
func (in *installer) try(ctx context.Context, src source, r *reporter) Attempt {
	a := Attempt{Client: src.client}
	scratch, err := os.MkdirTemp(in.dir, scratchPrefix)
	if err != nil {
		a.Err = fmt.Errorf("create scratch directory: %w", err)
		return a
	}
	defer os.RemoveAll(scratch)

	archive, err := in.fetch(ctx, src, scratch, r, &a)
	if err != nil {
		a.Err = err
		return a
	}
	a.Err = in.publish(ctx, src, archive, scratch, r)
	return a
}

// publish unpacks the verified library and renames it to its final name.
func (in *installer) publish(ctx context.Context, src source, archive, scratch string, r *reporter) error {
	file := filepath.Join(scratch, in.platform.libraryName())
	err := extract(ctx, archive, src, file, func(n int64) {
		r.report(Progress{Phase: PhaseExtracting, Client: src.client, Bytes: n, Total: src.size})
	})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := os.Rename(file, filepath.Join(in.dir, in.platform.libraryName())); err != nil {
		return fmt.Errorf("publish library: %w", err)
	}
	return syncDir(in.dir)
}

// removeLeftovers deletes what killed installations left. It runs under the
// lock, so every scratch directory is nobody's.
func (in *installer) removeLeftovers() {
	entries, err := os.ReadDir(in.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), scratchPrefix) {
			if err := os.RemoveAll(filepath.Join(in.dir, e.Name())); err != nil {
				in.log.Warn("removing an abandoned installation failed", "error", err)
			}
		}
	}
}
