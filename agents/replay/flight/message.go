package flight

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/onnxrl/onnxrl/runtime/columnar"
	"github.com/onnxrl/onnxrl/runtime/flightrpc"
)

// check looks at a message before it is decoded.
func check(d *flight.FlightData) (columnar.Message, error) {
	m, err := columnar.CheckMessage(d.DataHeader, d.DataBody, flightrpc.MaxMessage)
	if err != nil {
		return m, invalid("%v", err)
	}
	return m, nil
}

// sound is a stream whose messages are checked before they are decoded: the Arrow library allocates
// whatever length a message states.
type sound struct {
	flight.DataStreamReader
	first bool
}

// newReader reads the record batches of a stream.
func newReader(from flight.DataStreamReader) (*flight.Reader, error) {
	return flight.NewRecordReader(&sound{from, true})
}

// Recv implements flight.DataStreamReader.
func (s *sound) Recv() (*flight.FlightData, error) {
	d, err := s.DataStreamReader.Recv()
	if err != nil {
		return nil, err
	}
	first := s.first
	s.first = false
	if first && len(d.DataHeader) == 0 {
		return d, nil // A descriptor alone.
	}
	m, err := check(d)
	if err != nil {
		return nil, err
	}
	// The windows of decoders are memory that a few bytes ask for.
	if m.Compressed {
		return nil, invalid("a record batch whose buffers are compressed, expected one that is not")
	}
	return d, nil
}

// caught keeps the messages that a flight.Writer sends.
type caught struct{ list []*flight.FlightData }

// Send implements flight.DataStreamWriter. The writer uses its message again.
func (c *caught) Send(d *flight.FlightData) error {
	c.list = append(c.list, &flight.FlightData{DataHeader: append([]byte(nil), d.DataHeader...), DataBody: append([]byte(nil), d.DataBody...)})
	return nil
}

// batchData is the message of a record batch.
func batchData(rec arrow.Record) (*flight.FlightData, error) {
	var c caught
	w := flight.NewRecordWriter(&c, ipc.WithSchema(rec.Schema()))
	if err := w.Write(rec); err != nil {
		return nil, err
	}
	return c.list[len(c.list)-1], w.Close()
}

// schemaHeader is the message of a schema.
func schemaHeader(s *arrow.Schema) []byte {
	var c caught
	w := flight.NewRecordWriter(&c, ipc.WithSchema(s))
	// Closing a writer that has written nothing writes the schema.
	if w.Close() != nil || len(c.list) == 0 {
		return nil
	}
	return c.list[0].DataHeader
}
