package negotiation

// Status is how a negotiation stands.
type Status int8

// The states of a negotiation.
const (
	Running Status = iota
	Agreed
	Broken
	TimedOut
)

var statuses = [...]string{"running", "agreement", "broken", "timeout"}

// String returns running, agreement, broken or timeout.
func (s Status) String() string { return statuses[s] }

// at is where a negotiation goes on.
type at int8

const (
	roundBegins at = iota
	turnBegins
	hears     // an offer is to be answered
	reviews   // a synchronous agent's first proposals are there, its counter offers are not
	countered // a synchronous agent has answered
	answered  // the answer to the offer is there
	speaks    // an offer is to be made
	opened    // a synchronous agent's first proposals are there
	reopened  // and once more
	spoken    // the offer is there
)

// Mechanism is one negotiation. All fields are the engine's; others read them.
type Mechanism struct {
	// Agents are the caller and the partner, Slots what they call it.
	Agents [2]int `json:"agents"`
	Slots  [2]int `json:"slots"`
	// Tag is the number of the caller's of the engine.
	Tag int `json:"tag"`
	// Day is when it was made; one that is left behind has not ended by then.
	Day int `json:"day"`
	Box Box `json:"box"`
	// Round is the number of rounds that are complete, and that of the one being played.
	Round  int    `json:"round"`
	Status Status `json:"status"`
	// Current is the offer on the table once Opened.
	Current Offer `json:"current"`
	Opened  bool  `json:"opened,omitempty"`
	// Turn is the side that acts: 0 is the caller.
	Turn   int8 `json:"turn"`
	At     at   `json:"at"`
	Orphan bool `json:"orphan,omitempty"`
}
