// Package webhook posts the risk events of a live service to a URL.
//
// # Concepts
//
// A [Sender] is a livetrade.Alerter. Alerts wait in a queue and are posted in that order by a
// goroutine of its own, so that a receiver that is slow or away holds back no decision. One that
// cannot be delivered is tried again, after pauses that grow; then it is given up and the next
// one comes. What waits, and the last alert that was told, is in the state directory of the
// service: written when one was delivered, before each snapshot and at the end. A service that
// starts again tells its alerts since the snapshot once more, of which those that are noted are
// left out. So each alert is delivered at least once, and more than once only where the program
// was killed between the answer of the receiver and the note; Idempotency-Key then is the same.
//
// # How to add another receiver
//
// Write a package beside this one with an Alerter of its own, and name it in livetrade.Alerts and
// in cmd/app/live_alerts.go.
package webhook
