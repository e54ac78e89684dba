package flight

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Store is the place of a learner in a server's table. Of windows of a table of the environment,
// which the server does not have, only the numbers of their rows travel.
func (c *Client) Store() replay.Store { return &place{c} }

type place struct{ c *Client }

// Identity implements agents.Replay: the table, wherever its server is.
func (p *place) Identity() string { return "flight table " + p.c.c.Table }

// Open implements replay.Store.
func (p *place) Open(l replay.Layout, c replay.Config) (replay.Buffer, error) {
	if err := checkReturns(c.NSteps, c.Gamma); err != nil {
		return nil, err
	}
	b := &buffer{c: p.c, l: l, envs: c.Envs, action: c.Action, nSteps: max(1, c.NSteps), gamma: c.Gamma}
	b.Reference = replay.Reference{Store: p.Identity(), Clock: func() int64 { return b.clock }}
	if err := b.columns(); err != nil {
		return nil, err
	}
	cmd := PutCommand{Table: p.c.c.Table, Writer: p.c.c.Writer, Policy: p.c.c.Policy, Envs: c.Envs}
	if cmd.Writer == "" {
		cmd.Writer = "run-" + rand.Text()
	}
	var err error
	if b.w, err = p.c.Writer(cmd, b.schema); err != nil {
		return nil, err
	}
	s, err := p.c.Stats(cmd.Table)
	if err != nil {
		return nil, errors.Join(err, b.w.Close())
	}
	b.size, b.clock = s.Size, s.Clock
	switch s.Selector {
	case FIFO:
		return nil, errors.Join(fmt.Errorf("the table %s is a queue, expected one that can be sampled", cmd.Table), b.w.Close())
	case Prioritised:
		return &ranked{b}, nil
	}
	return b, nil
}

func checkReturns(nSteps int, gamma float64) error {
	if nSteps < 0 || !(gamma >= 0 && gamma <= 1) {
		return fmt.Errorf("replay: returns of %d steps and gamma %g; expected no negative number, and gamma between 0 and 1", nSteps, gamma)
	}
	return nil
}

// sent columns.
type column struct {
	name string
	typ  arrow.DataType
	size int
	b    []byte
}

// buffer is a learner's replay in a table. It implements replay.Sharer.
type buffer struct {
	replay.Reference
	c      *Client
	l      replay.Layout
	envs   int
	action func(*vector.Decision) *tensor.Tensor
	nSteps int
	gamma  float64

	w      *Writer
	schema *arrow.Schema
	// cols are the rows that have not been sent, in the columns of the schema but env and kind.
	cols                                 []column
	mask, act, reward, discount, logProb int // places in cols; −1 without
	logits, skill, cost                  int
	env                                  []int32
	kind                                 []byte
	// shown is the number of rows at the end that show what follows, and at is the first row of the
	// round that has begun.
	shown, at int
	took      []bool
	open      bool
	rounds    int

	r    *Reader
	cmd  SampleCommand
	beta float64
	// lost is what Len could not say.
	lost  error
	size  int
	clock int64
}

var _ replay.Sharer = (*buffer)(nil)

