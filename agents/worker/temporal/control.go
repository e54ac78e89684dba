package temporal

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// Control is for what goes on in a directory whose tasks are with a server.
type Control struct {
	client client.Client
	place  Place
	dir    string
}

// OpenControl connects to the server that the tasks of a directory are with. The address says how;
// without a HostPort it is the one that the directory names.
func OpenControl(dir string, a Address, l log.Logger) (*Control, error) {
	p, err := PlaceOf(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: nothing of it is with an executor: %w", dir, err)
	}
	if a.HostPort == "" {
		if a, err = ParseAddress(p.Address); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	c, err := a.dial(l)
	if err != nil {
		return nil, err
	}
	return &Control{client: c, place: p, dir: dir}, nil
}

// Close disconnects.
func (c *Control) Close() { c.client.Close() }

// Place is where the tasks are.
func (c *Control) Place() Place { return c.place }

// Status asks how the tasks go. A group that has ended has none.
func (c *Control) Status(ctx context.Context) (s GroupStatus, err error) {
	v, err := c.client.QueryWorkflow(ctx, c.place.Workflow, "", statusName)
	if err == nil {
		err = v.Get(&s)
	}
	return s, c.explain(err)
}

// Pause stops the tasks that go on, which save where they are, and holds others until
// [Control.Resume].
func (c *Control) Pause(ctx context.Context) error { return c.signal(ctx, pauseName) }

// Resume lets tasks go on from where they were.
func (c *Control) Resume(ctx context.Context) error { return c.signal(ctx, resumeName) }

// Cancel stops the tasks that go on, which save where they are. The program that waits for them
// ends.
func (c *Control) Cancel(ctx context.Context) error { return c.signal(ctx, cancelName) }

func (c *Control) signal(ctx context.Context, name string) error {
	return c.explain(c.client.SignalWorkflow(ctx, c.place.Workflow, "", name, ""))
}

func (c *Control) explain(err error) error {
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &missing):
		return fmt.Errorf("%s: nothing goes on: %w", c.dir, err)
	}
	return fmt.Errorf("%s, %s: %w", c.dir, c.place.Address, err)
}
