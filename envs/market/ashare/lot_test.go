package ashare

import "testing"

// TestLots compares with every number of shares that the words of the rules allow.
func TestLots(t *testing.T) {
	checked := 0
	for _, l := range []Lot{{Min: 100, Step: 100}, {Min: 200, Step: 1}, {Min: 100, Step: 1}} {
		for want := range int64(450) {
			n := int64(0)
			for k := l.Min; k <= want; k++ {
				if (k-l.Min)%l.Step == 0 {
					n = k
				}
			}
			checked++
			if got := l.Buy(want); got != n {
				t.Fatalf("%+v: of %d shares %d can be bought, expected %d", l, want, got, n)
			}
			for held := range int64(450) {
				n := int64(0)
				for k := int64(1); k <= min(want, held); k++ {
					lots := k >= l.Min && (k-l.Min)%l.Step == 0
					// The odd lot as a whole, alone or with whole lots.
					odd := l.Step > 1 && held%l.Step > 0 && k%l.Step == held%l.Step
					if lots || odd || k == held {
						n = k
					}
				}
				checked++
				if got := l.Sell(want, held); got != n {
					t.Fatalf("%+v: of %d shares %d can be sold when %d are held, expected %d", l, want, got, held, n)
				}
			}
		}
	}
	if checked != 3*450*451 {
		t.Errorf("%d orders, expected %d", checked, 3*450*451)
	}
}
