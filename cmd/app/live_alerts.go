package app

import (
	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/livetrade/webhook"
)

// alertLive tells a webhook of the risk events of a service until end is called. counts is nil
// without one.
func (a *app) alertLive(c *livetrade.Config, o *livetrade.Options) (counts func() webhook.Counts, end func(), err error) {
	if !c.Alerts.To() {
		return nil, func() {}, nil
	}
	s, err := webhook.Open(c.Alerts, c.State, o.Say)
	if err != nil {
		return nil, nil, err
	}
	o.Alerter = s
	return s.Counts, s.Close, nil
}
