package livetrade

// standing is a batch of the positions as they stand after the last batch. It has the memory of
// the machine's batch.
func (m *Machine) standing() *Batch {
	m.batch.reset(m.seq, m.trader.Feed.Time())
	m.writePositions()
	return &m.batch
}
