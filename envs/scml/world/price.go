package world

// Price is the trading price of a product: the mean of what was paid, in which days long past count
// less.
type Price struct {
	// Trading is money per unit, Weight the discounted number of units behind it.
	Trading, Weight float64
}

// Update takes what was delivered on a day: the quantity, and the money that was agreed for it. A
// day without trade changes nothing.
func (p *Price) Update(r *Rules, quantity int, money float64) {
	if quantity <= 0 {
		return
	}
	kept := float64(r.PriceDiscount * p.Weight)
	weight := kept + float64(quantity)
	p.Trading = (float64(p.Trading*kept) + money) / weight
	p.Weight = weight
}
