package stream

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/state"
)

// stateMagic begins a state of this version.
const stateMagic = "onnxrl gather 3 "

// SaveState returns all that the gatherer knows. One of the same rules and pipeline that loads it
// goes on with the same rows.
func (g *Gatherer) SaveState() []byte {
	c := state.Writer([]byte(stateMagic))
	g.move(c)
	return c.Bytes()
}

// LoadState makes the gatherer, which must be a fresh one, what it was when the state was saved.
func (g *Gatherer) LoadState(block []byte) error {
	if !bytes.HasPrefix(block, []byte(stateMagic)) {
		return errors.New("load the state of a gatherer: it is none, or of another version")
	}
	c := state.Reader(block[len(stateMagic):])
	g.move(c)
	if c.Err() == nil && len(c.Bytes()) > 0 {
		c.Fail(fmt.Errorf("%d bytes too many", len(c.Bytes())))
	}
	if err := c.Err(); err != nil {
		return fmt.Errorf("load the state of a gatherer: %w", err)
	}
	return nil
}

func (g *Gatherer) move(c *state.Codec) {
	n := len(g.assets)
	c.Int(&n, len(g.assets), len(g.assets))
	for _, x := range g.counters.list() {
		c.Int64(x, 0, math.MaxInt64)
	}
	g.moveTime(c, &g.done)
	messages := int(g.kind)
	c.Int(&messages, int(unknown), int(ofTicks))
	if g.kind = kind(messages); g.kind == ofTicks && g.ticks == nil {
		c.Fail(errors.New("it is of ticks, and the agent's data are bars"))
		return
	}
	k := len(g.progress)
	c.Int(&k, 0, math.MaxInt32)
	if c.Reading() && c.Err() == nil {
		g.progress = make([]partition, min(k, len(c.Bytes())))
	}
	for i := range g.progress {
		id := int64(g.progress[i].id)
		c.Int64(&id, math.MinInt32, math.MaxInt32)
		g.progress[i].id = int32(id)
		g.moveTime(c, &g.progress[i].at)
		c.Bool(&g.progress[i].behind)
	}
	for i := range g.assets {
		c.Int(&g.home[i], -1, len(g.progress)-1)
		g.moveTime(c, &g.newest[i])
		c.Bool(&g.present[i])
		g.clean[i].State(c)
		if g.kind == ofTicks {
			g.moveAsset(c, i)
		}
	}
	if g.limiter != nil {
		g.limiter.State(c)
	}
	g.movePending(c)
}

// movePending moves the times that are not complete.
func (g *Gatherer) movePending(c *state.Codec) {
	k := len(g.pending)
	c.Int(&k, 0, math.MaxInt32)
	for i := range k {
		if c.Err() != nil {
			return
		}
		if c.Reading() {
			var at, came time.Time
			g.moveTime(c, &at)
			g.moveTime(c, &came)
			g.moment(at, came)
		} else {
			g.moveTime(c, &g.pending[i].at)
			g.moveTime(c, &g.pending[i].first)
		}
		if i >= len(g.pending) {
			c.Fail(errors.New("two times that are open are the same"))
			return
		}
		g.moveMoment(c, g.pending[i])
	}
}

func (g *Gatherer) moveMoment(c *state.Codec, t *moment) {
	c.Bool(&t.expired)
	if g.kind == ofTicks {
		g.moveTime(c, &t.ticked.until)
	}
	w := g.width()
	for i := range t.arrived {
		there := t.arrived[i]
		c.Bool(&there)
		if !there {
			continue
		}
		if !t.arrived[i] {
			t.arrived[i] = true
			t.left--
		}
		r := &t.records[i]
		for _, x := range []*float64{&r.Open, &r.High, &r.Low, &r.Close, &r.Volume, &r.Factor} {
			c.Float(x)
		}
		c.Bool(&r.Suspended)
		c.Floats(r.Quote[:])
		average := r.Average()
		c.Int(&average, -1, len(g.extra)-1)
		r.SetAverage(average)
		r.Time, r.Extra = t.at, t.values[i*w:i*w+len(g.extra):(i+1)*w]
		c.Floats(r.Extra)
		if g.kind == ofTicks {
			g.moveTime(c, &t.ticked.began[i])
			g.moveTime(c, &t.ticked.ended[i])
			for k := range g.extra {
				g.moveTime(c, &t.ticked.known[i*len(g.extra)+k])
			}
		}
	}
}

// moveTime moves a time of the gatherer's zone.
func (g *Gatherer) moveTime(c *state.Codec, t *time.Time) {
	there := !t.IsZero()
	c.Bool(&there)
	if !there {
		if c.Reading() {
			*t = time.Time{}
		}
		return
	}
	second, nano := t.Unix(), t.Nanosecond()
	c.Int64(&second, math.MinInt64, math.MaxInt64)
	c.Int(&nano, 0, 999_999_999)
	if c.Reading() {
		*t = time.Unix(second, int64(nano)).In(g.zone)
	}
}
