package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// part is where a column lies in a row.
type part struct {
	off, size int
	// window is not nil for a field of which only the number of its last row is kept.
	window *envs.Window
	// full is the size of the column in a batch, which is size except for windows.
	full int
	col  Column
}

// rows is a table of transitions: what is sampled together lies together, in whole cache lines
// outside the Go heap. A row holds an observation, its mask, the action that was taken there, and
// what it led to except the observation that followed, which is the next row's.
type rows struct {
	obs                       []part
	mask, action              part
	reward, discount, logProb part
	// time is the shared store's; logits and skill are those of a layout that asks for them.
	time, logits, skill part
	cost                part
	// head is the number of bytes of observation and mask, with which a row begins.
	head, stride int

	n     int
	arena *tensor.Arena
	data  []byte
}

// placed says where columns lie in a row, with the time of each where that is asked for.
// Checkpoints hold whole rows, so a new column is placed behind all others.
func placed(l Layout, timed bool) (*rows, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	r := &rows{}
	place := func(c Column, w *envs.Window) part {
		p := part{off: r.stride, full: c.DType.ByteLen(lenOf(c.Shape)), window: w, col: c}
		if p.size = p.full; w != nil {
			p.size = 4
		}
		// Parts begin at multiples of four bytes.
		r.stride += (p.size + 3) &^ 3
		return p
	}
	for i, c := range l.Obs {
		var w *envs.Window
		if i < len(l.Windows) {
			w = l.Windows[i]
		}
		r.obs = append(r.obs, place(c, w))
	}
	if l.Mask > 0 {
		r.mask = place(Column{"mask", tensor.Bool, []int{l.Mask}}, nil)
	}
	r.head = r.stride
	number := func(name string) part { return place(Column{Name: name, DType: tensor.Float32}, nil) }
	r.reward, r.discount = number("reward"), number("discount")
	if l.LogProb {
		r.logProb = number("log_prob")
	}
	r.action = place(l.Action, nil)
	if timed {
		r.time = place(Column{Name: "time", DType: tensor.Int64}, nil)
	}
	if l.Logits > 0 {
		r.logits = place(Column{"logits", tensor.Float32, []int{l.Logits}}, nil)
	}
	if l.Skill != nil {
		r.skill = place(Column{"skill", l.Skill.DType, l.Skill.Shape}, nil)
	}
	if l.Costs > 0 {
		r.cost = place(Column{"cost", tensor.Float32, []int{l.Costs}}, nil)
	}
	r.stride = tensor.AlignUp(r.stride)
	return r, nil
}

// newRows maps n rows of [placed].
func newRows(l Layout, n int, timed bool) (*rows, error) {
	r, err := placed(l, timed)
	if err != nil {
		return nil, err
	}
	r.n = n
	// Rows are drawn as numbers of 32 bits.
	if n < 1 || n > math.MaxUint32 || n > math.MaxInt/2/r.stride {
		return nil, fmt.Errorf("%d rows of %d bytes", n, r.stride)
	}
	if r.arena, err = tensor.NewArena(n * r.stride); err != nil {
		return nil, err
	}
	view, err := r.arena.Tensor(tensor.Uint8, 0, n*r.stride)
	if err != nil {
		return nil, errors.Join(err, r.arena.Close())
	}
	r.data = view.Bytes()
	AdviseHuge(r.data)
	return r, nil
}

// validate reports what is wrong with a layout.
func (l *Layout) validate() error {
	if len(l.Obs) == 0 {
		return errors.New("a layout without observations")
	}
	list := append(slices.Clone(l.Obs), l.Action)
	if l.Skill != nil {
		list = append(list, *l.Skill)
	}
	for _, c := range list {
		if c.DType.Size() == 0 {
			return fmt.Errorf("column %q: elements of type %v have no fixed size", c.Name, c.DType)
		}
		if _, err := tensor.Len(c.Shape); err != nil {
			return fmt.Errorf("column %q: %w", c.Name, err)
		}
	}
	for i, w := range l.Windows[:min(len(l.Windows), len(l.Obs))] {
		if w == nil {
			continue
		}
		c, t := l.Obs[i], w.Table()
		if c.DType != t.DType() || !slices.Equal(c.Shape, append([]int{w.Len()}, t.Shape()[1:]...)) {
			return fmt.Errorf("column %q is %v%v, and its windows are of %d rows of %v", c.Name, c.DType, c.Shape, w.Len(), t)
		}
		if t.Shape()[0] > math.MaxInt32 {
			return fmt.Errorf("column %q: windows of a table of %d rows, expected at most %d", c.Name, t.Shape()[0], math.MaxInt32)
		}
	}
	if l.Mask < 0 || l.Logits < 0 || l.Costs < 0 || len(l.Windows) > len(l.Obs) {
		return fmt.Errorf("a mask of %d actions, %d logits, %d costs and %d windows for %d observations", l.Mask, l.Logits, l.Costs, len(l.Windows), len(l.Obs))
	}
	return nil
}

