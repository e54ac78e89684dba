package broker

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// MaxClientID is how long a client id may be, in bytes.
const MaxClientID = 128

// Prefix begins the client ids of a service and of no other one: names have no colon.
func Prefix(service string) string { return service + ":" }

// ClientID is the id of an order: of the service's name, without a colon, the time of the
// decision, the symbol, the side, and how many orders for the same were wanted before.
func ClientID(service string, decided time.Time, symbol string, side Side, attempt int) string {
	return fmt.Sprintf("%s%s:%s:%s:%d", Prefix(service), decided.UTC().Format("20060102T150405.999999999"), symbol, side, attempt)
}

// Ours reports whether a client id is one of a service.
func Ours(service, clientID string) bool { return strings.HasPrefix(clientID, Prefix(service)) }

// step is the smallest part of a share that brokers know.
const step = 1e-9

// Same reports whether two quantities or prices are the same to 9 decimals, or to the last ones
// that a float64 has.
func Same(a, b float64) bool {
	return math.Abs(a-b) < max(step/2, 4e-16*max(math.Abs(a), math.Abs(b)))
}

// round gives a sum of quantities the nearest one that brokers know.
func round(q float64) float64 {
	if math.Abs(q) >= 1e6 {
		return q
	}
	return math.Round(q/step) / (1 / step)
}
