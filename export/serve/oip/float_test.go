package oip

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestFloat32AsEncodingJSON(t *testing.T) {
	var n, ties int
	check := func(b uint32) {
		f := math.Float32frombits(b)
		want, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendFloat32(nil, f); string(got) != string(want) {
			// Of two shortest decimals equally far away strconv sometimes takes the odd one.
			if len(got) != len(want) || distance(f, got).Cmp(distance(f, want)) != 0 || !readsBack(f, got) {
				t.Fatalf("%#x: %s, expected %s", b, got, want)
			}
			ties++
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for e := range uint32(255) {
		for _, m := range []uint32{0, 1, 2, 3, 1<<22 - 1, 1 << 22, 1<<22 + 1, 1<<23 - 2, 1<<23 - 1} {
			check(e<<23 | m)
			check(1<<31 | e<<23 | m)
			n += 2
		}
		for range 300 {
			check(e<<23 | r.Uint32()&(1<<23-1))
			n++
		}
	}
	for i := range 20000 {
		check(math.Float32bits(float32(i)))
		check(math.Float32bits(float32(i) / 100))
		check(math.Float32bits(float32(i) * 1e17))
		n += 3
	}
	if n != 141090 || ties > n/1000 {
		t.Errorf("%d numbers, %d ties", n, ties)
	}
}

func distance(f float32, text []byte) *big.Rat {
	r, ok := new(big.Rat).SetString(string(text))
	if !ok {
		return big.NewRat(-1, 1)
	}
	return r.Abs(r.Sub(r, new(big.Rat).SetFloat64(float64(f))))
}

func readsBack(f float32, text []byte) bool {
	back, err := strconv.ParseFloat(string(text), 32)
	return err == nil && float32(back) == f
}
