package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/filehash"
)

// How a person names a library and forbids installing one.
const (
	// Flag is the command-line flag whose value becomes [Options.Path].
	Flag = "--ort-library"
	// EnvLibrary names the library, or a directory that holds it.
	EnvLibrary = "ONNXRL_ORT_LIBRARY"
	// EnvInstall set to off, 0, no or false forbids installing.
	EnvInstall = "ONNXRL_ORT_INSTALL"
)

// Source says where a library came from.
type Source string

// The places of [Locate], in its order.
const (
	SourceFlag        Source = "flag"
	SourceEnvironment Source = "environment"
	SourceCache       Source = "cache"
	SourceSystem      Source = "system"
	SourceInstalled   Source = "installed" // by this very call
)

// by is how a person named a library.
func (s Source) by() string {
	if s == SourceEnvironment {
		return EnvLibrary
	}
	return Flag
}

// Options of [Locate]. The zero value looks everywhere and installs nothing.
type Options struct {
	// Path names the library, or a directory that holds it; empty if the person
	// did not say. It excludes every other place.
	Path string
	// AllowInstall permits installing into the user's cache. [EnvInstall] still
	// has the last word.
	AllowInstall bool
	// Progress, if set, receives the phases of an installation, from one
	// goroutine at a time and never after Locate has returned.
	Progress func(Progress)
	// Logger receives refused candidates (debug) and installations (info); nil
	// discards.
	Logger *slog.Logger
}

// Found is a usable library.
type Found struct {
	Path    string // absolute
	Version string // release as far as the file tells; exact for cached files
	Source  Source
	// SHA256 is set where it was verified: for cached and installed files.
	SHA256 string
}

// Locate returns the library to load, installing it first if it is nowhere and
// o permits. Safe for concurrent use by goroutines and by processes.
//
// A missing library is a [*NotFoundError]. An explicitly named one that is
// unusable is an error of its own, matching [ErrIncompatible] or
// [fs.ErrNotExist]. A cancelled ctx ends an installation and leaves nothing.
func Locate(ctx context.Context, o Options) (Found, error) {
	return newLocator().locate(ctx, o)
}

// locator holds what Locate takes from its surroundings, so that tests can
// replace it.
type locator struct {
	platform platform
	catalog  catalogue
	getenv   func(string) string
	// cacheRoot is the user's cache directory; empty if there is none, which
	// cacheErr then explains.
	cacheRoot string
	cacheErr  error
	// systemDirs are searched in order.
	systemDirs []string
}

func newLocator() *locator {
	l := &locator{platform: hostPlatform(), catalog: published, getenv: os.Getenv}
	l.cacheRoot, l.cacheErr = os.UserCacheDir()
	l.systemDirs = systemDirs(l.platform, os.Getenv)
	return l
}

// cacheDir is the directory of this platform's library of this release.
func (l *locator) cacheDir() string {
	return filepath.Join(l.cacheRoot, "onnxrl", "onnxruntime", Version, l.platform.String())
}

func (l *locator) locate(ctx context.Context, o Options) (Found, error) {
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if c, named := l.named(o.Path); named {
		if c.Err != nil {
			return Found{}, fmt.Errorf("locate ONNX Runtime: %s, named by %s: %w", c.Path, c.Source.by(), c.Err)
		}
		return c.found(), nil
	}
	candidates := l.unnamed()
	for _, c := range candidates {
		if c.Err == nil {
			return c.found(), nil
		}
		log.Debug("ONNX Runtime library refused", "source", c.Source, "path", c.Path, "reason", c.Err)
	}
	missing := &NotFoundError{Candidates: candidates}
	if missing.Cause = l.installable(o.AllowInstall); missing.Cause != nil {
		return Found{}, missing
	}
	in := &installer{locator: l, dir: l.cacheDir(), report: o.Progress, log: log}
	found, attempts, err := in.install(ctx)
	if err == nil {
		return found, nil
	}
	if ctx.Err() != nil {
		return Found{}, fmt.Errorf("install ONNX Runtime %s: %w", Version, context.Cause(ctx))
	}
	missing.Attempts = attempts
	if len(attempts) == 0 {
		missing.Cause = err
	}
	return Found{}, missing
}

// installable returns nil if an installation may be attempted.
func (l *locator) installable(allowed bool) error {
	switch {
	case !allowed:
		return ErrInstallDisabled
	case off(l.getenv(EnvInstall)):
		return fmt.Errorf("%w by %s", ErrInstallDisabled, EnvInstall)
	case len(l.catalog[l.platform]) == 0:
		return fmt.Errorf("%w: %s", ErrUnsupportedPlatform, l.platform)
	case l.cacheErr != nil:
		return fmt.Errorf("no cache directory: %w", l.cacheErr)
	}
	return nil
}

func off(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "off", "0", "no", "false":
		return true
	}
	return false
}

// named returns the candidate that a person named, if any.
func (l *locator) named(path string) (c Candidate, ok bool) {
	if path != "" {
		return l.check(SourceFlag, path), true
	}
	if path = l.getenv(EnvLibrary); path != "" {
		return l.check(SourceEnvironment, path), true
	}
	return Candidate{}, false
}

// unnamed returns the candidates of the cache and of the system, in the order
// of preference.
func (l *locator) unnamed() []Candidate {
	var candidates []Candidate
	if l.cacheErr == nil {
		candidates = append(candidates, l.checkCache())
	} else {
		candidates = append(candidates, Candidate{Source: SourceCache, Err: l.cacheErr})
	}
	for _, dir := range l.systemDirs {
		for _, name := range l.platform.systemNames() {
			path := filepath.Join(dir, name)
			// Absent files would bury the few refusals that a person can act on.
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				continue
			}
			candidates = append(candidates, l.check(SourceSystem, path))
		}
	}
	return candidates
}

// check examines a file that is in nobody's catalogue. A directory stands for
// the library in it.
func (l *locator) check(from Source, path string) Candidate {
	c := Candidate{Source: from, Path: path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		for _, name := range l.platform.systemNames() {
			if _, err := os.Stat(filepath.Join(path, name)); err == nil {
				c.Path = filepath.Join(path, name)
				break
			}
		}
	}
	if abs, err := filepath.Abs(c.Path); err == nil {
		c.Path = abs
	}
	c.Version, c.Err = inspect(c.Path, l.platform)
	return c
}

// checkCache examines the installed file. Its checksum is computed every time:
// that costs some tens of milliseconds once per process, and finds what a full
// disk or a failing one did to the file.
func (l *locator) checkCache() Candidate {
	c := Candidate{Source: SourceCache, Path: filepath.Join(l.cacheDir(), l.platform.libraryName())}
	info, err := os.Stat(c.Path)
	if errors.Is(err, fs.ErrNotExist) {
		c.Err = errors.New("not installed")
		return c
	}
	if err != nil {
		c.Err = err
		return c
	}
	if !l.catalog.hasSize(l.platform, info.Size()) {
		c.Err = fmt.Errorf("%w: %d bytes", ErrChecksum, info.Size())
		return c
	}
	if c.SHA256, c.Err = filehash.SHA256(c.Path); c.Err != nil {
		return c
	}
	if l.catalog.bySum(l.platform, c.SHA256) == nil {
		c.Err = fmt.Errorf("%w: SHA-256 %s", ErrChecksum, c.SHA256)
		return c
	}
	c.Version = Version
	return c
}

func (c Candidate) found() Found {
	return Found{Path: c.Path, Version: c.Version, Source: c.Source, SHA256: c.SHA256}
}
