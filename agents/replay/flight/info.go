package flight

import (
	"context"
	"encoding/json"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// infoOf describes a table as Flight does. Its ticket is one sample of up to 256 transitions, or
// the next item of a queue.
func infoOf(s TableStats) (*flight.FlightInfo, error) {
	if s.Schema == nil {
		return nil, status.Errorf(codes.FailedPrecondition, "the table %s has no schema yet: its first writer brings it", s.Table)
	}
	c := SampleCommand{Table: s.Table}
	if s.Selector != FIFO {
		c.Batch = max(1, min(256, s.Size))
	}
	ticket, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return &flight.FlightInfo{
		Schema: s.Schema, TotalRecords: int64(s.Size), TotalBytes: -1,
		FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{s.Table}},
		Endpoint:         []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: ticket}}},
	}, nil
}

// ListFlights implements flight.FlightServer: the tables that have a schema.
func (s *Server) ListFlights(_ *flight.Criteria, stream flight.FlightService_ListFlightsServer) error {
	for _, about := range s.Tables() {
		if about.Schema == nil {
			continue
		}
		info, err := infoOf(about)
		if err != nil {
			return err
		}
		if err := stream.Send(info); err != nil {
			return err
		}
	}
	return nil
}

// GetFlightInfo implements flight.FlightServer.
func (s *Server) GetFlightInfo(_ context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	c, err := command(d, func(c *SampleCommand) *string { return &c.Table })
	if err != nil {
		return nil, err
	}
	t, err := s.table(c.Table)
	if err != nil {
		return nil, err
	}
	return infoOf(t.about())
}

// GetSchema implements flight.FlightServer: that of what is inserted.
func (s *Server) GetSchema(ctx context.Context, d *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	info, err := s.GetFlightInfo(ctx, d)
	if err != nil {
		return nil, err
	}
	return &flight.SchemaResult{Schema: info.Schema}, nil
}
