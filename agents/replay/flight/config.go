package flight

import (
	"fmt"
	"path/filepath"
)

// The selectors of tables.
const (
	Uniform     = "uniform"
	Prioritised = "prioritised"
	// FIFO is a queue: each item, a record batch of any schema, is taken once, in order.
	FIFO = "fifo"
	// Policies draws each policy by its share (mix) or by age (half_life).
	Policies = "policies"
)

// TableConfig describes a table.
type TableConfig struct {
	// Selector is uniform, prioritised, policies or fifo.
	Selector string `yaml:"selector"`
	// Capacity is the number of transitions, or of items of a queue, whose writers wait when it is
	// full.
	Capacity int  `yaml:"capacity"`
	Rate     Rate `yaml:"rate"`
	// ChunkRows is of replay.SharedConfig; 0 leaves room for 64 environments.
	ChunkRows int `yaml:"chunk_rows"`
	// Alpha and Eps are of replay.Priorities; Beta of importance weights where a request has none.
	Alpha float64 `yaml:"alpha"`
	Eps   float64 `yaml:"eps"`
	Beta  float64 `yaml:"beta"`
	// Mix and HalfLife are of replay.SamplerConfig.
	Mix      map[int32]float64 `yaml:"mix"`
	HalfLife float64           `yaml:"half_life"`
	// Spill writes the oldest transitions to files before they are overwritten.
	Spill bool `yaml:"spill"`
	// JournalMB is the size of the journal, in MiB, from which the table is saved, so that an
	// empty journal can follow.
	JournalMB int `yaml:"journal_mb"`
}

// SetDefaults implements configs.Defaulter.
func (c *TableConfig) SetDefaults() {
	*c = TableConfig{Selector: Uniform, Capacity: 1_000_000, Alpha: 0.6, Eps: 1e-6, JournalMB: 256}
}

// check reports what is wrong, of a table of a name.
func (c *TableConfig) check(name string, durable bool) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("tables.%s: "+format, append([]any{name}, args...)...)
	}
	if name == "" || name != filepath.Base(name) || name[0] == '.' {
		return fail("expected a name that can be a folder's")
	}
	switch c.Selector {
	case Uniform, FIFO, Prioritised:
		if len(c.Mix) > 0 || c.HalfLife != 0 {
			return fail("mix and half_life are of the selector policies, not of %s", c.Selector)
		}
	case Policies:
	default:
		return fail("selector: %q, expected uniform, prioritised, policies or fifo", c.Selector)
	}
	if c.Capacity < 1 || c.JournalMB < 1 {
		return fail("capacity: %d and journal_mb %d, expected at least 1", c.Capacity, c.JournalMB)
	}
	if c.Spill && !durable {
		return fail("spill: the server has no dir to write files to")
	}
	if c.Selector == FIFO && (c.Rate != Rate{} || c.Spill) {
		return fail("rate and spill: a queue has neither; its capacity lets writers wait")
	}
	if c.Selector == FIFO {
		return nil
	}
	if err := c.Rate.check(); err != nil {
		return fail("%w", err)
	}
	return nil
}

func (c *TableConfig) chunkRows() int {
	if c.ChunkRows > 0 {
		return c.ChunkRows
	}
	k := 4
	for k < 1024 && k*2 <= c.Capacity/256 {
		k *= 2
	}
	return k
}

func (c *TableConfig) journalBytes() int64 { return int64(c.JournalMB) << 20 }

func (c *TableConfig) spill(dir string) string {
	if !c.Spill {
		return ""
	}
	return dir
}
