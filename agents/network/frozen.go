package network

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/prefix"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Features that an encoder computes of windows by layers that never change are kept where that
// saves a part of keepShare of a network's products, and keepFLOPs for each number that is then
// copied instead.
const (
	keepShare = 0.1
	keepFLOPs = 16
)

// KeepMiB is what Config.EncoderCache is where it is 0.
const KeepMiB = 1024

// Frozen gives the programs of an agent what its encoders make of windows by layers that never
// change, out of the setup's caches. A nil one has nothing.
type Frozen struct {
	// Networks are those that NewFrozen got, with inputs for these values.
	Networks []*models.Network
	// Kept describes it.
	Kept Kept

	caches *prefix.Caches
	split  *prefix.Split
	field  string
	series int
	window *envs.Window
	limit  int
	setup  agents.Setup
	value  func(param string) *tensor.Tensor

	mu   sync.Mutex
	open []*keeping
	// loads counts Reload, after which feeds look for their caches again.
	loads int
}

// Kept describes what is kept of the windows of an agent.
type Kept struct {
	// FLOPs is the arithmetic of the products that a window needs once, of Whole for each of its
	// uses by the network that acts; Bytes is the memory for all Rows of the table.
	FLOPs float64
	Whole float64
	Bytes int
	Rows  int
}

// Keeper is implemented by learners that keep what their encoders make of windows; Kept is nil
// where they keep nothing.
type Keeper interface{ Kept() *Kept }

// String says what is kept.
func (k Kept) String() string {
	return fmt.Sprintf("%.0f %% of the acting network's products (%.3g of %.3g FLOPs) depend on nothing that is trained: computed once for each of %d windows, and kept in %.1f MiB", 100*k.FLOPs/k.Whole, k.FLOPs, k.Whole, k.Rows, float64(k.Bytes)/(1<<20))
}

// keeping are the caches of the parts for the windows of one table; nil where they would take too
// much.
type keeping struct {
	table  *tensor.Tensor
	caches []*prefix.Cache
}

// tables is the most tables whose caches an agent holds: those of training and of validation.
const tables = 4

