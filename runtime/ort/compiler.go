//go:build cgo

package ort

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/ort/internal/capi"
)

var _ engine.Compiler = (*compiler)(nil)

type compiler struct {
	memory capi.Handle
	flush  bool
	until  context.Context // of New

	mu       sync.Mutex
	closed   bool
	sessions int
}

func (c *compiler) Name() string { return Name }

// Close refuses while sessions are open.
func (c *compiler) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("close ort engine: %w", engine.ErrClosed)
	}
	if c.sessions > 0 {
		return fmt.Errorf("close ort engine: %d sessions are open", c.sessions)
	}
	c.closed = true
	return nil
}

// open and done count sessions.
func (c *compiler) open() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return engine.ErrClosed
	}
	c.sessions++
	return nil
}

func (c *compiler) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions--
}

func (c *compiler) Compile(m *onnx.Model, o engine.Options) (engine.Session, error) {
	if err := c.open(); err != nil {
		return nil, fmt.Errorf("compile %s: %w", graphName(m), err)
	}
	s, err := c.compile(m, o)
	if err != nil {
		c.done()
		return nil, fmt.Errorf("compile %s: %w", graphName(m), err)
	}
	return s, nil
}

func graphName(m *onnx.Model) string {
	if name := m.GetGraph().GetName(); name != "" {
		return fmt.Sprintf("graph %q", name)
	}
	return "graph"
}

func (c *compiler) compile(m *onnx.Model, o engine.Options) (*session, error) {
	if m.GetGraph() == nil {
		return nil, &ModelError{Message: "the model has no graph"}
	}
	declared := m
	m = makeOutputs(declared, false)
	env, err := accept(m)
	if err != nil && !unguarded {
		return nil, err
	}
	if env != nil {
		m = env.Consistent(m)
	}
	if o.Optimized != "" && !slices.Equal(valueNames(m.Graph.Output), valueNames(declared.Graph.Output)) {
		// The file has the names of the model, so another session writes it.
		if err := c.writeOptimized(makeOutputs(declared, true), o); err != nil {
			return nil, err
		}
		o.Optimized = ""
	}
	native, enc, err := c.create(m, env, o)
	if err != nil {
		return nil, err
	}
	live.sessions.Add(1)
	s := &session{compiler: c, native: native, handle: sessionHandle(native), memory: c.memory, flush: c.flush, found: enc.found}
	if err := s.describe(m, declared.Graph, env); err != nil {
		s.destroy()
		return nil, err
	}
	return s, nil
}

// writeOptimized writes a model as it is optimised.
func (c *compiler) writeOptimized(m *onnx.Model, o engine.Options) error {
	env, err := accept(m)
	if err != nil {
		return err
	}
	native, _, err := c.create(env.Consistent(m), env, o)
	if err != nil {
		return err
	}
	return native.Destroy()
}

// create makes a native session. Where the compiler's context ends meanwhile and the session is not
// there soon after, it is given up. ONNX Runtime folds whatever a model makes of constants, which
// may take hours, and nothing can tell it to stop. What was given up is freed when it comes to its
// end.
func (c *compiler) create(m *onnx.Model, env *shape.Env, o engine.Options) (*onnxruntime.DynamicAdvancedSession, *encoded, error) {
	o.Optimize = levelFor(m, o.Optimize)
	options, err := sessionOptions(o, c.flush)
	if err != nil {
		return nil, nil, err
	}
	enc, err := encode(m, env, c.memory, o)
	if err != nil {
		options.Destroy()
		return nil, nil, err
	}
	release := func() {
		enc.release()
		options.Destroy()
	}
	if err := enc.attach(options); err != nil {
		release()
		return nil, nil, err
	}
	type outcome struct {
		native *onnxruntime.DynamicAdvancedSession
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		native, err := createSession(enc.bytes, options, o.Threads > 1 && c.flush)
		release()
		done <- outcome{native, err}
	}()
	var got outcome
	select {
	case got = <-done:
	case <-c.until.Done():
		select {
		case got = <-done:
		case <-time.After(abandonAfter):
			go func() {
				if late := <-done; late.err == nil {
					late.native.Destroy()
				}
			}()
			return nil, nil, fmt.Errorf("ONNX Runtime has not finished making the session and is left behind: %w", c.until.Err())
		}
	}
	if got.err != nil {
		// The wrapper's prefix says nothing that the caller does not know.
		if inner := errors.Unwrap(got.err); inner != nil {
			got.err = inner
		}
		return nil, nil, compileError(m, got.err.Error())
	}
	return got.native, enc, nil
}

