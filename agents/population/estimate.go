package population

import (
	"context"
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/configs"
)

// Estimate is how long training is going to take, by what a few env steps and updates of an untrained
// expert and router took on this machine; the JSON keys are stable. Pretraining, validation, proofs
// and publication are not in it.
type Estimate struct {
	Experts evolve.Pace `json:"experts"`
	// Router is that of all routers, nil without one.
	Router *evolve.Pace `json:"router,omitempty"`
	// Seconds are those of both.
	Seconds float64 `json:"seconds"`
}

// Estimate is what [Population.Rehearse] has measured; nil where it has not.
func (p *Population) Estimate() *Estimate { return p.estimate }

// measure measures experts and routers, whose experiments are edited so that they can be opened.
func (p *Population) measure(ctx context.Context, experts, routers func(*configs.Document) error) (err error) {
	if !p.o.Measure {
		return nil
	}
	e := &Estimate{}
	if e.Experts, err = p.search.Measure(ctx, experts); err != nil {
		return fmt.Errorf("experts: %w", err)
	}
	e.Seconds = e.Experts.Seconds
	if routers != nil {
		pace, err := p.routers.Measure(ctx, routers)
		if err != nil {
			return fmt.Errorf("router.experiment: %w", err)
		}
		e.Router = &pace
		e.Seconds += pace.Seconds
	}
	p.estimate = e
	return nil
}

// Text says it in a sentence, with what it is based on.
func (e *Estimate) Text() string {
	text := fmt.Sprintf("training takes about %s on this machine: experts %s", roughly(e.Seconds), part(e.Experts, "env steps"))
	if e.Router != nil {
		text += "; router " + part(*e.Router, "decisions")
	}
	return text + "; pretraining, validation and proofs come on top, and members that train at once may slow each other down"
}

func part(p evolve.Pace, unit string) string {
	updates := fmt.Sprintf("%d updates", p.Updates)
	if p.Updates == 0 {
		updates = "no update, so that updates are not in it,"
	}
	return fmt.Sprintf("%s (%d %s, %s each, %d at once; measured over %d and %s of an untrained one)", roughly(p.Seconds), p.EnvSteps, unit, roughly(p.StepSeconds), p.AtOnce, p.MeasuredSteps, updates)
}

// roughly is a time in two figures.
func roughly(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= 72*time.Hour:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	case d >= 10*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	case d >= 2*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d >= 2*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2g ms", float64(d)/float64(time.Millisecond))
}