// lenOf is the number of elements of a shape that has been checked.
func lenOf(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// row returns the bytes of row i.
func (r *rows) row(i int) []byte { return r.data[i*r.stride : (i+1)*r.stride : (i+1)*r.stride] }

func (r *rows) float(i int, p part) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(r.data[i*r.stride+p.off:]))
}

func (r *rows) setFloat(i int, p part, x float32) {
	binary.LittleEndian.PutUint32(r.data[i*r.stride+p.off:], math.Float32bits(x))
}

// has checks that a batch of n environments has what is recorded of an observation.
func (r *rows) has(b *vector.Batch, n int) error {
	for f := range r.obs {
		p := &r.obs[f]
		if f >= len(b.Obs) || p.window == nil && (b.Obs[f] == nil || len(b.Obs[f].Bytes()) != n*p.size) || p.window != nil && len(b.Rows[f]) != n {
			return fmt.Errorf("observation %q of the batch is missing or not %v[%d %v]", p.col.Name, p.col.DType, n, p.col.Shape)
		}
	}
	if k := r.mask.size; k > 0 && (b.Mask == nil || b.FinalMask == nil || len(b.Mask.Bytes()) != k*n || len(b.FinalMask.Bytes()) != k*n) {
		return fmt.Errorf("the batch has no mask, or no final mask, of %d actions", k)
	}
	if k := r.cost.size / 4; k > 0 && (len(b.Costs) != n || len(b.Costs[0]) != k) {
		return fmt.Errorf("the batch has no %d costs for each of %d environments", k, n)
	}
	return nil
}

// takes checks that a decision on n environments has what is recorded of it; a are its actions.
func (r *rows) takes(d *vector.Decision, a *tensor.Tensor, n int) error {
	if err := errors.Join(r.takesColumn("actions", &r.action, a, n), r.takesColumn("logits", &r.logits, d.Logits, n), r.takesColumn("skills", &r.skill, d.Skill, n)); err != nil {
		return err
	}
	if r.logProb.size > 0 && len(d.LogProb) != n {
		return fmt.Errorf("%d log-probabilities of %d actions; they are to be recorded", len(d.LogProb), n)
	}
	return nil
}

func (r *rows) takesColumn(what string, p *part, t *tensor.Tensor, n int) error {
	if p.size > 0 && (t == nil || t.DType() != p.col.DType || len(t.Bytes()) != n*p.size) {
		return fmt.Errorf("%s %v, expected %v[%d %v]", what, t, p.col.DType, n, p.col.Shape)
	}
	return nil
}

// putDecision writes what was decided in environment e into row i; a are the actions.
func (r *rows) putDecision(i, e int, d *vector.Decision, a *tensor.Tensor) {
	row := r.row(i)
	put := func(p *part, t *tensor.Tensor) {
		if p.size > 0 {
			copy(row[p.off:p.off+p.size], t.Bytes()[e*p.size:])
		}
	}
	put(&r.action, a)
	put(&r.logits, d.Logits)
	put(&r.skill, d.Skill)
	if r.logProb.size > 0 {
		r.setFloat(i, r.logProb, d.LogProb[e])
	}
}

// putStep writes what the step of environment e has led to, besides observations, into row i.
func (r *rows) putStep(i, e int, b *vector.Batch) {
	r.setFloat(i, r.reward, float32(b.Reward[e]))
	r.setFloat(i, r.discount, float32(b.Discount[e]))
	for k := range r.cost.size / 4 {
		binary.LittleEndian.PutUint32(r.data[i*r.stride+r.cost.off+4*k:], math.Float32bits(float32(b.Costs[e][k])))
	}
}

// addCosts adds the costs of row i, multiplied by a product of discounts, to row at of a batch's.
func (r *rows) addCosts(t *tensor.Tensor, at, i int, product float64) {
	if t == nil {
		return
	}
	n := r.cost.size / 4
	for k, to := 0, t.Float32s()[at*n:][:n]; k < n; k++ {
		to[k] += float32(product * float64(float32At(r.data, i*r.stride+r.cost.off+4*k)))
	}
}

