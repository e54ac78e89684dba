package gymnasium

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// How a step has ended an episode, as the worker writes it.
const (
	goesOn = iota
	terminated
	truncated
)

// worker is a process with the environments [from, from+n) of a vector, and the memory it shares
// with it. Memory is laid out row by row: arrays of n elements, each beginning at a whole cache
// line.
type worker struct {
	*process
	from, n int

	actions column
	obs     []column
	final   []column
	rewards []float64
	seeds   []int64
	ends    []byte
	mask    []byte
	// finalMask is what could be done after a final observation that a truncation made one.
	finalMask []byte
	// info has diagnostics and costs.
	info []float64
}

// column is an array of values of one form, one for each environment.
type column struct {
	bytes []byte
	size  int
	form  *form
}

// job says what a worker is for.
type job struct {
	c       Config
	d       *description
	spec    *envs.Spec
	from, n int
	// autoreset begins the next episode in the step that ends one; limit truncates episodes, unless
	// it is 0.
	autoreset bool
	limit     int
	// watch is how long this side looks for the other one's messages before it sleeps.
	watch time.Duration
}

// attach makes the environments of a job in a process whose call open has been made.
func attach(p *process, j job) (*worker, error) {
	w := &worker{process: p, from: j.from, n: j.n}
	at, size := map[string]int{}, 0
	place := func(name string, bytes int) {
		at[name] = size
		size += tensor.AlignUp(j.n * bytes)
	}
	one, err := j.d.Action.size()
	if err != nil {
		return nil, fmt.Errorf("action: %w", err)
	}
	place("actions", one)
	w.actions = column{size: one, form: &j.d.Action}
	for i := range j.d.Observation {
		f := &j.d.Observation[i]
		one, err := f.size()
		if err != nil {
			return nil, fmt.Errorf("observation %q: %w", j.spec.Observation[i].Name, err)
		}
		place(fmt.Sprintf("obs%d", i), one)
		place(fmt.Sprintf("final%d", i), one)
		w.obs = append(w.obs, column{size: one, form: f})
	}
	masks := 0
	if j.spec.Masked {
		masks = envs.MaskLen(j.spec.Action)
	}
	place("rewards", 8)
	place("seeds", 8)
	place("ends", 1)
	place("mask", masks)
	place("final_mask", masks)
	infos := 8 * (len(j.spec.Info) + len(j.spec.Costs))
	place("info", infos)
	if err := p.share(size); err != nil {
		return nil, err
	}
	part := func(name string, bytes int) []byte { return p.shared[at[name] : at[name]+j.n*bytes] }
	w.actions.bytes = part("actions", one)
	w.final = append(w.final, w.obs...)
	for i := range w.obs {
		w.obs[i].bytes = part(fmt.Sprintf("obs%d", i), w.obs[i].size)
		w.final[i].bytes = part(fmt.Sprintf("final%d", i), w.obs[i].size)
	}
	w.ends, w.mask, w.finalMask = part("ends", 1), part("mask", masks), part("final_mask", masks)
	w.rewards, w.seeds, w.info = numbers[float64](part("rewards", 8)), numbers[int64](part("seeds", 8)), numbers[float64](part("info", infos))
	p.watch.time = j.watch
	err = p.call(j.c.StartTimeout, "attach", map[string]any{"size": size, "watch": workersWatch(), "n": j.n, "at": at, "autoreset": j.autoreset, "limit": j.limit, "mask_len": masks}, nil)
	return w, err
}

// open starts a process and makes one environment in it. Where a description is expected, the
// environment must have that.
func open(ctx context.Context, python string, c Config, expected *description) (*process, *description, error) {
	p, err := startProcess(python, c.adapter.Source, c.Print)
	if err != nil {
		return nil, nil, err
	}
	defer context.AfterFunc(ctx, p.kill)()
	d := &description{}
	if err := p.call(c.StartTimeout, "open", c.opening(), d); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, nil, errors.Join(err, p.close())
	}
	if expected != nil && !reflect.DeepEqual(d, expected) {
		return nil, nil, errors.Join(fmt.Errorf("another process describes %s differently: %+v, expected %+v", c.ID, *d, *expected), p.close())
	}
	return p, d, nil
}

// put writes the action of environment i, which belongs to the space.
func (w *worker) put(i int, action []byte) {
	dst := w.actions.bytes[i*w.actions.size : (i+1)*w.actions.size]
	f := w.actions.form
	if f.Wire == "d" {
		widen(dst, action)
		return
	}
	copy(dst, action)
	if f.Start != nil {
		for k, v := range numbers[int64](dst) {
			numbers[int64](dst)[k] = v + f.Start[k]
		}
	}
}

// get copies the value of environment i to dst, a row of a batch.
func (c *column) get(i int, dst []byte) {
	src := c.bytes[i*c.size : (i+1)*c.size]
	if c.form.Wire == "d" {
		narrow(dst, src)
		return
	}
	copy(dst, src)
	if c.form.Start != nil {
		for k, v := range numbers[int64](dst) {
			numbers[int64](dst)[k] = v - c.form.Start[k]
		}
	}
}

// widen converts float32 to float64, and narrow back with the nearest value.
func widen(dst, src []byte) {
	out := numbers[float64](dst)
	for i, v := range numbers[float32](src) {
		out[i] = float64(v)
	}
}

func narrow(dst, src []byte) {
	out := numbers[float32](dst)
	for i, v := range numbers[float64](src) {
		out[i] = float32(v)
	}
}
