package board

import (
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/livetrade/webhook"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/server"
	"github.com/onnxrl/onnxrl/models/drift"
	"github.com/onnxrl/onnxrl/runtime/metrics/exporter"
)

// Options say what others may look at.
type Options struct {
	// Live are those of the service. [Open] sets its OnStatus, OnBatch and OnStanding.
	Live *livetrade.Options
	// Commands are those that the service receives.
	Commands chan<- string
	// Alerts counts those for the webhook; nil without one.
	Alerts func() webhook.Counts
}

// published is a batch, of which what is shown is made beside the decisions.
type published struct {
	batch   *livetrade.Batch
	latency time.Duration
	stands  string // the policy, where it is how the account stands
	drift   drift.Drift
}

// Open begins to answer at the address of HTTP of a server that answers nobody yet, before the
// service begins. Until end is called, which closes the server, the service may call.
func Open(x Options, n *server.Server) (end func()) {
	o := x.Live
	b, e := newBoard(o.Config.Name), exporter.New(time.Now)
	e.ShowProcess()
	m := newService(e, o.Config, o.Machine, time.Now)
	m.alerts, b.alerts, b.level = x.Alerts, x.Alerts, o.Machine.CVaRLevel()
	b.set(o.Machine.Status())
	o.OnStatus = func(s livetrade.Status) {
		b.set(s)
		m.set(s)
	}
	batches, done := make(chan published, history), make(chan struct{})
	over := false
	o.OnBatch = func(b *livetrade.Batch, latency, _ time.Duration) {
		d, feature := o.Machine.Drift()
		if now := d.PSI > serve.DefaultDriftLimit; now != over {
			if over = now; over {
				o.Say(fmt.Sprintf("warning: observations have drifted: the population stability index of %s is %.3g over the last %d decisions", feature, d.PSI, d.Rows))
			}
		}
		batches <- published{b.Clone(), latency, "", d}
	}
	o.OnStanding = func(b *livetrade.Batch) { batches <- published{batch: b.Clone(), stands: o.Machine.Policy()} }
	go func() {
		defer close(done)
		for x := range batches {
			e, err := readBatch(x.batch)
			if err != nil {
				o.Say(fmt.Sprintf("http: %v", err))
				continue
			}
			if x.stands != "" {
				e.Policy = x.stands
				m.Set(x.batch.Time, e.Value, e.PnL, e.Risk)
			} else {
				m.add(e, x.batch.Time, x.latency)
				m.drifted(x.drift)
			}
			b.add(e)
		}
	}()
	ended := make(chan struct{})
	h := handlers{board: b, commands: x.Commands, ended: ended}
	n.AnswerHTTP(h.handler(n.Guard, e.Handler()), 0)
	return func() {
		close(batches)
		<-done
		close(ended)
		n.Close()
	}
}