// NewFrozen splits the networks of an agent with torso configuration c, the first of which acts,
// and whose windows are inputs of the field's name behind one of the prefixes. It is nil where
// nothing is to be kept: the setup has no caches, observations are no windows of a table, all is
// trained, or it would not pay. constant is prefix.Options.Constant. The parameters have their
// values.
func NewFrozen(s *agents.Setup, c *Config, f *Frame, params *models.Params, constant func(param string) (string, bool), prefixes []string, nets []*models.Network) (*Frozen, error) {
	w := f.Window()
	if s.Prefixes == nil || w == nil || c.EncoderCache < 0 {
		return nil, nil
	}
	x := &Frozen{caches: s.Prefixes, field: s.Spec.Observation[f.Series].Name, series: f.Series, window: w, setup: *s, value: params.View, limit: c.EncoderCache << 20}
	if x.limit == 0 {
		x.limit = KeepMiB << 20
	}
	o := prefix.Options{Batch: layer.Batch, Constant: constant}
	for _, p := range prefixes {
		o.Windows = append(o.Windows, p+x.field)
	}
	var err error
	if x.split, err = prefix.Of(nets, o); x.split == nil || err != nil {
		return nil, err
	}
	x.Networks = x.split.Rest
	one := map[string]int{layer.Batch: 1}
	x.Kept = Kept{Whole: program.FLOPs(nets[0].Model, one), Rows: w.Table().Shape()[0] - w.Len() + 1}
	x.Kept.FLOPs = x.Kept.Whole - program.FLOPs(x.Networks[0].Model, one)
	all, numbers := 0.0, 0
	for _, p := range x.split.Parts {
		x.Kept.Bytes += prefix.Bytes(p, w)
		all += p.FLOPs
		numbers += p.Bytes / 4
	}
	if x.Kept.FLOPs < keepShare*x.Kept.Whole || all < keepFLOPs*float64(numbers) {
		return nil, nil
	}
	log := s.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if x.Kept.Bytes > x.limit {
		log.Warn("what the encoder's layers that never change make of windows would take more memory than agent.encoder_cache_mib: it is computed at each use", "MiB", x.Kept.Bytes>>20, "limit", x.limit>>20)
		return nil, nil
	}
	switch _, err := x.of(w); {
	case errors.Is(err, prefix.ErrRowsDepend):
		log.Warn("nothing is kept of what the encoder makes of windows", "reason", err)
		return nil, x.Close()
	case err != nil:
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// of returns the caches for the windows of a table.
func (x *Frozen) of(w *envs.Window) (*keeping, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.IndexFunc(x.open, func(k *keeping) bool { return k.table == w.Table() }); i >= 0 {
		return x.open[i], nil
	}
	k := &keeping{table: w.Table()}
	bytes := 0
	for _, p := range x.split.Parts {
		bytes += prefix.Bytes(p, w)
	}
	if bytes <= x.limit {
		for _, p := range x.split.Parts {
			c, err := x.caches.Open(x.setup.Engine, p, x.constant, w)
			if err != nil {
				return nil, errors.Join(err, x.release(k))
			}
			k.caches = append(k.caches, c)
		}
	}
	if x.open = append(x.open, k); len(x.open) > tables {
		// The first one is that of training.
		old := x.open[1]
		x.open = slices.Delete(x.open, 1, 2)
		return k, x.release(old)
	}
	return k, nil
}

// constant returns the value of a parameter of a part.
func (x *Frozen) constant(param string) *tensor.Tensor { return x.value(param) }

func (x *Frozen) release(k *keeping) error {
	var errs []error
	for _, c := range k.caches {
		errs = append(errs, x.caches.Release(c))
	}
	k.caches = nil
	return errors.Join(errs...)
}

// Reload looks for the caches again, after other values of the parameters were loaded.
func (x *Frozen) Reload() error {
	if x == nil {
		return nil
	}
	if err := x.Close(); err != nil {
		return err
	}
	x.loads++
	_, err := x.of(x.window)
	return err
}

// Close gives up the caches, which others may use.
func (x *Frozen) Close() error {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	var errs []error
	for _, k := range x.open {
		errs = append(errs, x.release(k))
	}
	x.open = nil
	return errors.Join(errs...)
}

// FrozenFeed writes what is kept of windows into inputs of programs.
type FrozenFeed struct {
	of *Frozen
	// dst has the inputs of each part's values; nil ones are not read.
	dst [][]*tensor.Tensor
	// now are the caches of the table that was asked for last; windows is where windows are put
	// that are in no cache.
	now     *keeping
	loads   int
	windows *tensor.Tensor
}

// Feed returns what fills the inputs for windows behind a prefix; in returns inputs by name, or nil
// for those that no program has.
func (x *Frozen) Feed(before string, in func(name string) *tensor.Tensor) *FrozenFeed {
	if x == nil {
		return nil
	}
	f := &FrozenFeed{of: x}
	used := false
	for _, p := range x.split.Parts {
		var list []*tensor.Tensor
		for _, o := range p.Outputs {
			t := in(prefix.InputName(before+x.field, o.Index))
			list, used = append(list, t), used || t != nil
		}
		f.dst = append(f.dst, list)
	}
	if !used {
		return nil
	}
	return f
}

// Rows fills the inputs for the windows that end with these rows.
func (f *FrozenFeed) Rows(w *envs.Window, rows []int64) error {
	if f == nil {
		return nil
	}
	k, err := f.keeping(w)
	if err != nil {
		return err
	}
	for i, c := range k.caches {
		if err := c.Gather(f.dst[i], w, rows); err != nil {
			return fmt.Errorf("observation %q: %w", f.of.field, err)
		}
	}
	return nil
}

func (f *FrozenFeed) keeping(w *envs.Window) (*keeping, error) {
	if f.now == nil || f.now.table != w.Table() || f.now.caches == nil || f.loads != f.of.loads {
		var err error
		if f.now, err = f.of.of(w); err != nil {
			return nil, err
		}
		f.loads = f.of.loads
	}
	return f.now, nil
}

// Current fills the inputs for what environments show, also where they do not say of which row.
func (f *FrozenFeed) Current(b *vector.Batch) error {
	if f == nil {
		return nil
	}
	i := f.of.series
	w := b.Window(i)
	if w != nil && b.Rows[i] != nil && w.Len() == f.of.window.Len() {
		k, err := f.keeping(w)
		if err != nil {
			return err
		}
		if k.caches != nil {
			return f.Rows(w, b.Rows[i])
		}
	}
	if f.windows == nil || f.windows.Shape()[0] != len(b.Type) {
		f.windows = tensor.New(tensor.Float32, append([]int{len(b.Type)}, f.of.setup.Spec.Observation[i].Space.Shape()...)...)
	}
	if err := b.Gather(i, f.windows); err != nil {
		return err
	}
	k, err := f.of.of(f.of.window)
	if err != nil {
		return err
	}
	for i, c := range k.caches {
		if err := c.Compute(f.dst[i], f.windows); err != nil {
			return fmt.Errorf("observation %q: %w", f.of.field, err)
		}
	}
	return nil
}
