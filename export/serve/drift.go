package serve

import (
	"fmt"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/models/drift"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// DriftAction says what is done where observations are not those that a policy was published on.
type DriftAction int

// The actions: WarnDrift says it in the log, RefuseDrift answers Drifted as well until the window
// is within the limit again, and IgnoreDrift does not count.
const (
	WarnDrift DriftAction = iota
	RefuseDrift
	IgnoreDrift
)

// Drift limits how far observations may be from those that a policy was published on, of models
// whose metadata have these (models/drift).
type Drift struct {
	// Limit is the largest population stability index of a feature; 0 is DefaultDriftLimit.
	Limit  float64
	Action DriftAction
	// Window is the number of rows that are compared; 0 is drift.DefaultWindow.
	Window int
}

// DefaultDriftLimit is the usual limit of the population stability index.
const DefaultDriftLimit = 0.25

// observed compares the inputs of a version with those that it was published on.
type observed struct {
	*drift.Monitor
	Drift
	// at are the inputs by those of the monitor; of one that requests leave out it is -1.
	at []int
	// over says that the last window was beyond the limit.
	over atomic.Bool
}

// watchDrift makes what compares; a model without statistics has none.
func (v *version) watchDrift() error {
	text := v.info[drift.Key]
	if text == "" || v.config.Drift.Action == IgnoreDrift {
		return nil
	}
	r, err := drift.Parse(text)
	if err != nil {
		return err
	}
	o := &observed{Monitor: r.NewMonitor(v.config.Drift.Window), Drift: v.config.Drift}
	for i := range o.Inputs() {
		k, ok := v.plan.inAt[o.Input(i)]
		if !ok {
			return fmt.Errorf("metadata %s: the model has no input %q", drift.Key, o.Input(i))
		}
		shape, fixed := v.plan.row(v.plan.in[k])
		if !fixed {
			return fmt.Errorf("metadata %s: input %q has rows of no fixed extent", drift.Key, o.Input(i))
		}
		if v.plan.batch {
			shape = shape[1:]
		}
		n, err := tensor.Len(shape)
		if err == nil {
			err = o.Fits(i, n, v.plan.in[k].DType)
		}
		if err != nil {
			return err
		}
		o.at = append(o.at, k)
	}
	v.observed = o
	return nil
}

// see counts rows and says whether they may be answered. room has a place for each input that is
// compared.
func (v *version) see(in []*tensor.Tensor, room []*tensor.Tensor, rows int) error {
	o := v.observed
	for i, k := range o.at {
		room[i] = in[k]
	}
	d, moved := o.Observe(room, rows)
	clear(room)
	if d.PSI <= o.Limit {
		if moved && o.over.Load() && o.over.Swap(false) {
			v.model.server.log(ModelStatus{Name: v.model.name, Version: v.name, State: Ready, Reason: "observations are within the limit of drift again"})
		}
		return nil
	}
	if !o.over.Load() && !o.over.Swap(true) {
		v.model.server.log(ModelStatus{Name: v.model.name, Version: v.name, State: Ready, Reason: o.text(d)})
	}
	if o.Action == RefuseDrift {
		return fail(Drifted, "%s", o.text(d))
	}
	return nil
}

// text says how far observations are.
func (o *observed) text(d drift.Drift) string {
	f := o.Feature(d.Feature)
	return fmt.Sprintf("observations have drifted: the population stability index of %s is %.3g over the last %d rows, and the limit %g; the policy was published on a mean of %.4g and a standard deviation of %.4g", o.Name(d.Feature), d.PSI, d.Rows, o.Limit, f.Mean, f.Std)
}

// statistics are those of the version.
func (v *version) statistics() Statistics {
	s := v.stats.snapshot(v.model.name, v.name)
	if o := v.observed; o != nil {
		s.Drift = o.Last()
		if s.Drift.Rows > 0 {
			s.DriftFeature = o.Name(s.Drift.Feature)
		}
	}
	return s
}
