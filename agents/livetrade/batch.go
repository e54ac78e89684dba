package livetrade

import (
	"strconv"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/stream"
	"github.com/onnxrl/onnxrl/runtime/spans"
)

// Topic is what a record is of. Sinks name it as they are configured to.
type Topic int

// The topics, in the order of a batch. Positions are last: whoever has them has the whole batch.
const (
	Fills Topic = iota
	RiskEvents
	Signals
	Orders
	Positions
	// Topics is the number of topics.
	Topics
)

var topicNames = [Topics]string{"fills", "risk.events", "signals", "orders", "positions"}

// String returns the name, such as risk.events.
func (t Topic) String() string { return topicNames[t] }

// Record is published under a key: the symbol, or the name of the service.
type Record struct {
	Topic      Topic
	Key        string
	begin, end int // of the batch's text
}

// Batch is what one event publishes. Its memory is used again by the next one.
type Batch struct {
	// Seq counts batches from 1.
	Seq     uint64
	Time    time.Time // of the bars
	Records []Record
	// Trace names the trace of the decision; it is empty without one.
	Trace spans.Carrier
	text  []byte
	head  []byte // what every record begins with
	id    []byte // of an order, while it is written
}

// Value is the JSON of a record.
func (b *Batch) Value(r *Record) []byte { return b.text[r.begin:r.end] }

// Clone copies a batch.
func (b *Batch) Clone() *Batch {
	return &Batch{Seq: b.Seq, Time: b.Time, Trace: b.Trace, Records: append([]Record(nil), b.Records...), text: append([]byte(nil), b.text...)}
}

func (b *Batch) reset(seq uint64, at time.Time) {
	b.Seq, b.Time, b.Records, b.text = seq, at, b.Records[:0], b.text[:0]
	b.head = append(b.head[:0], `{"v":1,"seq":`...)
	b.head = strconv.AppendUint(b.head, seq, 10)
	b.head = append(b.head, `,"time":"`...)
	b.head = at.AppendFormat(b.head, time.DateTime)
	b.head = append(b.head, '"')
}

// begin begins a record: an object with the version of its schema, the number of the batch and the
// time of the last bars.
func (b *Batch) begin(t Topic, key string) {
	b.Records = append(b.Records, Record{Topic: t, Key: key, begin: len(b.text)})
	b.text = append(b.text, b.head...)
}

func (b *Batch) end() {
	b.text = append(b.text, '}')
	b.Records[len(b.Records)-1].end = len(b.text)
}

func (b *Batch) key(key string) {
	if c := b.text[len(b.text)-1]; c != '{' {
		b.text = append(b.text, ',')
	}
	b.text = stream.AppendText(b.text, key)
	b.text = append(b.text, ':')
}

func (b *Batch) str(key, value string) {
	b.key(key)
	b.text = stream.AppendText(b.text, value)
}

// num writes a number to the bit. What is none is null.
func (b *Batch) num(key string, v float64) {
	b.key(key)
	if v-v != 0 {
		b.text = append(b.text, "null"...)
		return
	}
	b.text = strconv.AppendFloat(b.text, v, 'g', -1, 64)
}

func (b *Batch) flag(key string, v bool) {
	b.key(key)
	b.text = strconv.AppendBool(b.text, v)
}

func (b *Batch) list(key string, values []string) {
	b.key(key)
	b.text = append(b.text, '[')
	for i, v := range values {
		if i > 0 {
			b.text = append(b.text, ',')
		}
		b.text = stream.AppendText(b.text, v)
	}
	b.text = append(b.text, ']')
}

func (b *Batch) open(key string) {
	b.key(key)
	b.text = append(b.text, '{')
}

func (b *Batch) close() { b.text = append(b.text, '}') }
