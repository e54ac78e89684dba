package flight

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/ipc"
)

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
