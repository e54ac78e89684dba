package prefix

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Windows are the runs of consecutive rows of a constant table, as envs.Window has them.
type Windows interface {
	// Table has the rows, Len is how many of them a window has, and At returns the window that ends
	// with a row.
	Table() *tensor.Tensor
	Len() int
	At(last int) *tensor.Tensor
}

// ErrRowsDepend says that a part's results for one window depend on the other windows of a batch,
// so that there is nothing to keep.
var ErrRowsDepend = errors.New("what the network makes of a window depends on other rows of the batch")

// Caches holds what parts made of the windows of tables, found by content. It is safe for
// concurrent use, and the zero value is ready. It is closed before the engines whose sessions it
// has.
type Caches struct {
	mu   sync.Mutex
	held []*Cache
}

// idleBytes is how much memory caches that nobody uses may keep, for agents that are opened again
// over the same base.
const idleBytes = 2 << 30

// key identifies a cache.
type key struct {
	engine      engine.Compiler
	part, table [sha256.Size]byte
	length      int
}

// Cache is what a part makes of the windows of a table, by row. It is safe for concurrent use.
type Cache struct {
	key  key
	refs int // guarded by Caches.mu

	// first is the last row of the first window, rows how many windows there are, and stride the
	// bytes that lie between them.
	first, rows, stride int
	off, size           []int
	store               *tensor.Arena
	data                []byte
	// done says of each block that it is in data.
	done []atomic.Bool
	runs atomic.Int64

	// mu guards what computes.
	mu      sync.Mutex
	session engine.Session
	binding engine.Binding
	buffers []*tensor.Arena
	in      *tensor.Tensor
	out     []*tensor.Tensor
}

// Bytes is the memory that a part takes for all windows of a table.
func Bytes(p *Part, w Windows) int { return stride(p) * (w.Table().Shape()[0] - w.Len() + 1) }

// stride is the memory of a row: its values, each of which begins at a cache line.
func stride(p *Part) int {
	n := 0
	for _, o := range p.Outputs {
		n += tensor.AlignUp(4 * elements(o.Shape))
	}
	return n
}

// Open returns the cache of a part over the windows of a table; value returns parameters by the
// names of [Part.Params]. The caller releases it. Memory is used as rows are computed. The error is
// [ErrRowsDepend] where rows cannot be computed apart.
func (c *Caches) Open(e engine.Compiler, p *Part, value func(param string) *tensor.Tensor, w Windows) (*Cache, error) {
	m, err := p.Model(value)
	if err != nil {
		return nil, err
	}
	text, err := onnx.Marshal(m)
	if err != nil {
		return nil, err
	}
	k := key{engine: e, part: sha256.Sum256(text), table: sumOf(w.Table()), length: w.Len()}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.held, func(x *Cache) bool { return x.key == k }); i >= 0 {
		x := c.held[i]
		// The newest comes last.
		c.held = append(slices.Delete(c.held, i, i+1), x)
		x.refs++
		return x, nil
	}
	x, err := newCache(e, p, m, w)
	if err != nil {
		return nil, fmt.Errorf("frozen part: %w", err)
	}
	x.key, x.refs = k, 1
	c.held = append(c.held, x)
	return x, c.trim()
}

// sumOf is the digest of a table, its shape included.
func sumOf(t *tensor.Tensor) (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%v\n", t.Shape())
	h.Write(t.Bytes())
	h.Sum(sum[:0])
	return sum
}

// trim closes the oldest caches that nobody uses, until the others are few enough.
func (c *Caches) trim() error {
	total := 0
	for _, x := range c.held {
		if x.refs == 0 {
			total += len(x.data)
		}
	}
	var errs []error
	c.held = slices.DeleteFunc(c.held, func(x *Cache) bool {
		if x.refs > 0 || total <= idleBytes {
			return false
		}
		total -= len(x.data)
		errs = append(errs, x.close())
		return true
	})
	return errors.Join(errs...)
}

// Release gives up a cache that Open returned. It stays for whoever opens it next, unless those
// that nobody uses take too much memory.
func (c *Caches) Release(x *Cache) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.refs--
	return c.trim()
}

// Runs is how many times the parts' sessions have run, over all caches that are held, without the
// runs by which Open tries them.
func (c *Caches) Runs() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.held {
		n += x.Runs()
	}
	return n
}

// Len is the number of caches that are held.
func (c *Caches) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.held)
}

// Close frees all caches; nobody may use one any more.
func (c *Caches) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, x := range c.held {
		errs = append(errs, x.close())
	}
	c.held = nil
	return errors.Join(errs...)
}

func newCache(e engine.Compiler, p *Part, m *onnx.Model, w Windows) (_ *Cache, err error) {
	x := &Cache{first: w.Len() - 1, rows: w.Table().Shape()[0] - w.Len() + 1}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.close())
		}
	}()
	if x.session, err = e.Compile(m, engine.Options{}); err != nil {
		return nil, err
	}
	buffer := func(port engine.Port) (*tensor.Tensor, error) {
		a, err := tensor.NewArena(4 * elements(port.Shape))
		if err != nil {
			return nil, err
		}
		x.buffers = append(x.buffers, a)
		return a.Tensor(port.DType, 0, port.Shape...)
	}
	if x.in, err = buffer(x.session.Inputs()[0]); err != nil {
		return nil, err
	}
	for i, port := range x.session.Outputs() {
		t, err := buffer(port)
		if err != nil {
			return nil, err
		}
		x.out = append(x.out, t)
		x.off, x.size = append(x.off, x.stride), append(x.size, 4*elements(p.Outputs[i].Shape))
		x.stride += tensor.AlignUp(x.size[i])
	}
	if x.binding, err = x.session.Bind(x.out, []*tensor.Tensor{x.in}); err != nil {
		return nil, err
	}
	if err := x.prove(w); err != nil {
		return nil, err
	}
	if x.store, err = tensor.NewArena(x.stride * x.rows); err != nil {
		return nil, err
	}
	view, err := x.store.Tensor(tensor.Uint8, 0, x.stride*x.rows)
	if err != nil {
		return nil, err
	}
	x.data, x.done = view.Bytes(), make([]atomic.Bool, (x.rows+Block-1)/Block)
	return x, nil
}