// abandonAfter is how much longer a session may take to be made when the compiler's context has
// ended: most are there at once, and what is being saved may need one.
const abandonAfter = 2 * time.Second

// createSession makes a session. A session whose worker threads flush denormals
// also changes the creating thread for good, which Go code must not see.
func createSession(model []byte, options *onnxruntime.SessionOptions, preserve bool) (s *onnxruntime.DynamicAdvancedSession, err error) {
	create := func() {
		s, err = onnxruntime.NewDynamicAdvancedSessionWithONNXData(model, nil, nil, options)
	}
	if preserve {
		capi.PreserveFloatMode(create)
	} else {
		create()
	}
	return s, err
}

func sessionOptions(o engine.Options, flush bool) (*onnxruntime.SessionOptions, error) {
	so, err := onnxruntime.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	if err := configure(so, o, flush); err != nil {
		so.Destroy()
		return nil, fmt.Errorf("session options: %w", err)
	}
	return so, nil
}

func configure(so *onnxruntime.SessionOptions, o engine.Options, flush bool) error {
	level, ok := map[engine.OptLevel]onnxruntime.GraphOptimizationLevel{
		engine.OptAll:      onnxruntime.GraphOptimizationLevelEnableAll,
		engine.OptNone:     onnxruntime.GraphOptimizationLevelDisableAll,
		engine.OptBasic:    onnxruntime.GraphOptimizationLevelEnableBasic,
		engine.OptExtended: onnxruntime.GraphOptimizationLevelEnableExtended,
	}[o.Optimize]
	if !ok {
		return fmt.Errorf("optimisation level %d is not known", o.Optimize)
	}
	if o.Threads < 0 {
		return fmt.Errorf("%d threads", o.Threads)
	}
	spin := "0"
	if o.Spin {
		spin = "1"
	}
	steps := []func() error{
		func() error { return so.SetIntraOpNumThreads(max(o.Threads, 1)) },
		// Nodes run one after the other; this pool would only sit beside.
		func() error { return so.SetInterOpNumThreads(1) },
		func() error { return so.SetExecutionMode(onnxruntime.ExecutionModeSequential) },
		func() error { return so.SetGraphOptimizationLevel(level) },
		func() error { return so.SetMemPattern(!o.NoMemoryPattern) },
		func() error { return so.SetLogSeverityLevel(onnxruntime.LoggingLevelFatal) },
		func() error { return so.AddSessionConfigEntry("session.intra_op.allow_spinning", spin) },
		func() error { return so.AddSessionConfigEntry("session.inter_op.allow_spinning", "0") },
		func() error { return capi.SetDeterministic(optionsHandle(so)) },
	}
	if flush && o.Threads > 1 {
		// The mode set around a run reaches the calling thread only.
		steps = append(steps, func() error { return so.AddSessionConfigEntry("session.set_denormal_as_zero", "1") })
	}
	if o.BaseDir != "" {
		steps = append(steps, func() error {
			return so.AddSessionConfigEntry("session.model_external_initializers_file_folder_path", o.BaseDir)
		})
	}
	if o.Profile != "" {
		steps = append(steps, func() error { return so.EnableProfiling(o.Profile) })
	}
	if o.Optimized != "" {
		steps = append(steps, func() error { return so.SetOptimizedModelFilePath(o.Optimized) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