// columns makes the schema.
func (b *buffer) columns() error {
	var fields []arrow.Field
	add := func(name string, d tensor.DType, shape []int) int {
		t, n := arrowType[d], 1
		for _, k := range shape {
			n *= k
		}
		if len(shape) > 0 {
			t = arrow.FixedSizeListOfNonNullable(int32(n), t)
		}
		fields = append(fields, arrow.Field{Name: name, Type: t})
		b.cols = append(b.cols, column{name: name, typ: t, size: d.Size() * n})
		return len(b.cols) - 1
	}
	for f, o := range b.l.Obs {
		if arrowType[o.DType] == nil {
			return fmt.Errorf("observation %q of %v: a table has numbers", o.Name, o.DType)
		}
		if b.window(f) != nil {
			add(obsPrefix+o.Name, tensor.Int32, nil)
			continue
		}
		add(obsPrefix+o.Name, o.DType, o.Shape)
	}
	if arrowType[b.l.Action.DType] == nil {
		return fmt.Errorf("actions of %v: a table has numbers", b.l.Action.DType)
	}
	b.mask, b.logProb, b.logits, b.skill, b.cost = -1, -1, -1, -1, -1
	if b.l.Mask > 0 {
		b.mask = add("mask", tensor.Bool, []int{b.l.Mask})
	}
	b.act = add("action", b.l.Action.DType, b.l.Action.Shape)
	b.reward, b.discount = add("reward", tensor.Float32, nil), add("discount", tensor.Float32, nil)
	if b.l.LogProb {
		b.logProb = add("log_prob", tensor.Float32, nil)
	}
	if b.l.Logits > 0 {
		b.logits = add("logits", tensor.Float32, []int{b.l.Logits})
	}
	if b.l.Skill != nil {
		b.skill = add("skill", b.l.Skill.DType, b.l.Skill.Shape)
	}
	if b.l.Costs > 0 {
		b.cost = add("cost", tensor.Float32, []int{b.l.Costs})
	}
	fields = append(fields, arrow.Field{Name: "env", Type: arrow.PrimitiveTypes.Int32}, arrow.Field{Name: "kind", Type: arrow.PrimitiveTypes.Uint8})
	b.schema = arrow.NewSchema(fields, nil)
	return nil
}

func (b *buffer) window(f int) *envs.Window {
	if f < len(b.l.Windows) {
		return b.l.Windows[f]
	}
	return nil
}

// row appends a row that shows an environment; the rest is 0.
func (b *buffer) row(e int, kind byte, obs []*tensor.Tensor, last [][]int64, mask *tensor.Tensor) {
	b.env, b.kind = append(b.env, int32(e)), append(b.kind, kind)
	for i := range b.cols {
		c := &b.cols[i]
		switch {
		case i < len(b.l.Obs) && b.window(i) != nil:
			c.b = binary.LittleEndian.AppendUint32(c.b, uint32(last[i][e]))
		case i < len(b.l.Obs):
			c.b = append(c.b, obs[i].Bytes()[e*c.size:(e+1)*c.size]...)
		case i == b.mask:
			c.b = append(c.b, mask.Bytes()[e*c.size:(e+1)*c.size]...)
		default:
			c.b = append(c.b, make([]byte, c.size)...)
		}
	}
}

// cut takes the last rows away.
func (b *buffer) cut(n int) {
	to := len(b.kind) - n
	b.env, b.kind = b.env[:to], b.kind[:to]
	for i := range b.cols {
		b.cols[i].b = b.cols[i].b[:to*b.cols[i].size]
	}
}

// Begin implements agents.Recorder.
func (b *buffer) Begin(x *vector.Batch, d *vector.Decision) error {
	a := d.Actions
	if b.action != nil {
		a = b.action(d)
	}
	if b.open || len(x.Type) != b.envs || a == nil || len(a.Bytes()) != b.envs*b.cols[b.act].size || b.logProb >= 0 && len(d.LogProb) != b.envs {
		return fmt.Errorf("replay: record: a round of %d environments with actions %v, expected %d with %v, after the end of the one before", len(x.Type), a, b.envs, b.l.Action)
	}
	b.took = b.took[:0]
	for e := range b.envs {
		b.took = append(b.took, x.Present == nil || x.Present[e])
	}
	// This round repeats what the last one has shown, unless an environment was reset in between:
	// the server sees that by both.
	if b.shown > 0 {
		shown := b.shown
		before := len(b.kind) - shown
		for e := range b.envs {
			b.row(e, replay.RowNext, x.Obs, x.Rows, x.Mask)
		}
		same := shown == b.envs && x.Present == nil
		for i := range b.cols {
			c := &b.cols[i]
			if i < len(b.l.Obs) && same {
				same = string(c.b[before*c.size:(before+shown)*c.size]) == string(c.b[(before+shown)*c.size:])
			}
		}
		b.cut(b.envs)
		if same {
			b.cut(shown)
		}
		b.shown = 0
	}
	b.at = len(b.kind)
	for e, here := range b.took {
		if !here {
			continue
		}
		b.row(e, replay.RowTransition, x.Obs, x.Rows, x.Mask)
		put := func(i int, t *tensor.Tensor) {
			if i >= 0 {
				c := &b.cols[i]
				copy(c.b[len(c.b)-c.size:], t.Bytes()[e*c.size:(e+1)*c.size])
			}
		}
		put(b.act, a)
		put(b.logits, d.Logits)
		put(b.skill, d.Skill)
		if b.logProb >= 0 {
			b.float(b.logProb, len(b.kind)-1, 0, d.LogProb[e])
		}
	}
	b.open = true
	return nil
}

