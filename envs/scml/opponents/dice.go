package opponents

import "github.com/onnxrl/onnxrl/runtime/rng"

// Dice is what an agent draws from. Its text, in a saved world, is that of the stream.
type Dice struct {
	stream rng.Stream
	loaded bool
	u      float64
}

// FairDice draw from the stream of a key.
func FairDice(key rng.Key) *Dice {
	d := new(Dice)
	d.stream.Seed(key)
	return d
}

// LoadedDice always fall alike: every uniform number is u, which is in [0, 1), and what is shuffled
// stays as it is. What an agent draws from them does not depend on the order in which it draws, so
// that it can be compared, decision by decision, with another of the same rules.
func LoadedDice(u float64) *Dice { return &Dice{loaded: true, u: u} }

// uniform returns a number in [0, 1).
func (d *Dice) uniform() float64 {
	if d.loaded {
		return d.u
	}
	return d.stream.Float64()
}

// below returns a number in 0 … n-1.
func (d *Dice) below(n int) int {
	if d.loaded {
		return int(float64(d.u * float64(n)))
	}
	return d.stream.IntN(n)
}

// integer returns a number from low to high, or low where it is not smaller.
func (d *Dice) integer(low, high int) int {
	if low >= high {
		return low
	}
	return low + d.below(high-low+1)
}

// shuffle permutes a list.
func (d *Dice) shuffle(list []int) {
	for i := len(list) - 1; i > 0 && !d.loaded; i-- {
		j := d.stream.IntN(i + 1)
		list[i], list[j] = list[j], list[i]
	}
}

// MarshalText returns the state of the stream.
func (d *Dice) MarshalText() ([]byte, error) { return d.stream.MarshalText() }

// UnmarshalText reads what MarshalText writes.
func (d *Dice) UnmarshalText(text []byte) error { return d.stream.UnmarshalText(text) }
