//go:build cgo

package ort

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/ort/internal/capi"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
)

// The library and its environment exist once per process. They are never
// unloaded: ONNX Runtime's own threads and static objects do not survive that.
var process struct {
	mu     sync.Mutex
	loaded *Runtime
	memory capi.Handle // description of host memory
}

// live counts what capi does not count itself.
var live struct{ sessions, runOptions atomic.Int64 }

// bound holds the open bindings. C keeps the addresses of their buffers, so Go
// must keep the buffers even if the program drops a binding without closing it.
var bound struct {
	mu   sync.Mutex
	open map[*binding]struct{}
}

// Live returns the number of native objects that this package holds. It is zero
// once every session and binding is closed.
func Live() Objects {
	bound.mu.Lock()
	bindings := len(bound.open)
	bound.mu.Unlock()
	return Objects{
		Sessions:   int(live.sessions.Load()),
		Bindings:   bindings,
		Values:     capi.LiveValues(),
		RunOptions: int(live.runOptions.Load()),
	}
}

// New returns the engine, after finding (with o.Library.AllowInstall, installing) and
// loading ONNX Runtime if this is the first call of the process. ctx ends an
// installation. Later its end lets a Compile return, with ctx's error, that ONNX Runtime
// has not finished seconds after. The thread in it stays behind, so ctx should be that of
// the program. Safe for concurrent use.
func New(ctx context.Context, o Options) (engine.Compiler, error) {
	memory, err := load(ctx, o.Library)
	if err != nil {
		return nil, fmt.Errorf("start ONNX Runtime: %w", err)
	}
	return &compiler{memory: memory, flush: !o.KeepDenormals, until: ctx}, nil
}

// Info describes the loaded library. Before the first successful [New] it is an
// error.
func Info() (Runtime, error) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.loaded == nil {
		return Runtime{}, errors.New("describe ONNX Runtime: it is not loaded")
	}
	return *process.loaded, nil
}

func load(ctx context.Context, o library.Options) (capi.Handle, error) {
	if memory, err := loadedAs(o.Path); memory != nil || err != nil {
		return memory, err
	}
	// Not under the lock: installing may take minutes, and is safe by itself.
	found, err := library.Locate(ctx, o)
	if errors.Is(err, library.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err != nil {
		return nil, err
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.loaded != nil {
		return process.memory, refuseOther(process.loaded.Library, found.Path)
	}
	if err := initialise(found.Path); err != nil {
		if found.Source != library.SourceFlag && found.Source != library.SourceEnvironment {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return nil, err
	}
	providers, err := capi.Providers()
	if err != nil {
		return nil, fmt.Errorf("list execution providers: %w", err)
	}
	memory, err := onnxruntime.GetMemoryInfo()
	if err != nil {
		return nil, err
	}
	process.memory = unsafe.Pointer(memory)
	process.loaded = &Runtime{
		Library: found, Version: onnxruntime.GetVersion(), APIVersion: capi.APIVersion,
		Providers: providers, Build: capi.BuildInfo(),
	}
	return process.memory, nil
}

// loadedAs returns what an earlier call loaded, or nil. A path that names another
// library is an error.
func loadedAs(path string) (capi.Handle, error) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.loaded == nil || path == "" {
		return process.memory, nil
	}
	found, err := library.Locate(context.Background(), library.Options{Path: path})
	if err != nil {
		return nil, err
	}
	return process.memory, refuseOther(process.loaded.Library, found.Path)
}

func refuseOther(loaded library.Found, path string) error {
	if path != loaded.Path {
		return fmt.Errorf("library %s is loaded already, %s cannot be loaded beside it", loaded.Path, path)
	}
	return nil
}

func initialise(path string) error {
	if err := checkLayout(); err != nil {
		return err
	}
	if !onnxruntime.IsInitialized() {
		onnxruntime.SetSharedLibraryPath(path)
		// Errors are returned; a copy of them on the standard error would only
		// frighten people.
		if err := onnxruntime.InitializeEnvironment(onnxruntime.WithLogLevelFatal()); err != nil {
			return fmt.Errorf("load %s: %w", path, err)
		}
	}
	return capi.Init(path)
}
