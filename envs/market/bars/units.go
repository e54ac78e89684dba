package bars

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// unitSteps are what amount/volume is of the price where one of the two is counted in lots of 100
// shares, or in thousands or ten thousands, and taken for shares or money.
var unitSteps = []float64{1e-4, 1e-3, 1e-2, 0.1, 10, 100, 1e3, 1e4}

// unitCount compares amount/volume of the rows of a symbol with their close.
type unitCount struct {
	rows int
	off  [8]int // by unitSteps
}

func (u *unitCount) add(r *Record) {
	ratio := r.Quote[Amount] / r.Volume / r.Close
	if !(r.Volume > 0 && ratio > 0) || math.IsInf(ratio, 0) {
		return
	}
	u.rows++
	for i, step := range unitSteps {
		// The average price of a bar is near its close, even on days of a limit.
		if math.Abs(math.Log(ratio/step)) < 0.2 {
			u.off[i]++
		}
	}
}

// step is the one that nine of ten rows have, 0 where there is none.
func (u *unitCount) step() float64 {
	for i, n := range u.off {
		if u.rows > 0 && n*10 >= u.rows*9 {
			return unitSteps[i]
		}
	}
	return 0
}

// UnitNotes says of which symbols the amount divided by the volume is a power of ten times the price:
// one of them is not in shares or not in the currency of the prices.
func (d *Data) UnitNotes() (notes []string) {
	if d.Adjustment.Already || !d.HasVolume {
		return nil
	}
	found := map[float64][]string{}
	for _, s := range d.Each() {
		if !slices.Contains(s.Quoted, Amount) {
			continue
		}
		var u unitCount
		for i := range s.Records {
			u.add(&s.Records[i])
		}
		if step := u.step(); step != 0 {
			found[step] = append(found[step], s.Symbol)
		}
	}
	for _, step := range unitSteps {
		symbols := found[step]
		if len(symbols) == 0 {
			continue
		}
		likely := map[float64]string{
			100: "volume in lots of 100 shares", 0.1: "volume in lots of 100 shares and amount in thousands", 1e-3: "amount in thousands", 1e-4: "amount in ten thousands",
			1e-2: "volume that was counted in shares and multiplied by 100, or lots of 100 shares with an amount in ten thousands", 10: "volume in tens of shares", 1e3: "volume in thousands of shares", 1e4: "volume in ten thousands of shares",
		}[step]
		notes = append(notes, fmt.Sprintf("amount/volume is about %s times the price for %s, as of %s: volumes are taken for shares and amounts for money; name the vendor with source.preset, or the unit in the header, such as volume(手) or amount(千元)",
			strconv.FormatFloat(step, 'f', -1, 64), some(symbols), likely))
	}
	return notes
}
