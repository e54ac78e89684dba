// Package board shows a service of package livetrade to others, over HTTP: its state, its events, its
// metrics for Prometheus, and the kill switch.
//
//	GET  /live/state   a [State]
//	GET  /live/events  server-sent events, an [Event] each, from behind that which Last-Event-ID names
//	GET  /metrics      what docs/observability.md lists
//	POST /live/kill    the kill switch, and /live/resume takes it back; the body is the reason
//
// Looking needs a token of use, and the kill switch one of administration, see package guard. What is
// shown is made beside the decisions, which wait for nobody who looks.
//
// # How to add a field
//
// Add it to [Event] under the name that the service publishes it by, or to [State] and to
// board.report; or, for Prometheus, to metrics.
package board
