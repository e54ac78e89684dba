package offline

import "github.com/onnxrl/onnxrl/envs/vector"

// Observations are those of episodes, in memory, one after the other.
type Observations struct {
	// obs has the bytes of each field and rows the numbers of windows' last rows, as [Episode] has
	// them; size are the bytes of one.
	obs        [][]byte
	rows       [][]int64
	size       []int
	mask       []byte
	actions, n int
}

// NewObservations returns room for observations of a data set.
func (d *Dataset) NewObservations() *Observations {
	fields, _ := d.columns()
	o := &Observations{obs: make([][]byte, len(fields)), rows: make([][]int64, len(fields)), actions: d.Mask}
	for _, c := range fields {
		o.size = append(o.size, c.size())
	}
	return o
}

// Len is the number of observations.
func (o *Observations) Len() int { return o.n }

// Add appends the first n observations of an episode.
func (o *Observations) Add(e *Episode, n int) {
	for f := range o.obs {
		if len(e.Rows[f]) > 0 {
			o.rows[f] = append(o.rows[f], e.Rows[f][:n]...)
		} else {
			o.obs[f] = append(o.obs[f], e.Obs[f][:n*o.size[f]]...)
		}
	}
	o.mask = append(o.mask, e.Mask[:n*o.actions]...)
	o.n += n
}

// Put copies an observation and its mask into a row of a batch. It allocates nothing.
func (o *Observations) Put(b *vector.Batch, row, observation int) {
	for f, t := range b.Obs {
		if b.Rows[f] != nil {
			b.Rows[f][row] = o.rows[f][observation]
			continue
		}
		size := o.size[f]
		copy(t.Bytes()[row*size:(row+1)*size], o.obs[f][observation*size:])
	}
	if b.Mask != nil {
		copy(b.Mask.Bytes()[row*o.actions:(row+1)*o.actions], o.mask[observation*o.actions:])
	}
}
