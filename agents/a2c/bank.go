package a2c

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// bank keeps the features of windows, computed once for each chunk of consecutive ones and each
// version of the encoder; where windows have nothing in common, a chunk is one window. Environments
// at the same bar share them.
type bank struct {
	rows *rows
	prog *program.Program
	// out are the features as the program leaves them, [series, chunk, width] for each encoder.
	out [][]float32
	// width of an encoder's features.
	width int
	// still says that the encoder never changes; chunks then begin at fixed places, so that
	// features do not depend on who asked first.
	still bool
	pages []*page
	limit int
	clock int64
}

// page holds the features of the windows that end with the rows from start to start + chunk − 1.
type page struct {
	start int
	stamp stamp
	used  int64
	// z has, for each encoder, [chunk, series, width].
	z [][]float32
}

// stamp changes whenever parameters do: by an update, or because they were replaced.
type stamp struct{ updates, replaced int64 }

// bankBytes is the memory that a bank's pages may take beyond two for each environment.
const bankBytes = 64 << 20

// newBank compiles the encoder. envs is the number of environments that will ask at the same time.
func newBank(l *learner, envs int) (*bank, error) {
	g, r := l.g, newRows(l, 1)
	p, err := program.New(g.encode, l.Params, program.Config{Engine: l.Setup.Engine, Batch: r.series, BatchSymbol: layer.Batch, Shards: r.shards})
	if err != nil {
		return nil, err
	}
	r.x = p.Input(rowsInput)
	k := &bank{rows: r, prog: p, width: g.width, still: !onpolicy.Trainable(g.encode)}
	for _, name := range g.features {
		k.out = append(k.out, p.Output(name).Float32s())
	}
	k.limit = max(2*envs+2, bankBytes/(4*r.chunk*r.series*k.width*len(k.out)))
	return k, nil
}

// find returns the page that has the window ending with a row, which it computes unless it is
// there.
func (k *bank) find(row int, now stamp) (*page, error) {
	now = k.version(now)
	k.clock++
	for _, p := range k.pages {
		if p.stamp == now && row >= p.start && row < p.start+k.rows.chunk {
			p.used = k.clock
			return p, nil
		}
	}
	start, err := k.rows.start(row, k.still)
	if err != nil {
		return nil, err
	}
	p := k.room(now)
	p.start, p.stamp, p.used = start, now, k.clock
	return p, k.fill(p)
}

// fill computes the features of a page.
func (k *bank) fill(p *page) error {
	k.rows.fill(0, p.start)
	if err := k.prog.Run(); err != nil {
		p.stamp.updates = -1
		return fmt.Errorf("encode rows: %w", err)
	}
	c, s, w := k.rows.chunk, k.rows.series, k.width
	for e, out := range k.out {
		for i := range s {
			for j := range c {
				copy(p.z[e][(j*s+i)*w:][:w], out[(i*c+j)*w:])
			}
		}
	}
	return nil
}

// room returns a page that may be overwritten: one of other parameters, a new one, or the one not
// used for longest.
func (k *bank) room(now stamp) *page {
	var oldest *page
	for _, p := range k.pages {
		if p.stamp != now {
			return p
		}
		if oldest == nil || p.used < oldest.used {
			oldest = p
		}
	}
	if len(k.pages) >= k.limit {
		return oldest
	}
	p := k.newPage()
	k.pages = append(k.pages, p)
	return p
}

func (k *bank) newPage() *page {
	p := &page{z: make([][]float32, len(k.out))}
	for i := range p.z {
		p.z[i] = make([]float32, k.rows.chunk*k.rows.series*k.width)
	}
	return p
}

// savedPage is a page in a checkpoint, without its features. Used counts the pages that were used
// before it.
type savedPage struct {
	Start int `json:"start"`
	Used  int `json:"used"`
}

// saved lists the pages of the present parameters, in whose order they are searched. They lie
// before all others, which are overwritten first.
func (k *bank) saved(now stamp) (list []savedPage) {
	for _, p := range k.pages {
		if p.stamp != k.version(now) {
			continue
		}
		s := savedPage{Start: p.start}
		for _, o := range k.pages {
			if o.stamp == p.stamp && o.used < p.used {
				s.Used++
			}
		}
		list = append(list, s)
	}
	return list
}

// restore computes the features of saved pages with the present parameters.
func (k *bank) restore(list []savedPage, now stamp) error {
	k.pages, k.clock = nil, int64(len(list))
	for _, s := range list {
		if first, last := k.rows.window-1, k.rows.table.Shape()[0]-k.rows.chunk; s.Start < first || s.Start > last {
			return fmt.Errorf("a2c: restore: a chunk of windows that begins at row %d, expected between %d and %d", s.Start, first, last)
		}
		p := k.newPage()
		p.start, p.used, p.stamp = s.Start, int64(s.Used), k.version(now)
		if err := k.fill(p); err != nil {
			return err
		}
		k.pages = append(k.pages, p)
	}
	return nil
}

// version is what features depend on.
func (k *bank) version(now stamp) stamp {
	if k.still {
		now.updates = 0
	}
	return now
}

// forget drops all features.
func (k *bank) forget() {
	for _, p := range k.pages {
		p.stamp.updates = -1
	}
}

// copyTo copies the features of the window ending with a row to row i of the inputs, one for each
// encoder.
func (k *bank) copyTo(dst [][]float32, i int, p *page, row int) {
	n := k.rows.series * k.width
	for e, z := range p.z {
		copy(dst[e][i*n:][:n], z[(row-p.start)*n:])
	}
}

// Close frees the encoder's program.
func (k *bank) Close() error { return k.prog.Close() }

// rows copies chunks of consecutive rows of a table into an encoder's input [n·series, L, F]:
// the series of the first chunk, then those of the next.
type rows struct {
	table *tensor.Tensor
	x     *tensor.Tensor
	// window is W, chunk the number of windows in L rows, series and features those of a row of the
	// table; shards is how many the encoder's program has.
	window, chunk, series, features, shards int
}

// newRows returns the rows of n chunks.
func newRows(l *learner, n int) *rows {
	g := l.g
	w := g.Frame.Window()
	r := &rows{table: w.Table(), window: w.Len(), chunk: g.chunk}
	r.series, r.features = columns(g.Frame)
	r.shards = l.Setup.Split(program.SplitFLOPs).Shards(g.encode, layer.Batch, n*r.series, 1)
	return r
}

// start returns where the chunk begins that has the window ending with a row: there, or at a
// multiple of the chunk when aligned, but early enough that the chunk does not go beyond the table.
func (r *rows) start(row int, aligned bool) (int, error) {
	first, last := r.window-1, r.table.Shape()[0]-1
	if row < first || row > last {
		return 0, fmt.Errorf("window ending with row %d of a table of %d rows: expected between %d and %d", row, last+1, first, last)
	}
	if aligned {
		row = first + (row-first)/r.chunk*r.chunk
	}
	return min(row, last-r.chunk+1), nil
}

// fill copies the rows of the chunk that begins at start to place k.
func (r *rows) fill(k, start int) {
	length := r.chunk + r.window - 1
	src, dst := r.table.Float32s(), r.x.Float32s()[k*r.series*length*r.features:]
	from := (start - r.window + 1) * r.series * r.features
	for i := range r.series {
		for j := range length {
			copy(dst[(i*length+j)*r.features:][:r.features], src[from+(j*r.series+i)*r.features:])
		}
	}
}
