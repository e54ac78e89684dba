package gymnasium

import (
	"errors"
	"fmt"
	"sync"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Vector steps environments in worker processes, each of which holds a contiguous range of them.
type Vector struct {
	f     *Factory
	spec  envs.Spec
	opts  vector.Options
	frame *vector.Frame
	batch *vector.Batch
	rows  []envRow
	jobs  []job
	// workers belong to the jobs; nil where there is none (yet, or any more).
	workers []*worker
	errs    []error

	key    rng.Key
	stream rng.Stream
	// fixed replaces the seeds that descend from key.
	fixed    *int64
	restarts int
	running  bool
	closed   bool
	// began is the number of episodes each environment has begun since Reset.
	began  []int
	ret    []float64
	length []int
}

// envRow is where one environment is and writes to.
type envRow struct {
	worker, index int
	action        *tensor.Tensor
	obs, final    []*tensor.Tensor
	mask          *tensor.Tensor
}

var (
	_ vector.Env   = (*Vector)(nil)
	_ vector.Saver = (*Vector)(nil)
)

func newVector(f *Factory, n int, o vector.Options, autoreset bool) (*Vector, error) {
	if n < 1 || o.Workers < 0 || o.Limit < 0 || o.Truncate < 0 {
		return nil, fmt.Errorf("vector of %s: %d environments, %d workers and limits of %d and %d steps", f.spec.Name, n, o.Workers, o.Limit, o.Truncate)
	}
	v := &Vector{f: f, spec: f.spec, opts: o, began: make([]int, n), ret: make([]float64, n), length: make([]int, n)}
	limit := o.Truncate
	if limit == 0 && v.spec.MaxSteps == 0 {
		limit = o.Limit
	}
	if limit > 0 && (v.spec.MaxSteps == 0 || limit < v.spec.MaxSteps) {
		v.spec.MaxSteps = limit
	}
	workers := min(f.workers(o.Workers), n)
	var err error
	if v.frame, err = vector.NewFrame(v.spec, n, false); err != nil {
		return nil, fmt.Errorf("vector of %s: %w", f.spec.Name, err)
	}
	v.batch = v.frame.Batch()
	for w := range workers {
		from := w * n / workers
		v.jobs = append(v.jobs, job{c: f.c, d: f.d, spec: &v.spec, from: from, n: (w+1)*n/workers - from, autoreset: autoreset, limit: limit, watch: watchingFor(workers)})
		for i := range v.jobs[w].n {
			v.rows = append(v.rows, v.row(w, i, from+i))
		}
	}
	v.workers, v.errs = make([]*worker, workers), make([]error, workers)
	return v, nil
}

func (v *Vector) row(w, index, i int) envRow {
	row := func(t *tensor.Tensor) *tensor.Tensor { return t.Rows(i, i+1).Reshape(t.Shape()[1:]...) }
	p := envRow{worker: w, index: index, action: row(v.batch.Actions)}
	for f := range v.batch.Obs {
		p.obs, p.final = append(p.obs, row(v.batch.Obs[f])), append(p.final, row(v.batch.Final[f]))
	}
	if v.batch.Mask != nil {
		p.mask = row(v.batch.Mask)
	}
	return p
}

// Spec implements vector.Env.
func (v *Vector) Spec() envs.Spec { return v.spec }

// Len implements vector.Env.
func (v *Vector) Len() int { return len(v.rows) }

// Batch implements vector.Env.
func (v *Vector) Batch() *vector.Batch { return v.batch }

// Restarts returns the number of workers that have been replaced.
func (v *Vector) Restarts() int { return v.restarts }

// Reset implements vector.Env. The first one starts the workers.
func (v *Vector) Reset(key rng.Key) error {
	if v.closed {
		return fmt.Errorf("reset %s: %w", v.spec.Name, envs.ErrClosed)
	}
	v.key = key
	if err := v.reset(); err != nil {
		return fmt.Errorf("reset %s: %w", v.spec.Name, err)
	}
	return nil
}

func (v *Vector) reset() error {
	v.running = false
	clear(v.began)
	clear(v.length)
	v.batch.Ended = v.batch.Ended[:0]
	if err := v.start(); err != nil {
		return err
	}
	for w := range v.workers {
		v.seed(w)
		v.errs[w] = v.workers[w].begin(opReset)
	}
	if err := v.finish(0); err != nil {
		return err
	}
	for w, err := range v.errs {
		if err != nil {
			if err := v.replace(w, err, true); err != nil {
				return err
			}
		}
	}
	for i := range v.rows {
		v.batch.Type[i], v.batch.Reward[i], v.batch.Discount[i] = envs.First, 0, 1
		if err := errors.Join(v.first(i), v.info(i)); err != nil {
			return err
		}
		clear(v.batch.Costs[i])
	}
	v.next()
	v.running = true
	return nil
}

// start starts the workers that there are not, all at once.
func (v *Vector) start() error {
	var group sync.WaitGroup
	for w := range v.workers {
		v.errs[w] = nil
		if v.workers[w] == nil {
			group.Go(func() { v.workers[w], v.errs[w] = v.f.worker(v.jobs[w]) })
		}
	}
	group.Wait()
	// All of them meet with the same, so one error says it.
	for w, err := range v.errs {
		if err != nil {
			return fmt.Errorf("worker %d: %w", w, err)
		}
	}
	return nil
}

// seed tells worker w what the next episodes of its environments are made from.
func (v *Vector) seed(w int) {
	for i := range v.workers[w].seeds {
		v.workers[w].seeds[i] = v.seedOf(v.jobs[w].from + i)
	}
}

// next does so for all workers.
func (v *Vector) next() {
	for w := range v.workers {
		v.seed(w)
	}
}

// seedOf returns the seed of the next episode of environment i: 31 bits, which every library takes.
func (v *Vector) seedOf(i int) int64 {
	if v.fixed != nil {
		return *v.fixed
	}
	return v.seedFrom(v.key.Split("episode", i, v.began[i]))
}

func (v *Vector) seedFrom(key rng.Key) int64 {
	v.stream.Seed(key)
	return int64(v.stream.Uint64() >> 33)
}

// finish waits for all workers that have begun, and gives up those that have ended. It returns the
// first error of an environment, which is at its step so many ahead of the last; ends of workers
// remain in errs.
func (v *Vector) finish(ahead int) error {
	for w := range v.workers {
		if v.errs[w] == nil {
			v.errs[w] = v.workers[w].finish(v.f.c.Timeout)
		}
	}
	var first error
	for w, err := range v.errs {
		switch {
		case err == nil:
		case ended(err):
			// It is gone, and closing tells nothing new.
			_ = v.workers[w].close()
			v.workers[w] = nil
		case first == nil:
			first = v.named(w, ahead, err)
		}
	}
	return first
}

// named says which environment an error of worker w belongs to, and at which step.
func (v *Vector) named(w, ahead int, err error) error {
	var python *PythonError
	if errors.As(err, &python) && python.Env >= 0 {
		i := v.jobs[w].from + python.Env
		v.length[i] += ahead
		return v.at(i, err)
	}
	return fmt.Errorf("worker %d: %w", w, err)
}

// replace starts another worker in the place of one that has ended for a reason, and resets its
// environments where that is wanted.
func (v *Vector) replace(w int, reason error, reset bool) error {
	for {
		if v.restarts >= v.f.c.MaxRestarts {
			return fmt.Errorf("worker %d with environments %d to %d, after %d restarts (max_restarts): %w", w, v.jobs[w].from, v.jobs[w].from+v.jobs[w].n-1, v.restarts, reason)
		}
		v.restarts++
		if v.opts.Log != nil {
			v.opts.Log.Warn("a worker of Python environments has ended and is replaced; its episodes count as truncated", "env", v.spec.Name, "worker", w, "first", v.jobs[w].from, "environments", v.jobs[w].n,
				"restarts", v.restarts, "max_restarts", v.f.c.MaxRestarts, "reason", reason)
		}
		next, err := v.f.worker(v.jobs[w])
		if err == nil {
			v.workers[w] = next
			if !reset {
				return nil
			}
			v.seed(w)
			if err = next.begin(opReset); err == nil {
				err = next.finish(v.f.c.Timeout)
			}
			if err == nil {
				return nil
			}
		}
		if !ended(err) {
			return v.named(w, 0, err)
		}
		if v.workers[w] != nil {
			_ = v.workers[w].close()
			v.workers[w] = nil
		}
		reason = err
	}
}

// Close implements vector.Env.
func (v *Vector) Close() error {
	var errs []error
	if !v.closed {
		v.closed, v.running = true, false
		var group sync.WaitGroup
		for w := range v.workers {
			v.errs[w] = nil
			if v.workers[w] != nil {
				group.Go(func() { v.errs[w] = v.f.retire(v.workers[w]) })
			}
		}
		group.Wait()
		for w, err := range v.errs {
			if err != nil {
				errs = append(errs, fmt.Errorf("close %s: worker %d: %w", v.spec.Name, w, err))
			}
		}
	}
	return errors.Join(append(errs, v.frame.Close())...)
}
