package logs

import (
	"strconv"
)

var contractColumns = []string{
	"index", "id", "seller_name", "buyer_name", "seller_type", "buyer_type", "delivery_time", "quantity", "unit_price", "signed_at", "nullified_at", "concluded_at", "signatures", "issues", "seller", "buyer", "partners", "product_name",
	"product", "is_buy", "caller", "sim_step", "n_neg_steps", "negotiation_id", "executed_at", "breaches", "erred_at", "dropped_at",
}

// contract is a row of contracts.csv.
type contract struct {
	seller, buyer, caller                  int
	product, quantity, time, price, rounds int
	signed, concluded                      int
	dropped                                bool
	issues, negotiation                    string
}

// contracts writes contracts.csv: day by day those that were agreed, in order, and then those with
// the outside.
func (f *Folder) contracts() error {
	t, err := newTable(f.partial, "contracts.csv", contractColumns...)
	if err != nil {
		return err
	}
	c, all := f.w.Config(), f.w.Contracts()
	system := len(c.Factories)
	n, k, e := 0, 0, 0
	write := func(x contract) {
		f.contract(t, n, x)
		for _, agent := range []int{x.seller, x.buyer} {
			f.counters[agent].contract(x)
		}
		n++
	}
	for day := 0; day <= f.w.Today(); day++ {
		for ; k < len(all) && all[k].Signed == day; k++ {
			x := contract{seller: all[k].Seller, buyer: all[k].Buyer, product: all[k].Product, quantity: all[k].Quantity, time: all[k].Time, price: all[k].Price, rounds: all[k].Rounds, signed: day, concluded: day, dropped: all[k].Dropped}
			x.caller = x.buyer
			if a, ok := f.agreements[k]; ok {
				x.caller, x.negotiation = a.caller, a.id
				b := appendRange([]byte("(ContiguousIssue(("), a.box.Low.Quantity, a.box.High.Quantity)
				b = appendRange(append(b, "), quantity), ContiguousIssue(("...), a.box.Low.Time, a.box.High.Time)
				b = appendRange(append(b, "), time), ContiguousIssue(("...), a.box.Low.Price, a.box.High.Price)
				x.issues = string(append(b, "), unit_price))"...))
			}
			write(x)
		}
		for ; e < len(c.Exogenous) && c.Exogenous[e].Day == day; e++ {
			o := c.Exogenous[e]
			x := contract{seller: system, buyer: o.Factory, caller: system, quantity: o.Quantity, time: day, price: o.Price, signed: day, concluded: -1, issues: "()"}
			if o.Demand {
				x.seller, x.buyer, x.caller, x.product = o.Factory, system+1, system+1, c.Levels()
			}
			write(x)
		}
	}
	return t.close()
}

// contract writes a row.
func (f *Folder) contract(t *table, number int, x contract) {
	seller, buyer := f.ids[x.seller], f.ids[x.buyer]
	t.whole(number)
	t.text(f.name("contract", number))
	t.text(seller)
	t.text(buyer)
	t.text(f.types[x.seller])
	t.text(f.types[x.buyer])
	t.whole(x.time)
	t.whole(x.quantity)
	t.whole(x.price)
	t.whole(x.signed)
	t.whole(-1)
	t.whole(x.concluded)
	t.text(buyer + "|" + seller)
	t.text(x.issues)
	t.text(seller)
	t.text(buyer)
	t.text("('" + buyer + "', '" + seller + "')")
	t.text("p" + strconv.Itoa(x.product))
	t.whole(x.product)
	t.flag(x.caller == x.buyer || x.seller >= len(f.ids)-2)
	t.text(f.ids[x.caller])
	t.whole(x.signed)
	t.whole(x.rounds)
	t.text(x.negotiation)
	executed, dropped := x.time, -1
	if x.dropped {
		executed, dropped = -1, x.time
	}
	t.whole(executed)
	t.text("")
	t.whole(-1)
	t.whole(dropped)
	t.end()
}
