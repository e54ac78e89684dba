package live

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/state"
)

// A state is stateMagic, stateVersion as a byte, the digest of the pipeline, the fields, and the
// SHA-256 of all that.
const (
	stateMagic   = "onnxrl feed "
	stateVersion = 1
	stateHeader  = len(stateMagic) + 1 + sha256.Size
)

// SaveState returns all that the feed knows. A feed of the same pipeline that loads it goes on with
// the same bits.
func (f *Feed) SaveState() []byte { return f.save(f.held) }

// SaveWarm is SaveState without the rows of the window: the feed that loads it has the same
// features, and is ready after W more bars.
func (f *Feed) SaveWarm() []byte { return f.save(0) }

func (f *Feed) save(held int) []byte {
	block := append([]byte(stateMagic), stateVersion)
	c := state.Writer(append(block, f.digest[:]...))
	was := f.held
	f.held = held
	f.move(c)
	f.held = was
	sum := sha256.Sum256(c.Bytes())
	return append(c.Bytes(), sum[:]...)
}

// LoadState makes the feed what it was when the state was saved. A state that is damaged, or of
// another pipeline, is an error that changes nothing. Views that were taken before do not show the
// feed any more.
func (f *Feed) LoadState(block []byte) error {
	fresh := newFeed(f.p, f.layout)
	if err := fresh.load(block); err != nil {
		return fmt.Errorf("load the state of a feed: %w", err)
	}
	*f = *fresh
	return nil
}

func (f *Feed) load(block []byte) error {
	if len(block) < stateHeader+sha256.Size || !bytes.HasPrefix(block, []byte(stateMagic)) {
		return fmt.Errorf("%d bytes that are no state", len(block))
	}
	if v := block[len(stateMagic)]; v != stateVersion {
		return fmt.Errorf("version %d, this program knows version %d", v, stateVersion)
	}
	body := block[:len(block)-sha256.Size]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], block[len(body):]) {
		return errors.New("it is damaged: the digest differs")
	}
	if !bytes.Equal(body[len(stateMagic)+1:stateHeader], f.digest[:]) {
		return errors.New("it belongs to another pipeline")
	}
	return f.read(body[stateHeader:])
}

// read takes the fields of a fresh feed.
func (f *Feed) read(fields []byte) error {
	c := state.Reader(fields)
	f.move(c)
	if c.Err() == nil && len(c.Bytes()) > 0 {
		c.Fail(fmt.Errorf("%d bytes too many", len(c.Bytes())))
	}
	return c.Err()
}

// Limits of seconds since 1970 for years of four digits.
const minSecond, maxSecond = -62167219200, 253402300799

// move moves all fields.
func (f *Feed) move(c *state.Codec) {
	c.Int(&f.rows, 0, math.MaxInt32)
	c.Int(&f.held, 0, f.p.Window)
	c.Bool(&f.begun)
	c.Bool(&f.started)
	second, nano := f.time.Unix(), f.time.Nanosecond()
	c.Int64(&second, minSecond, maxSecond)
	c.Int(&nano, 0, 999_999_999)
	if c.Reading() && f.begun {
		f.time = f.wall(time.Unix(second, int64(nano)).UTC())
	}
	for i := range f.assets {
		a := &f.assets[i]
		status := int(a.status)
		c.Int(&status, int(bars.Unlisted), int(bars.Gone))
		a.status = bars.Status(status)
		c.Int(&a.gap, 0, f.goneAfter+1)
		for _, x := range []*float64{&a.bar.Open, &a.bar.High, &a.bar.Low, &a.bar.Close, &a.bar.Volume} {
			c.Float(x)
		}
		a.bar.Time = f.time
		c.Floats(a.extra)
		a.stream.State(c)
		c.Bool(&a.traded)
		for _, q := range f.quotes {
			c.Float(&a.quote[q])
		}
		f.price(i)
	}
	for back := f.held; back > 0; back-- {
		for _, r := range []*ring{&f.raw, &f.scaled} {
			if c.Reading() {
				c.Float32s(r.advance())
				r.mirror()
			} else {
				c.Float32s(r.ago(back))
			}
		}
	}
}
