package flight

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// samples draws the samples of one stream, always into the same record batch.
type samples struct {
	t       *table
	c       SampleCommand
	sampler *replay.Sampler
	own     *rng.Stream // of requests without a seed
	stream  rng.Stream
	batch   replay.Batch
	record  arrow.Record
	schema  *arrow.Schema
}

// newSamples makes the batch of a command. The table has a store.
func newSamples(t *table, c SampleCommand, own *rng.Stream) (*samples, error) {
	if c.Batch < 1 || c.Batch > t.c.Capacity {
		return nil, invalid("a batch of %d transitions, expected 1 to the capacity of %d", c.Batch, t.c.Capacity)
	}
	if c.NSteps > MaxSteps || c.Length > c.Batch {
		return nil, invalid("returns of %d steps and sequences of %d of %d transitions, expected at most %d steps, and sequences that the batch holds", c.NSteps, c.Length, c.Batch, MaxSteps)
	}
	// A transition has at most two observations and masks, and 64 bytes of its own.
	if row := 2*t.shared.RowBytes() + 64; c.Batch > MaxSample/row {
		return nil, invalid("a batch of %d transitions of about %d bytes, expected at most %d bytes", c.Batch, row, MaxSample)
	}
	gamma := 1.0
	if c.Gamma != nil {
		gamma = *c.Gamma
	}
	draws := replay.SamplerConfig{NSteps: c.NSteps, Gamma: gamma, Mix: t.c.Mix, HalfLife: t.c.HalfLife, Beta: t.c.Beta, Ranked: t.c.Selector == Prioritised, Fresh: true}
	if c.Mix != nil {
		draws.Mix = c.Mix
	}
	if c.HalfLife > 0 {
		draws.HalfLife = c.HalfLife
	}
	p, err := t.shared.NewSampler(draws)
	if err != nil {
		return nil, invalid("%v", err)
	}
	s := &samples{t: t, c: c, sampler: p, own: own}
	l, err := layoutOf(t.schema)
	if err != nil {
		return nil, err
	}
	var fields []arrow.Field
	var arrays []arrow.Array
	left := slices.Clone(c.Columns)
	// column makes a column, where it is wanted, and one of the batch in any case for the others.
	column := func(name string, d tensor.DType, shape ...int) *tensor.Tensor {
		x := tensor.New(d, append([]int{c.Batch}, shape...)...)
		if i := slices.Index(left, name); i >= 0 {
			left = slices.Delete(left, i, i+1)
		} else if len(c.Columns) > 0 {
			return nil
		}
		var at arrow.DataType = arrowType[d]
		buf := memory.NewBufferBytes(x.Bytes())
		data := array.NewData(at, c.Batch, []*memory.Buffer{nil, buf}, nil, 0, 0)
		if len(shape) > 0 {
			n := x.Len() / c.Batch
			child := array.NewData(at, c.Batch*n, []*memory.Buffer{nil, buf}, nil, 0, 0)
			at = arrow.FixedSizeListOfNonNullable(int32(n), at)
			data = array.NewData(at, c.Batch, []*memory.Buffer{nil}, []arrow.ArrayData{child}, 0, 0)
		}
		fields, arrays = append(fields, arrow.Field{Name: name, Type: at}), append(arrays, array.MakeFromData(data))
		return x
	}
	b := &s.batch
	for _, o := range l.Obs {
		b.Obs = append(b.Obs, column(obsPrefix+o.Name, o.DType, o.Shape...))
	}
	for _, o := range l.Obs {
		b.NextObs = append(b.NextObs, column(nextPrefix+o.Name, o.DType, o.Shape...))
	}
	if l.Mask > 0 {
		b.Mask, b.NextMask = column("mask", tensor.Bool, l.Mask), column("next_mask", tensor.Bool, l.Mask)
	}
	b.Action = column("action", l.Action.DType, l.Action.Shape...)
	floats := func(name string) []float32 {
		if x := column(name, tensor.Float32); x != nil {
			return x.Float32s()
		}
		return nil
	}
	// Of a sample these are always computed.
	if b.Reward = floats("reward"); b.Reward == nil {
		b.Reward = make([]float32, c.Batch)
	}
	if b.Discount = floats("discount"); b.Discount == nil {
		b.Discount = make([]float32, c.Batch)
	}
	if l.LogProb {
		b.LogProb = floats("log_prob")
	}
	if l.Logits > 0 {
		b.Logits = column("logits", tensor.Float32, l.Logits)
	}
	if l.Skill != nil {
		b.Skill = column("skill", l.Skill.DType, l.Skill.Shape...)
	}
	if l.Costs > 0 {
		b.Cost = column("cost", tensor.Float32, l.Costs)
	}
	b.Weight = floats("weight")
	if x := column("key", tensor.Int64); x != nil {
		b.Index = x.Int64s()
	}
	if x := column("policy", tensor.Int32); x != nil {
		b.Policy = x.Int32s()
	}
	if x := column("time", tensor.Int64); x != nil {
		b.Time = x.Int64s()
	}
	if x := column("ended", tensor.Bool); x != nil {
		b.Ended = x.Bools()
	}
	if len(left) > 0 {
		return nil, invalid("the table %s has no columns %q to sample", t.name, left)
	}
	s.schema = arrow.NewSchema(fields, nil)
	s.record = array.NewRecord(s.schema, arrays, int64(c.Batch))
	return s, nil
}

// arrowType are the types of columns on the wire.
var arrowType = map[tensor.DType]arrow.DataType{
	tensor.Float32: arrow.PrimitiveTypes.Float32, tensor.Float64: arrow.PrimitiveTypes.Float64, tensor.Bool: arrow.PrimitiveTypes.Uint8,
	tensor.Int8: arrow.PrimitiveTypes.Int8, tensor.Int16: arrow.PrimitiveTypes.Int16, tensor.Int32: arrow.PrimitiveTypes.Int32, tensor.Int64: arrow.PrimitiveTypes.Int64,
	tensor.Uint8: arrow.PrimitiveTypes.Uint8, tensor.Uint16: arrow.PrimitiveTypes.Uint16, tensor.Uint32: arrow.PrimitiveTypes.Uint32, tensor.Uint64: arrow.PrimitiveTypes.Uint64,
}

// draw fills the record batch.
func (s *samples) draw(q *SampleRequest) error {
	from := s.own
	if q.Seed != nil {
		s.stream.Seed(rng.New(*q.Seed))
		from = &s.stream
	}
	if q.Beta > 0 {
		s.sampler.SetBeta(q.Beta)
	}
	var err error
	if s.c.Length > 0 {
		err = s.sampler.SampleSequences(from, &s.batch, s.c.Length)
	} else {
		err = s.sampler.Sample(from, &s.batch)
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", s.t.name, err)
	}
	return nil
}
