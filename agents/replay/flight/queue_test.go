package flight

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// queueOf opens the queue of a folder.
func queueOf(t *testing.T, dir string) *queue {
	t.Helper()
	var c TableConfig
	c.SetDefaults()
	c.Selector, c.Capacity = FIFO, 100
	q, err := openQueue(&base{name: "queue", c: c, dir: dir, changed: make(chan struct{}), seqs: map[string]int64{}, sessions: map[string]*session{}})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// insertInto inserts batches of one writer.
func insertInto(t *testing.T, q *queue, from, to int64) {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	first := &flight.FlightData{DataHeader: schemaHeader(schema)}
	r, err := ipc.NewReaderFromMessageReader(&oneMessage{data: first})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	first.DataHeader = schemaHeader(schema)
	s, err := q.join(t.Context(), "actor")
	if err != nil {
		t.Fatal(err)
	}
	if err := q.define(first, r); err != nil {
		t.Fatal(err)
	}
	for n := from; n <= to; n++ {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		b.Field(0).(*array.Int64Builder).Append(n)
		rec := b.NewRecord()
		d, err := batchData(rec)
		if err != nil {
			t.Fatal(err)
		}
		if d.AppMetadata, err = json.Marshal(Insert{Seq: n, Meta: fmt.Append(nil, n)}); err != nil {
			t.Fatal(err)
		}
		if _, err := q.insert(s, d); err != nil {
			t.Fatal(err)
		}
		rec.Release()
		b.Release()
	}
	q.mu.Lock()
	q.part(s)
	q.mu.Unlock()
}

// listed are the numbers of the batches that a queue has.
func listed(q *queue) (list []string) {
	for _, x := range q.items {
		list = append(list, string(x.meta))
	}
	return list
}

// TestQueueCheckpointCutOff ends a server within a checkpoint of a queue, after each of its
// records: the queue has what it had, and its writer goes on where it was.
func TestQueueCheckpointCutOff(t *testing.T) {
	for whole := range 6 {
		dir := t.TempDir()
		q := queueOf(t, dir)
		insertInto(t, q, 1, 5)
		own := &holder{items: []*item{q.items[0]}}
		if err := q.done(own, []int64{3}); err != nil {
			t.Fatal(err)
		}
		// The part of save up to the records that are written before the end.
		if err := q.journal.rotate(); err != nil {
			t.Fatal(err)
		}
		records := [][]byte{append([]byte{recordSchema}, q.schema.DataHeader...)}
		for _, x := range q.items {
			head, err := json.Marshal(itemHead{x.id, x.writer, 0, x.meta})
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, appendPart(appendPart(appendPart([]byte{recordItem}, head), x.header), x.body))
		}
		for _, r := range records[:min(whole, len(records))] {
			q.journal.append(r)
		}
		if whole == 5 {
			// And once the whole of it.
			if err := q.checkpoint(); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.journal.close(); err != nil {
			t.Fatal(err)
		}
		q = queueOf(t, dir)
		if got := listed(q); !slices.Equal(got, []string{"2", "4", "5"}) || q.seqs["actor"] != 5 || q.limiter.inserts != 5 {
			t.Errorf("after %d records: items %q, writer at %d, %d inserts; expected 2, 4 and 5, 5 and 5", whole, got, q.seqs["actor"], q.limiter.inserts)
		}
		// Batches that are sent again are left out, and new ones follow.
		insertInto(t, q, 4, 6)
		if got := listed(q); !slices.Equal(got, []string{"2", "4", "5", "6"}) {
			t.Errorf("after %d records and three batches: items %q", whole, got)
		}
		if err := q.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTakeOver: a stream that takes over a writer's name ends the one before, which waits for a
// client that does not say anything any more.
func TestTakeOver(t *testing.T) {
	q := queueOf(t, "")
	old, err := q.join(t.Context(), "actor")
	if err != nil {
		t.Fatal(err)
	}
	silent, ended := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		left <- old.run(func() error {
			<-silent.Done() // As a Recv does until the call has returned.
			q.mu.Lock()
			q.part(old)
			q.mu.Unlock()
			return silent.Err()
		})
		ended()
	}()
	if _, err := q.join(t.Context(), "actor"); err != nil {
		t.Fatal(err)
	}
	if err := <-left; err != errTakenOver {
		t.Errorf("the stream before ends with %v, expected %v", err, errTakenOver)
	}
}