// putObs writes the observation of environment e into row i: obs has the bytes of each field's
// batch, or for a window last its rows.
func (r *rows) putObs(i, e int, obs []*tensor.Tensor, last [][]int64) {
	row := r.row(i)
	for f := range r.obs {
		p := &r.obs[f]
		if p.window != nil {
			binary.LittleEndian.PutUint32(row[p.off:], uint32(last[f][e]))
			continue
		}
		copy(row[p.off:p.off+p.size], obs[f].Bytes()[e*p.size:])
	}
}

// putMask writes the mask of environment e into row i.
func (r *rows) putMask(i, e int, mask *tensor.Tensor) {
	if n := r.mask.size; n > 0 {
		copy(r.row(i)[r.mask.off:r.mask.off+n], mask.Bytes()[e*n:])
	}
}

// shows reports whether row i holds the observation of environment e.
func (r *rows) shows(i, e int, obs []*tensor.Tensor, last [][]int64) bool {
	row := r.row(i)
	for f := range r.obs {
		p := &r.obs[f]
		if p.window != nil {
			if binary.LittleEndian.Uint32(row[p.off:]) != uint32(last[f][e]) {
				return false
			}
			continue
		}
		if string(row[p.off:p.off+p.size]) != string(obs[f].Bytes()[e*p.size:(e+1)*p.size]) {
			return false
		}
	}
	return true
}

// accepts checks that a batch can be filled and returns its number of rows.
func (r *rows) accepts(b *Batch) (n int, err error) {
	n = len(b.Reward)
	if n == 0 || len(b.Discount) != n {
		return 0, fmt.Errorf("a batch of %d rewards and %d discounts, expected as many, and at least one", n, len(b.Reward))
	}
	fits := func(t *tensor.Tensor, p *part, what string) {
		if t != nil && err == nil && (t.DType() != p.col.DType || len(t.Bytes()) != n*p.full) {
			err = fmt.Errorf("%s %q into %v, expected %v[%d %v]", what, p.col.Name, t, p.col.DType, n, p.col.Shape)
		}
	}
	for _, list := range [2][]*tensor.Tensor{b.Obs, b.NextObs} {
		if len(list) != 0 && len(list) != len(r.obs) {
			return 0, fmt.Errorf("a batch of %d observations, expected %d", len(list), len(r.obs))
		}
		for f, t := range list {
			fits(t, &r.obs[f], "observation")
		}
	}
	for _, list := range [2][][]int64{b.Rows, b.NextRows} {
		for f, numbers := range list {
			if numbers != nil && err == nil && (f >= len(r.obs) || r.obs[f].window == nil || len(numbers) != n) {
				err = fmt.Errorf("%d rows of observation %d into a batch of %d, expected those of a window", len(numbers), f, n)
			}
		}
	}
	switch missing := " are asked for and not recorded"; {
	case (b.Mask != nil || b.NextMask != nil) && r.mask.size == 0:
		err = errors.New("masks" + missing)
	case b.LogProb != nil && r.logProb.size == 0:
		err = errors.New("log-probabilities" + missing)
	case b.Logits != nil && r.logits.size == 0:
		err = errors.New("logits" + missing)
	case b.Skill != nil && r.skill.size == 0:
		err = errors.New("skills" + missing)
	case b.Cost != nil && r.cost.size == 0:
		err = errors.New("costs" + missing)
	case (b.Policy != nil || b.Time != nil) && r.time.size == 0:
		err = errors.New("policies and times" + missing)
	}
	fits(b.Mask, &r.mask, "column")
	fits(b.NextMask, &r.mask, "column")
	fits(b.Action, &r.action, "column")
	fits(b.Logits, &r.logits, "column")
	fits(b.Skill, &r.skill, "column")
	fits(b.Cost, &r.cost, "column")
	for _, k := range [6]int{len(b.LogProb), len(b.Weight), len(b.Index), len(b.Policy), len(b.Time), len(b.Ended)} {
		if k != 0 && k != n && err == nil {
			err = fmt.Errorf("columns of %d and of %d samples in one batch", n, k)
		}
	}
	return n, err
}

// block is the number of rows that are gathered together: few enough for the first cache, so that a
// row is fetched once for all of its columns.
const block = 64

