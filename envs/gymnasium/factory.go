package gymnasium

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
)

// Kind makes environments of Python from a configuration.
var Kind = envs.Kind{Name: "gymnasium", Summary: "any environment of Python's Gymnasium, by its id", Needs: "Python with gymnasium", OfMachine: true, Defaults: func() any { return Defaults() }, Open: func(ctx context.Context, params configs.Section) (envs.Factory, error) {
	c := Defaults()
	if err := params.Decode(&c); err != nil {
		return nil, err
	}
	f, err := Open(ctx, c)
	if err == nil {
		return f, nil
	}
	return nil, Placed(params, c.Python, err)
}}

// Placed returns an error of opening, which is not nil, at the key that it is about. The
// interpreter is the one that the document names: what only this machine lacks, where it names none,
// is an *envs.LackingError.
func Placed(params configs.Section, python string, err error) error {
	key, lacks := "", false
	var refused *PythonError
	switch {
	case errors.As(err, &refused) && refused.Kind == "id":
		key = "id"
	case errors.As(err, &refused) && refused.Kind == "lacks":
		lacks = true
	case errors.As(err, &refused) && refused.Kind == "package" || errors.Is(err, errNoPython):
		key, lacks = "python", python == ""
	}
	if !slices.Contains(params.Keys(), key) {
		key = ""
	}
	placed := params.Errorf(key, "%v", err)
	if lacks {
		return &envs.LackingError{What: err, Err: placed}
	}
	return placed
}

// Factory makes environments of one configuration. It is safe for concurrent use.
type Factory struct {
	c      Config
	python string
	d      *description
	spec   envs.Spec

	mu sync.Mutex
	// idle are processes that no vector uses: the one that described the environment, and those
	// that vectors have left. Evaluations, which make a vector each, need not start others.
	idle   []*process
	closed bool
	// proof says why environments cannot be saved, once that is known.
	proven bool
	proof  error
}

var (
	_ envs.Factory = (*Factory)(nil)
	_ vector.Maker = (*Factory)(nil)
)

// OpenAdapted is Open for what an adapter makes look like environments.
func OpenAdapted(ctx context.Context, c Config, a Adapter) (*Factory, error) {
	c.adapter = a
	return Open(ctx, c)
}

// Open starts a first process, which makes one environment and describes it. The caller closes the
// factory.
func Open(ctx context.Context, c Config) (*Factory, error) {
	if err := configs.Validate(c); err != nil {
		return nil, fmt.Errorf("gymnasium: %w", err)
	}
	if err := checkPermitted(c); err != nil {
		return nil, fmt.Errorf("gymnasium: %w", err)
	}
	python, err := findPython(c.Python)
	if err != nil {
		return nil, fmt.Errorf("gymnasium: %w", err)
	}
	f := &Factory{c: c, python: python}
	p, d, err := open(ctx, python, c, nil)
	if err != nil {
		return nil, fmt.Errorf("gymnasium: open %s: %w", c.ID, err)
	}
	f.idle, f.d = append(f.idle, p), d
	if f.spec, err = f.d.spec(c); err != nil {
		return nil, errors.Join(fmt.Errorf("gymnasium: open %s: %w", c.ID, err), f.Close())
	}
	return f, nil
}

// Config implements envs.Factory.
func (f *Factory) Config() any { return f.c }

// Spec describes one environment.
func (f *Factory) Spec() envs.Spec { return f.spec }

// New implements envs.Factory: a process with one environment. It is started by the first Reset.
func (f *Factory) New(envs.Split, int) (envs.Env, error) {
	v, err := newVector(f, 1, vector.Options{Workers: 1}, false)
	if err != nil {
		return nil, err
	}
	return newEnv(v), nil
}

// NewVector implements vector.Maker. The processes are started by the first Reset, all at once.
func (f *Factory) NewVector(_ envs.Split, n int, o vector.Options) (vector.Env, error) {
	return newVector(f, n, o, true)
}

// Close implements envs.Factory.
func (f *Factory) Close() error {
	f.mu.Lock()
	idle := f.idle
	f.idle, f.closed = nil, true
	f.mu.Unlock()
	var errs []error
	for _, p := range idle {
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

// take returns an idle process, or nil.
func (f *Factory) take() *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.idle) > 0 {
		last := len(f.idle) - 1
		p := f.idle[last]
		f.idle = f.idle[:last]
		if !p.wait(0) {
			return p
		}
		// It has ended while nobody needed it, and closing tells nothing new.
		_ = p.close()
	}
	return nil
}

// keep makes a process idle, or reports that there are enough.
func (f *Factory) keep(p *process) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.idle) >= f.workers(0) {
		return false
	}
	f.idle = append(f.idle, p)
	return true
}

// workers returns the number of workers of a vector that is asked for a number of them, or for 0.
func (f *Factory) workers(asked int) int {
	switch {
	case f.c.Workers > 0:
		return f.c.Workers
	case asked > 0:
		return asked
	}
	return runtime.GOMAXPROCS(0)
}

// worker starts a worker for a job, in the idle process where there is one.
func (f *Factory) worker(j job) (*worker, error) {
	p := f.take()
	if p == nil {
		var err error
		if p, _, err = open(context.Background(), f.python, f.c, f.d); err != nil {
			return nil, err
		}
	}
	w, err := attach(p, j)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return w, nil
}

// retire ends the work of a worker, whose process is kept where there are not enough.
func (f *Factory) retire(w *worker) error {
	err := w.call(patience, "detach", nil, nil)
	if ended(err) {
		// Its end is what was wanted.
		return w.close()
	}
	if err = errors.Join(err, w.unshare()); err == nil && f.keep(w.process) {
		return nil
	}
	return errors.Join(err, w.close())
}

// provable finds out, once, whether environments that are saved and continued stay the same: a
// process of its own saves one in the middle of episodes, continues in another and compares what
// both answer.
func (f *Factory) provable() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.proven {
		f.proven = true
		if err := f.prove(); err != nil {
			f.proof = fmt.Errorf("%w: %w", envs.ErrCannotSave, err)
		}
	}
	return f.proof
}

func (f *Factory) prove() error {
	p, _, err := open(context.Background(), f.python, f.c, f.d)
	if err != nil {
		return err
	}
	var reason *string
	if err := errors.Join(p.call(f.c.StartTimeout, "prove", nil, &reason), p.close()); err != nil {
		return err
	}
	if reason != nil {
		return errors.New(*reason)
	}
	return nil
}