// prove computes a block of windows in two orders: what comes out for a window has to be the same,
// up to rounding.
func (x *Cache) prove(w Windows) error {
	at := func(i int) *tensor.Tensor { return w.At(x.first + (i*max(1, x.rows/Block))%x.rows) }
	run := func(turn int) ([][]float32, error) {
		n := len(x.in.Bytes()) / Block
		for i := range Block {
			copy(x.in.Bytes()[i*n:(i+1)*n], at((i+turn)%Block).Bytes())
		}
		if err := x.binding.Run(); err != nil {
			return nil, err
		}
		var out [][]float32
		for _, t := range x.out {
			out = append(out, slices.Clone(t.Float32s()))
		}
		return out, nil
	}
	const turn = 5
	a, err := run(0)
	if err != nil {
		return err
	}
	b, err := run(turn)
	if err != nil {
		return err
	}
	for k := range a {
		n := len(a[k]) / Block
		scale := 0.0
		for _, v := range a[k] {
			scale = max(scale, math.Abs(float64(v)))
		}
		for i := range Block {
			for j := range n {
				p, q := a[k][(i+turn)%Block*n+j], b[k][i*n+j]
				// Numbers that are none are equal where both are.
				if d := math.Abs(float64(p) - float64(q)); !(d <= 1e-4*scale+1e-7) && !(p != p && q != q) {
					return ErrRowsDepend
				}
			}
		}
	}
	return nil
}

// Runs is how many blocks were computed.
func (x *Cache) Runs() int64 { return x.runs.Load() }

// Gather copies value k of the part for the windows that end with these rows into the rows of
// dst[k], which a nil one is not wanted of, and computes what is not there yet. w are the windows
// that the cache was opened for, or equal ones. It allocates nothing.
func (x *Cache) Gather(dst []*tensor.Tensor, w Windows, rows []int64) error {
	for i, last := range rows {
		r := int(last) - x.first
		if r < 0 || r >= x.rows {
			return fmt.Errorf("frozen part: row %d, expected the last row of a window, between %d and %d", last, x.first, x.first+x.rows-1)
		}
		if !x.done[r/Block].Load() {
			if err := x.compute(r/Block, w); err != nil {
				return err
			}
		}
		row := x.data[r*x.stride:]
		for k, t := range dst {
			if t != nil {
				n := x.size[k]
				copy(t.Bytes()[i*n:(i+1)*n], row[x.off[k]:])
			}
		}
	}
	return nil
}

// compute fills a block. The last one is filled up with its last window.
func (x *Cache) compute(block int, w Windows) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done[block].Load() {
		return nil
	}
	n := len(x.in.Bytes()) / Block
	for i := range Block {
		copy(x.in.Bytes()[i*n:(i+1)*n], w.At(x.first+min(block*Block+i, x.rows-1)).Bytes())
	}
	if err := x.binding.Run(); err != nil {
		return fmt.Errorf("frozen part: %w", err)
	}
	for k, t := range x.out {
		n := x.size[k]
		for i := range min(Block, x.rows-block*Block) {
			copy(x.data[(block*Block+i)*x.stride+x.off[k]:], t.Bytes()[i*n:(i+1)*n])
		}
	}
	x.runs.Add(1)
	x.done[block].Store(true)
	return nil
}

// Compute is Gather for windows that are no rows of a table, [n, …].
func (x *Cache) Compute(dst []*tensor.Tensor, windows *tensor.Tensor) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, rows := len(x.in.Bytes())/Block, windows.Shape()[0]
	from := windows.Bytes()
	if len(from) != n*rows {
		return fmt.Errorf("frozen part: windows %v, expected %v each", windows, x.in.Shape()[1:])
	}
	for begin := 0; begin < rows; begin += Block {
		for i := range Block {
			k := min(begin+i, rows-1)
			copy(x.in.Bytes()[i*n:(i+1)*n], from[k*n:])
		}
		if err := x.binding.Run(); err != nil {
			return fmt.Errorf("frozen part: %w", err)
		}
		for k, t := range dst {
			if t != nil {
				n := x.size[k]
				copy(t.Bytes()[begin*n:], x.out[k].Bytes()[:min(Block, rows-begin)*n])
			}
		}
	}
	return nil
}

func (x *Cache) close() error {
	var errs []error
	if x.binding != nil {
		errs = append(errs, x.binding.Close())
	}
	if x.session != nil {
		errs = append(errs, x.session.Close())
	}
	for _, a := range append(x.buffers, x.store) {
		if a != nil {
			errs = append(errs, a.Close())
		}
	}
	x.binding, x.session, x.store, x.buffers = nil, nil, nil, nil
	return errors.Join(errs...)
}
