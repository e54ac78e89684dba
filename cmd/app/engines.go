package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// engineNames lists the engines that --engine takes beside auto.
func engineNames() []string { return []string{ort.Name, "portable"} }

// compiler returns the engine that the global flag selects.
func (a *app) compiler(ctx context.Context) (engine.Compiler, error) {
	return a.namedEngine(ctx, a.engine)
}

// namedEngine opens an engine by name once. For auto, ONNX Runtime is used, installed on first use;
// where it cannot be had the pure-Go engine takes over, with one warning.
func (a *app) namedEngine(ctx context.Context, name string) (engine.Compiler, error) {
	if c := a.opened[name]; c != nil {
		return c, nil
	}
	c, err := a.openEngine(ctx, name)
	if err != nil {
		return nil, err
	}
	a.opened[name] = c
	return c, nil
}

func (a *app) openEngine(ctx context.Context, name string) (engine.Compiler, error) {
	switch name {
	case "portable":
		return portable.New(), nil
	case ort.Name, "auto":
		c, err := ort.New(ctx, ort.Options{Library: library.Options{
			Path: a.library, AllowInstall: !a.offline, Progress: a.installProgress(), Logger: a.log,
		}})
		if err == nil || name == ort.Name || !errors.Is(err, ort.ErrUnavailable) {
			return c, err
		}
		a.say("warning: ONNX Runtime is not available, so the slower pure-Go engine is used; 'onnxrl doctor' says what to do (%v)", firstLine(err))
		return a.namedEngine(ctx, "portable")
	}
	return nil, fmt.Errorf("--engine %q: expected auto, %s", name, strings.Join(engineNames(), " or "))
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// installProgress shows an installation of ONNX Runtime as plain lines, one per phase.
func (a *app) installProgress() func(library.Progress) {
	if a.quiet {
		return nil
	}
	var last library.Phase
	return func(p library.Progress) {
		if p.Phase == last {
			return
		}
		last = p.Phase
		with := ""
		if p.Client != "" {
			with = " (" + p.Client + ")"
		}
		a.say("ONNX Runtime %s: %s%s", library.Version, p.Phase, with)
	}
}

// close frees the engines that were opened.
func (a *app) close() {
	if a.trains != nil {
		_ = a.trains.Close() // It has nothing left to say.
	}
	var done []engine.Compiler
	for _, c := range a.opened {
		if !slices.Contains(done, c) {
			c.Close()
			done = append(done, c)
		}
	}
}
