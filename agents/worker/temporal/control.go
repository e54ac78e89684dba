package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
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

// GroupStatus is how the tasks of a directory go; the JSON keys are stable.
type GroupStatus struct {
	// Finished counts the tasks that were carried out.
	Finished int64 `json:"finished"`
	// Running are the keys of the tasks that workers train, Waiting those of the tasks that a pause
	// holds, or that no worker has taken yet.
	Running []string `json:"running"`
	Waiting []string `json:"waiting"`
}

// Status asks how the tasks go.
func (c *Control) Status(ctx context.Context) (GroupStatus, error) {
	s := GroupStatus{Running: []string{}, Waiting: []string{}}
	n, err := c.client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: c.query("Completed")})
	if err != nil {
		return s, c.explain(err)
	}
	s.Finished = n.GetCount()
	err = c.each(ctx, func(id string) error {
		d, err := c.client.DescribeWorkflowExecution(ctx, id, "")
		if err != nil {
			return err
		}
		key, begun := strings.TrimPrefix(id, c.place.Group+"/"), false
		for _, a := range d.GetPendingActivities() {
			begun = begun || a.GetState() != enums.PENDING_ACTIVITY_STATE_SCHEDULED
		}
		switch {
		case d.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		case begun:
			s.Running = append(s.Running, key)
		default:
			s.Waiting = append(s.Waiting, key)
		}
		return nil
	})
	slices.Sort(s.Running)
	slices.Sort(s.Waiting)
	return s, c.explain(err)
}

// query finds the tasks with a status.
func (c *Control) query(status string) string {
	return fmt.Sprintf("WorkflowId STARTS_WITH '%s/' AND ExecutionStatus = '%s'", strings.ReplaceAll(c.place.Group, "'", "\\'"), status)
}

// each calls do for each task that has not ended. One that has ended meanwhile is none.
func (c *Control) each(ctx context.Context, do func(id string) error) error {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: c.query("Running"), PageSize: 500}
	for {
		page, err := c.client.ListWorkflow(ctx, request)
		if err != nil {
			return err
		}
		var missing *serviceerror.NotFound
		for _, w := range page.GetExecutions() {
			if err := do(w.GetExecution().GetWorkflowId()); err != nil && !errors.As(err, &missing) {
				return err
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

// Pause stops the tasks that go on, which save where they are, and holds others until
// [Control.Resume].
func (c *Control) Pause(ctx context.Context) error { return c.signal(ctx, true, pauseName) }

// Resume lets tasks go on from where they were.
func (c *Control) Resume(ctx context.Context) error { return c.signal(ctx, false, resumeName) }

// Cancel stops the tasks that go on, which save where they are. The program that waits for them
// ends.
func (c *Control) Cancel(ctx context.Context) error {
	c.place.Cancelled = true
	return c.tell(ctx, func(id string) error { return c.client.CancelWorkflow(ctx, id, "") })
}

// signal writes down whether the tasks of the directory are paused, and tells them.
func (c *Control) signal(ctx context.Context, paused bool, name string) error {
	c.place.Paused = paused
	return c.tell(ctx, func(id string) error { return c.client.SignalWorkflow(ctx, id, "", name, nil) })
}

// tell writes down what the directory is to do and tells the tasks that the server lists. The
// program that hands tasks over reads it and tells its own.
func (c *Control) tell(ctx context.Context, each func(id string) error) error {
	if err := c.place.write(c.dir); err != nil {
		return err
	}
	return c.explain(c.each(ctx, each))
}

func (c *Control) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s, %s: %w", c.dir, c.place.Address, err)
}
