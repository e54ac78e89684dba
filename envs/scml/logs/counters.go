package logs

// counters are what the league's program counts of an agent.
type counters struct {
	sent, received, succeeded, failed, timedOut int
	concluded, signed, executed, dropped        int
}

// contract counts a contract of the agent's: as the league does, it is signed by two, and those
// with the outside of day 0 are concluded twice.
func (c *counters) contract(x contract) {
	c.concluded++
	if x.concluded < 0 && x.signed == 0 {
		c.concluded++
	}
	c.signed += 2
	if x.dropped {
		c.dropped++
	} else {
		c.executed++
	}
}

// add adds another's.
func (c *counters) add(o counters) {
	c.sent, c.received, c.succeeded, c.failed, c.timedOut = c.sent+o.sent, c.received+o.received, c.succeeded+o.succeeded, c.failed+o.failed, c.timedOut+o.timedOut
	c.concluded, c.signed, c.executed, c.dropped = c.concluded+o.concluded, c.signed+o.signed, c.executed+o.executed, c.dropped+o.dropped
}

// agentRow is an agent of agents.json, and one of a tournament's agent_stats.csv and type_stats.csv
// once it is there.
type agentRow struct {
	BreachesCommitted   int    `json:"breaches_committed"`
	BreachesReceived    int    `json:"breaches_received"`
	ContractsBreached   int    `json:"contracts_breached"`
	ContractsConcluded  int    `json:"contracts_concluded"`
	ContractsDropped    int    `json:"contracts_dropped"`
	ContractsErred      int    `json:"contracts_erred"`
	ContractsExecuted   int    `json:"contracts_executed"`
	ContractsNullified  int    `json:"contracts_nullified"`
	ContractsSigned     int    `json:"contracts_signed"`
	ID                  string `json:"id"`
	Name                string `json:"name"`
	NegRequestsReceived int    `json:"neg_requests_received"`
	NegRequestsRejected int    `json:"neg_requests_rejected"`
	NegRequestsSent     int    `json:"neg_requests_sent"`
	NegsFailed          int    `json:"negs_failed"`
	NegsInitiated       int    `json:"negs_initiated"`
	NegsRegistered      int    `json:"negs_registered"`
	NegsSucceeded       int    `json:"negs_succeeded"`
	NegsTimedout        int    `json:"negs_timedout"`
	ShortType           string `json:"short_type"`
	Type                string `json:"type"`
}

// row describes agent i.
func (f *Folder) row(i int) agentRow {
	c := f.counters[i]
	return agentRow{
		ContractsConcluded: c.concluded, ContractsDropped: c.dropped, ContractsExecuted: c.executed, ContractsSigned: c.signed, ID: f.ids[i], Name: f.ids[i], NegRequestsReceived: c.received, NegRequestsSent: c.sent,
		NegsFailed: c.failed, NegsInitiated: c.sent, NegsRegistered: c.received, NegsSucceeded: c.succeeded, NegsTimedout: c.timedOut, ShortType: shortType(f.types[i]), Type: f.types[i],
	}
}
