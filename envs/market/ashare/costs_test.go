package ashare

import "testing"

// TestVectors are the vectors for A shares of section 5.7 of the reference, to the cent. Theirs are
// not rounded: 8.984 is 8.98.
func TestVectors(t *testing.T) {
	vectors := 0
	is := func(name string, got, want Fen) {
		vectors++
		if got != want {
			t.Errorf("%s: %s, expected %s", name, got, want)
		}
	}
	broker := Broker{Rate: 8_000, Least: 500} // 0.08 %, at least 5 yuan
	// The vectors charge no transfer fee.
	without := func(c Costs) Costs { c.TransferFee = 0; return c }
	before, after := on(t, "2023-08-25"), on(t, "2023-08-28")

	c := without(before.Costs(MainSZ, Sell, 1123*1000, 1000, broker))
	is("duty on 2023-08-25", c.StampDuty, 1123)
	is("commission", c.Commission, 898) // 8.984
	is("total", c.Total(), 2021)        // 20.214
	c = without(after.Costs(MainSZ, Sell, 1152*1000, 1000, broker))
	is("duty on 2023-08-28", c.StampDuty, 576)
	is("commission", c.Commission, 922) // 9.216
	is("total", c.Total(), 1498)        // 14.976
	c = without(on(t, "2023-08-15").Costs(MainSZ, Buy, 1173*1000, 1000, broker))
	is("cash after a buy", 100_000_000-1173*1000-c.Total(), 98_826_062) // 988,260.616
	// From 988,023.600 to 987,999.408 by a sale and a buy at one price, in hundred-thousandths of a
	// yuan and not rounded, as the vectors are.
	amount, both := int64(1152*1000), int64(8_000+8_000+5_000)
	is("cash after both", Fen(98_802_360_000-amount*both/10_000), 98_799_940_800)
	c = without(after.Costs(MainSZ, Buy, 891*100, 100, broker))
	is("least commission", c.Commission, 500)

	bonus := Distribution{Cash: 4_500, Bonus: 3_000}
	is("bonus shares", Fen(1445+bonus.Shares(1445)), 1879)
	is("cash", bonus.Paid(1445), 65_025)
	is("price", bonus.Reference(3179), 2411) // 24.1077

	// T+1: 1,000 bought a day, and sold from the second day on, are always 1,000 held.
	held, bought := int64(0), []int64{}
	wait := after.Settlement().Shares
	for today := range 5 {
		if today >= wait {
			held -= after.Lot(MainSZ).Sell(1000, bought[today-wait])
		}
		held += after.Lot(MainSZ).Buy(1000)
		bought = append(bought, 1000)
		is("held", Fen(held), 1000)
	}
	if vectors != 17 {
		t.Errorf("%d vectors, expected 17", vectors)
	}
}

// TestCosts: what comes on top, what does not, and how each item is rounded.
func TestCosts(t *testing.T) {
	r, cases := on(t, "2024-01-02"), 0
	for _, c := range []struct {
		side   Side
		amount Fen
		k      Broker
		want   Costs
	}{
		{Buy, 1_000_000, Broker{Rate: 2_500, Least: 500}, Costs{Commission: 500, TransferFee: 10}},
		{Sell, 10_000_000, Broker{Rate: 2_500, Least: 500}, Costs{Commission: 2_500, StampDuty: 5_000, TransferFee: 100}},
		{Sell, 10_000_000, Broker{Rate: 1_000, Net: true}, Costs{1_000, 5_000, 100, 341, 200}},
		{Sell, 1_000, Broker{}, Costs{StampDuty: 1}}, // 0.5 fen is 1
		{Sell, 999, Broker{}, Costs{}},
		{Buy, 50_000, Broker{}, Costs{TransferFee: 1}},
		{Buy, 49_999, Broker{}, Costs{}},
		{Buy, 0, Broker{Least: 500}, Costs{}},
	} {
		cases++
		if got := r.Costs(MainSH, c.side, c.amount, 100, c.k); got != c.want || got.Total() != c.want.Commission+c.want.StampDuty+c.want.TransferFee+c.want.Handling+c.want.Regulatory {
			t.Errorf("%+v: %+v, expected %+v", c, got, c.want)
		}
	}
	if cases != 8 {
		t.Errorf("%d cases, expected 8", cases)
	}
}

func TestReference(t *testing.T) {
	cases := 0
	for _, c := range []struct {
		d    Distribution
		last Fen
		want Fen
	}{
		{Distribution{Cash: 10_000}, 1000, 900},
		{Distribution{Cash: 50}, 1000, 1000}, // 9.995
		{Distribution{Cash: 51}, 1000, 999},
		{Distribution{Bonus: 10_000}, 1001, 501}, // 5.005
		{Distribution{Rights: 3_000, RightsPrice: 500}, 1000, 885},
		{Distribution{}, 1234, 1234},
	} {
		cases++
		if got := c.d.Reference(c.last); got != c.want {
			t.Errorf("%+v after %s: %s, expected %s", c.d, c.last, got, c.want)
		}
	}
	if cases != 6 {
		t.Errorf("%d cases, expected 6", cases)
	}
}