func (b *buffer) float(i, row, k int, x float32) {
	c := &b.cols[i]
	binary.LittleEndian.PutUint32(c.b[row*c.size+4*k:], math.Float32bits(x))
}

// End implements agents.Recorder.
func (b *buffer) End(x *vector.Batch) error {
	if !b.open {
		return errors.New("replay: record: ended without a beginning")
	}
	row := b.at
	for e, here := range b.took {
		if !here {
			continue
		}
		b.float(b.reward, row, 0, float32(x.Reward[e]))
		b.float(b.discount, row, 0, float32(x.Discount[e]))
		if b.cost >= 0 {
			for k, v := range x.Costs[e] {
				b.float(b.cost, row, k, float32(v))
			}
		}
		row++
	}
	for e, here := range b.took {
		if here && x.Type[e] == envs.Last {
			b.row(e, replay.RowFinal, x.Final, x.FinalRows, x.FinalMask)
		}
	}
	for e, here := range b.took {
		if here {
			b.row(e, replay.RowNext, x.Obs, x.Rows, x.Mask)
			b.shown++
		}
	}
	b.open = false
	b.Recorded++
	if b.rounds++; b.rounds < b.c.c.Rounds && len(b.kind)*b.rowBytes() < sendBytes {
		return nil
	}
	return b.send()
}

// sendBytes is the size from which rounds are sent, whatever their number: a message has a largest
// size.
const sendBytes = 8 << 20

func (b *buffer) rowBytes() (n int) {
	for i := range b.cols {
		n += b.cols[i].size
	}
	return n
}

// send sends the rounds that have ended.
func (b *buffer) send() error {
	if len(b.kind) == 0 || b.open {
		return nil
	}
	n := len(b.kind)
	var list []arrow.Array
	of := func(t arrow.DataType, x []byte) {
		buf := memory.NewBufferBytes(append([]byte(nil), x...))
		if l, ok := t.(*arrow.FixedSizeListType); ok {
			child := array.NewData(l.Elem(), n*int(l.Len()), []*memory.Buffer{nil, buf}, nil, 0, 0)
			list = append(list, array.MakeFromData(array.NewData(t, n, []*memory.Buffer{nil}, []arrow.ArrayData{child}, 0, 0)))
			return
		}
		list = append(list, array.MakeFromData(array.NewData(t, n, []*memory.Buffer{nil, buf}, nil, 0, 0)))
	}
	for i := range b.cols {
		of(b.cols[i].typ, b.cols[i].b)
	}
	of(arrow.PrimitiveTypes.Int32, arrow.Int32Traits.CastToBytes(b.env))
	of(arrow.PrimitiveTypes.Uint8, b.kind)
	rec := array.NewRecord(b.schema, list, int64(n))
	defer rec.Release()
	b.cut(n)
	b.shown, b.rounds = 0, 0
	return b.w.Put(rec, nil)
}

// Len implements replay.Buffer. What was recorded is counted, also if it is still under way, unless
// samples are drawn ahead.
func (b *buffer) Len() int {
	if b.c.c.Prefetch == 0 {
		if err := b.Flush(); err != nil && b.lost == nil {
			b.lost = err
		}
	}
	if s, err := b.c.Stats(b.c.c.Table); err == nil {
		b.size, b.clock = s.Size, s.Clock
	}
	return b.size
}

