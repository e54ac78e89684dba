package flight

import (
	"encoding/json"

	"github.com/apache/arrow/go/v15/arrow/flight"
)

// PutCommand is the descriptor of a DoPut, as JSON. A descriptor with a path is one of that table.
type PutCommand struct {
	Table string `json:"table"`
	// Writer is the name by which a writer goes on after its connection, or the server, has ended;
	// without one the server makes one up. A stream takes a name over from the one before.
	Writer string `json:"writer,omitempty"`
	// Policy is whose transitions they are, and Envs the number of environments; 0 is 1.
	Policy int32 `json:"policy,omitempty"`
	Envs   int   `json:"envs,omitempty"`
}

// Insert is the metadata of a record batch of a DoPut. Without one batches count on.
type Insert struct {
	// Seq numbers the batches of a writer from 1. One that the server has already is acknowledged
	// and left out.
	Seq int64 `json:"seq"`
	// Meta is handed on to who takes the item out of a queue.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// Ack is the metadata of the answers of a DoPut: first the last batch that the server has of the
// writer, then one for each, when it is on the server's disk.
type Ack struct {
	Writer string `json:"writer,omitempty"`
	Seq    int64  `json:"seq"`
	// Clock is the number of transitions, or items, that were ever inserted.
	Clock int64 `json:"clock"`
}

// SampleCommand is the descriptor of a DoExchange, or the ticket of a DoGet, as JSON.
type SampleCommand struct {
	Table string `json:"table"`
	// Batch is the number of transitions of a sample; Length, unless 0, asks for sequences.
	Batch  int `json:"batch,omitempty"`
	Length int `json:"length,omitempty"`
	// NSteps and Gamma are those of returns; 0 steps are 1, and no gamma is 1.
	NSteps int      `json:"n_steps,omitempty"`
	Gamma  *float64 `json:"gamma,omitempty"`
	// Mix and HalfLife are of replay.SamplerConfig, and take the place of the table's.
	Mix      map[int32]float64 `json:"mix,omitempty"`
	HalfLife float64           `json:"half_life,omitempty"`
	// Columns are those that are wanted; none are all.
	Columns []string `json:"columns,omitempty"`
}

// SampleRequest asks for one sample, in the metadata of a DoExchange. Several may be under way.
type SampleRequest struct {
	// Seed makes the sample; without one the server draws it.
	Seed *uint64 `json:"seed,omitempty"`
	// Beta is the exponent of importance weights.
	Beta float64 `json:"beta,omitempty"`
	// Take is the number of items out of a queue; 0 is 1. A request says that the items of those
	// before are done with. Done asks for none.
	Take int  `json:"take,omitempty"`
	Done bool `json:"done,omitempty"`
	// Held and Finished are of a reader that comes back: the items of a stream before that it has
	// and is not done with, which count as given out by this request, and those that it is done
	// with.
	Held     []int64 `json:"held,omitempty"`
	Finished []int64 `json:"finished,omitempty"`
}

// Sampled is the metadata of a sample.
type Sampled struct {
	Size  int   `json:"size"`
	Clock int64 `json:"clock"`
	// Item, Writer and Meta are of an item out of a queue.
	Item   int64           `json:"item,omitempty"`
	Writer string          `json:"writer,omitempty"`
	Meta   json.RawMessage `json:"meta,omitempty"`
}

// PriorityUpdate is the body of the action priorities; the answer is an [Updated].
type PriorityUpdate struct {
	Table  string    `json:"table"`
	Keys   []int64   `json:"keys"`
	Errors []float32 `json:"errors"`
}

// Updated says how many of the transitions were still there.
type Updated struct {
	Known int `json:"known"`
}

// TableStats describes a table: the answer of the actions tables, one for each, and checkpoint.
type TableStats struct {
	Table    string `json:"table"`
	Selector string `json:"selector"`
	Size     int    `json:"size"`
	Capacity int    `json:"capacity"`
	// Inserts and Samples are those of rows, or items, ever; Clock is Inserts.
	Inserts  int64 `json:"inserts"`
	Samples  int64 `json:"samples"`
	Clock    int64 `json:"clock"`
	Writers  int   `json:"writers"`
	Durable  bool  `json:"durable"`
	Spilled  int   `json:"spilled"`
	Journal  int64 `json:"journal_bytes"`
	Restored int64 `json:"restored_records"`
	// Schema is that of what is inserted, as Flight encodes it; none before the first writer.
	Schema []byte `json:"schema,omitempty"`
}

// The actions of a server.
const (
	ActionTables     = "tables"
	ActionPriorities = "priorities"
	ActionCheckpoint = "checkpoint"
)

// command reads the JSON of a descriptor; a path names the table.
func command[C any](d *flight.FlightDescriptor, table func(*C) *string) (c C, err error) {
	switch {
	case d == nil:
		return c, invalid("the first message has no descriptor, expected one with the table's name")
	case len(d.Cmd) > MaxJSON:
		return c, invalid("a descriptor of %d bytes, expected at most %d", len(d.Cmd), MaxJSON)
	case len(d.Cmd) > 0:
		if err := json.Unmarshal(d.Cmd, &c); err != nil {
			return c, invalid("the descriptor's command %.80q: %v; expected JSON such as {\"table\": \"transitions\"}", d.Cmd, err)
		}
	case len(d.Path) == 1:
		*table(&c) = d.Path[0]
	default:
		return c, invalid("the descriptor has a path of %d elements, expected the table's name", len(d.Path))
	}
	return c, nil
}
