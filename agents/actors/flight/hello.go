package flight

import (
	"encoding/json"
	"fmt"
	"runtime"
)

// protocol is raised when streams change so that an older side would misunderstand them.
const protocol = 2

// Hello is what each side says of itself; the JSON keys are stable.
type Hello struct {
	Protocol int `json:"protocol"`
	// Engine runs the networks, on Platform, the operating system and the architecture.
	Engine   string `json:"engine"`
	Platform string `json:"platform"`
	// Learner tells a learner from all others, and Actor of Count is whom it wants served.
	Learner string `json:"learner,omitempty"`
	Actor   int    `json:"actor"`
	Count   int    `json:"count"`
}

// HelloOf is of whoever runs networks by an engine of that name in this program.
func HelloOf(engine string) Hello {
	return Hello{Engine: engine, Platform: runtime.GOOS + "/" + runtime.GOARCH}
}

// bytes is what is sent.
func (h Hello) bytes() []byte {
	// Numbers and strings always can be.
	b, _ := json.Marshal(h)
	return b
}

// fits reports why a learner cannot have an actor of h: another protocol. That both are the same
// program is checked by flightrpc.
func (h Hello) fits(learner Hello) error {
	if learner.Protocol != h.Protocol {
		return fmt.Errorf("the learner speaks protocol %d, and the server of actors %d: both are to be the same program", learner.Protocol, h.Protocol)
	}
	return nil
}

// differs says why the last bits of results may differ where actors of another act for h; empty is
// no reason.
func (h Hello) differs(other Hello) string {
	if h.Engine == other.Engine && h.Platform == other.Platform {
		return ""
	}
	return fmt.Sprintf("it acts with the engine %s on %s, and the learner learns with %s on %s: results may differ in the last bits", other.Engine, other.Platform, h.Engine, h.Platform)
}