// Policy implements replay.Sharer.
func (b *buffer) Policy() int32 { return b.c.c.Policy }

// Clock implements replay.Sharer.
func (b *buffer) Clock() int64 { return b.clock }

// SetReturns implements replay.Buffer.
func (b *buffer) SetReturns(nSteps int, gamma float64) error {
	if err := checkReturns(nSteps, gamma); err != nil {
		return err
	}
	b.nSteps, b.gamma = nSteps, gamma
	return nil
}

// Sample implements replay.Buffer. It waits for the server's rate.
func (b *buffer) Sample(s *rng.Stream, x *replay.Batch) error {
	return b.sample(s, x, 0)
}

// SampleSequences implements replay.Buffer.
func (b *buffer) SampleSequences(s *rng.Stream, x *replay.Batch, length int) error {
	if length < 1 || len(x.Reward)%length != 0 {
		return fmt.Errorf("replay: sample sequences: sequences of %d transitions in a batch of %d", length, len(x.Reward))
	}
	return b.sample(s, x, length)
}

func (b *buffer) sample(s *rng.Stream, x *replay.Batch, length int) error {
	if err := b.send(); err != nil {
		return err
	}
	if b.c.c.Prefetch == 0 {
		if err := b.w.Flush(); err != nil {
			return err
		}
	}
	cmd := SampleCommand{Table: b.c.c.Table, Batch: len(x.Reward), Length: length, NSteps: b.nSteps, Gamma: &b.gamma}
	if b.r == nil || cmd.Batch != b.cmd.Batch || cmd.Length != b.cmd.Length || cmd.NSteps != b.cmd.NSteps || *cmd.Gamma != *b.cmd.Gamma {
		if b.r != nil {
			b.r.Close()
		}
		gamma := b.gamma
		cmd.Gamma = &gamma
		var err error
		if b.r, err = b.c.Reader(cmd); err != nil {
			return err
		}
		b.cmd = cmd
	}
	for b.r.Asked() <= b.c.c.Prefetch {
		seed := s.Uint64()
		if err := b.r.Ask(SampleRequest{Seed: &seed, Beta: b.beta}); err != nil {
			return err
		}
	}
	rec, about, err := b.r.Next()
	if err != nil {
		return err
	}
	b.size, b.clock = about.Size, about.Clock
	return b.take(rec, x)
}