// gather copies what a batch wants of the rows that begin at these bytes. next are the rows of the
// following observations. Rewards, costs, and discounts multiplied by gamma, are those of single
// steps unless gamma is negative; then they are not touched. It returns something that depends on
// all rows that were fetched ahead, so that no compiler takes the reads for useless.
func (r *rows) gather(b *Batch, at, next []int, gamma float32) (touched byte) {
	for lo := 0; lo < len(at); lo += block {
		hi := min(lo+block, len(at))
		at, next := at[lo:hi], next[lo:hi]
		if len(r.data) > cached {
			touched += r.touch(at, r.stride) + r.touch(next, r.head)
		}
		for f, t := range b.Obs {
			r.column(t, &r.obs[f], at, lo)
		}
		for f, t := range b.NextObs {
			r.column(t, &r.obs[f], next, lo)
		}
		for f, numbers := range b.Rows {
			r.numbers(numbers, &r.obs[f], at, lo)
		}
		for f, numbers := range b.NextRows {
			r.numbers(numbers, &r.obs[f], next, lo)
		}
		r.column(b.Mask, &r.mask, at, lo)
		r.column(b.NextMask, &r.mask, next, lo)
		r.column(b.Action, &r.action, at, lo)
		r.column(b.Logits, &r.logits, at, lo)
		r.column(b.Skill, &r.skill, at, lo)
		if gamma >= 0 {
			r.column(b.Cost, &r.cost, at, lo)
			reward, discount := b.Reward[lo:hi], b.Discount[lo:hi]
			src := r.data[r.reward.off:]
			for i, k := range at {
				// The discount lies behind the reward.
				both := binary.LittleEndian.Uint64(src[k:])
				reward[i], discount[i] = math.Float32frombits(uint32(both)), gamma*math.Float32frombits(uint32(both>>32))
			}
		}
		if b.LogProb != nil {
			for i, k := range at {
				b.LogProb[lo+i] = float32At(r.data, k+r.logProb.off)
			}
		}
		if b.Time != nil {
			for i, k := range at {
				b.Time[lo+i] = int64(binary.LittleEndian.Uint64(r.data[k+r.time.off:]))
			}
		}
	}
	return touched
}

// numbers copies the numbers of the last rows of windows into dst, from its element first on,
// unless it is nil.
func (r *rows) numbers(dst []int64, p *part, at []int, first int) {
	if dst == nil {
		return
	}
	src := r.data[p.off:]
	for i, k := range at {
		dst[first+i] = int64(binary.LittleEndian.Uint32(src[k:]))
	}
}

// column copies one column of the rows into t, from its row first on, unless it is nil.
func (r *rows) column(t *tensor.Tensor, p *part, at []int, first int) {
	if t == nil {
		return
	}
	dst, src, size := t.Bytes()[first*p.full:], r.data[p.off:], p.size
	if p.window != nil {
		for _, k := range at {
			dst = dst[copy(dst, p.window.At(int(binary.LittleEndian.Uint32(src[k:]))).Bytes()):]
		}
		return
	}
	// Calls of memmove cost more than such columns.
	switch size {
	case 4:
		for i, k := range at {
			binary.LittleEndian.PutUint32(dst[4*i:], binary.LittleEndian.Uint32(src[k:]))
		}
	case 8:
		for i, k := range at {
			binary.LittleEndian.PutUint64(dst[8*i:], binary.LittleEndian.Uint64(src[k:]))
		}
	case 16, 24, 32:
		for i, k := range at {
			from, to := src[k:k+size], dst[i*size:(i+1)*size]
			for len(from) >= 8 && len(to) >= 8 {
				binary.LittleEndian.PutUint64(to, binary.LittleEndian.Uint64(from))
				from, to = from[8:], to[8:]
			}
		}
	default:
		for i, k := range at {
			copy(dst[i*size:(i+1)*size], src[k:k+size])
		}
	}
}

// touch reads a byte of every cache line of the first bytes of the rows, in a loop short enough
// that the processor waits for many at once. The copies then find them in the cache.
func (r *rows) touch(at []int, bytes int) (sum byte) {
	for line := 0; line < bytes; line += tensor.Align {
		src := r.data[line:]
		for _, k := range at {
			sum += src[k]
		}
	}
	return sum
}

// cached is the size of a table that processors keep in their caches, from where nothing need be
// fetched ahead.
const cached = 4 << 20

// close frees the rows.
func (r *rows) close() error {
	r.data = nil
	return r.arena.Close()
}
