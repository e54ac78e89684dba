package run

import (
	"fmt"
	"strconv"

	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/report"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// About says where policies, data and code of an assessment come from, and out of how many trials
// the first policy was chosen, as [assess.Assessment.Document] takes it for a report.
func (e *Evaluation) About(a *assess.Assessment) (assess.About, error) {
	digest, err := configs.Digest(e.cfg)
	if err != nil {
		return assess.About{}, err
	}
	b := assess.About{Title: fmt.Sprintf("%s on %s", a.Agents[0].Name, a.Split), Seed: e.cfg.Seed, Notes: e.notes}
	if e.selection != nil {
		b.Trials = a.Trials(e.selection)
	} else {
		b.Trials = report.Trials{Count: 1, Counted: "The model does not say what it was chosen from: one trial is assumed, and the deflated Sharpe ratio is too kind if there were more."}
	}
	add := func(k, v string) { b.Provenance = append(b.Provenance, report.KeyValue{Key: k, Value: v}) }
	for _, c := range e.policies {
		v := c.From
		if c.SHA256 != "" {
			v += ", SHA-256 " + c.SHA256
		}
		add("policy "+c.Name, v)
	}
	add("config_sha256", digest)
	sources, err := Sources(e.doc, e.factory, e.o.Digest)
	if err != nil {
		return b, err
	}
	for k, v := range sorted.All(sources) {
		add(k, v)
	}
	add("seed", strconv.FormatUint(e.cfg.Seed, 10))
	add("engine", e.engine.Name())
	add("program", e.o.Program)
	return b, nil
}