// take copies a sample into a batch.
func (b *buffer) take(rec arrow.Record, x *replay.Batch) error {
	n := len(x.Reward)
	if int(rec.NumRows()) != n {
		return fmt.Errorf("replay: a sample of %d transitions, expected %d", rec.NumRows(), n)
	}
	var fault error
	bytes := func(name string, size int) []byte {
		i := rec.Schema().FieldIndices(name)
		if len(i) != 1 {
			fault = fmt.Errorf("replay: the table's samples have no column %q", name)
			return nil
		}
		d := rec.Column(i[0]).Data()
		if len(d.Children()) == 1 {
			d = d.Children()[0]
		}
		if len(d.Buffers()) < 2 || d.Buffers()[1] == nil || d.Offset() != 0 || len(d.Buffers()[1].Bytes()) < size {
			fault = fmt.Errorf("replay: column %q of a sample has not the %d bytes of %d transitions", name, size, n)
			return nil
		}
		return d.Buffers()[1].Bytes()[:size]
	}
	tensorOf := func(name string, t *tensor.Tensor) {
		if t != nil {
			copy(t.Bytes(), bytes(name, len(t.Bytes())))
		}
	}
	observation := func(prefix string, list []*tensor.Tensor, rows [][]int64) {
		for f := range b.l.Obs {
			w := b.window(f)
			if w == nil {
				if f < len(list) {
					tensorOf(prefix+b.l.Obs[f].Name, list[f])
				}
				continue
			}
			numbers := bytes(prefix+b.l.Obs[f].Name, 4*n)
			if numbers == nil {
				return
			}
			for i := range n {
				row := int(binary.LittleEndian.Uint32(numbers[4*i:]))
				if row < w.Len()-1 || row >= w.Table().Shape()[0] {
					fault = fmt.Errorf("replay: a window that ends with row %d of %d", row, w.Table().Shape()[0])
					return
				}
				if f < len(rows) && rows[f] != nil {
					rows[f][i] = int64(row)
				}
				if f < len(list) && list[f] != nil {
					one := w.At(row).Bytes()
					copy(list[f].Bytes()[i*len(one):], one)
				}
			}
		}
	}
	floats := func(name string, to []float32) {
		if to == nil {
			return
		}
		for i, c := 0, bytes(name, 4*n); i < len(c)/4; i++ {
			to[i] = math.Float32frombits(binary.LittleEndian.Uint32(c[4*i:]))
		}
	}
	longs := func(name string, to []int64) {
		if to == nil {
			return
		}
		for i, c := 0, bytes(name, 8*n); i < len(c)/8; i++ {
			to[i] = int64(binary.LittleEndian.Uint64(c[8*i:]))
		}
	}
	observation(obsPrefix, x.Obs, x.Rows)
	observation(nextPrefix, x.NextObs, x.NextRows)
	tensorOf("mask", x.Mask)
	tensorOf("next_mask", x.NextMask)
	tensorOf("action", x.Action)
	floats("reward", x.Reward)
	floats("discount", x.Discount)
	floats("log_prob", x.LogProb)
	tensorOf("logits", x.Logits)
	tensorOf("skill", x.Skill)
	tensorOf("cost", x.Cost)
	floats("weight", x.Weight)
	longs("key", x.Index)
	longs("time", x.Time)
	if x.Policy != nil {
		for i, c := 0, bytes("policy", 4*n); i < len(c)/4; i++ {
			x.Policy[i] = int32(binary.LittleEndian.Uint32(c[4*i:]))
		}
	}
	if x.Ended != nil {
		for i, c := range bytes("ended", n) {
			x.Ended[i] = c != 0
		}
	}
	return fault
}

// Flush sends the rounds that have ended, and returns when the server has everything on its disk.
func (b *buffer) Flush() error { return errors.Join(b.send(), b.w.Flush()) }

// SaveState implements checkpoint.Stater: the server has everything on its disk then.
func (b *buffer) SaveState(w *checkpoint.Writer) error {
	if err := b.Flush(); err != nil {
		return err
	}
	b.clock = max(b.clock, b.w.Clock())
	return b.Reference.SaveState(w)
}

// LoadState implements checkpoint.Stater.
func (b *buffer) LoadState(r *checkpoint.Reader) error {
	s, err := b.c.Stats(b.c.c.Table)
	if err != nil {
		return err
	}
	b.clock = s.Clock
	return b.Reference.LoadState(r)
}

// Close implements replay.Buffer. The client stays open.
func (b *buffer) Close() error {
	err := errors.Join(b.lost, b.send(), b.w.Close())
	if b.r != nil {
		err = errors.Join(err, b.r.Close())
	}
	return err
}

// ranked is a buffer of a table with priorities.
type ranked struct{ *buffer }

var _ replay.Updater = (*ranked)(nil)

// SetPriorities implements replay.Updater: alpha and eps are the table's.
func (r *ranked) SetPriorities(replay.Priorities) error { return nil }

// SetBeta implements replay.Updater.
func (r *ranked) SetBeta(beta float64) { r.beta = beta }

// Update implements replay.Updater.
func (r *ranked) Update(index []int64, errs []float32) error {
	_, err := r.c.Act(ActionPriorities, PriorityUpdate{Table: r.c.c.Table, Keys: index, Errors: errs})
	return r.c.explain(r.c.c.Table, err)
}
