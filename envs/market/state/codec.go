package state

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Codec moves fields into a block or out of it. It is not safe for concurrent use.
type Codec struct {
	block   []byte // written so far, or still to be read
	reading bool
	err     error
}

// Writer returns a codec that appends to block.
func Writer(block []byte) *Codec { return &Codec{block: block} }

// Reader returns a codec that takes from block, which it does not change.
func Reader(block []byte) *Codec { return &Codec{block: block, reading: true} }

// Reading says whether fields are given values; otherwise they are only looked at.
func (c *Codec) Reading() bool { return c.reading }

// Bytes is what was written so far, or what is left to read.
func (c *Codec) Bytes() []byte { return c.block }

// Err is the first fault of what was read.
func (c *Codec) Err() error { return c.err }

// Fail makes err the codec's fault, unless there is one already.
func (c *Codec) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// take returns the next n bytes to read, nil after a fault.
func (c *Codec) take(n int) []byte {
	if c.err == nil && len(c.block) < n {
		c.err = fmt.Errorf("%d bytes are left where %d are needed", len(c.block), n)
	}
	if c.err != nil {
		return nil
	}
	b := c.block[:n]
	c.block = c.block[n:]
	return b
}

// Float moves a number, NaN with its bits.
func (c *Codec) Float(x *float64) {
	if !c.reading {
		c.block = binary.LittleEndian.AppendUint64(c.block, math.Float64bits(*x))
	} else if b := c.take(8); b != nil {
		*x = math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
}

// Floats moves the numbers of a slice, whose length is not saved.
func (c *Codec) Floats(x []float64) {
	for i := range x {
		c.Float(&x[i])
	}
}

// Float32s moves the numbers of a slice, whose length is not saved.
func (c *Codec) Float32s(x []float32) {
	for i := range x {
		if !c.reading {
			c.block = binary.LittleEndian.AppendUint32(c.block, math.Float32bits(x[i]))
		} else if b := c.take(4); b != nil {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b))
		}
	}
}

// Int moves an integer that lies between lo and hi, both included. Another one that was read is a
// fault.
func (c *Codec) Int(x *int, lo, hi int) {
	v := int64(*x)
	c.Int64(&v, int64(lo), int64(hi))
	*x = int(v)
}

// Int64 is Int for 64 bits.
func (c *Codec) Int64(x *int64, lo, hi int64) {
	if !c.reading {
		c.block = binary.LittleEndian.AppendUint64(c.block, uint64(*x))
		return
	}
	b := c.take(8)
	if b == nil {
		return
	}
	v := int64(binary.LittleEndian.Uint64(b))
	if v < lo || v > hi {
		c.Fail(fmt.Errorf("the integer %d is not between %d and %d", v, lo, hi))
		return
	}
	*x = v
}

// Bool moves a flag.
func (c *Codec) Bool(x *bool) {
	if !c.reading {
		v := byte(0)
		if *x {
			v = 1
		}
		c.block = append(c.block, v)
		return
	}
	b := c.take(1)
	switch {
	case b == nil:
	case b[0] > 1:
		c.Fail(fmt.Errorf("the flag %d is neither 0 nor 1", b[0]))
	default:
		*x = b[0] == 1
	}
}
