package ashare

import "github.com/onnxrl/onnxrl/envs/market/rules"

// Side is what an order does.
type Side uint8

// The sides of an order.
const (
	Buy Side = iota
	Sell
)

// Rate is a fraction in units of 1e-7: 10,000 is 0.1 %.
type Rate = rules.Rate

// of returns the fraction of an amount, to the fen, halves up.
func of(r Rate, amount Fen) Fen { return Fen(r.Of(int64(amount))) }

// stampDuty by side, section 4.5 of the reference: china.org.cn 2005 (0.1 %; it was 0.2 %), lnmlw
// (2007), wodefinance (Cai Shui [2008] 2), rsa-tax.com (2023).
var stampDuty = []dated[[2]Rate]{
	{begin, [2]Rate{Buy: 20_000, Sell: 20_000}},
	{day(2005, 1, 24), [2]Rate{Buy: 10_000, Sell: 10_000}},
	{day(2007, 5, 30), [2]Rate{Buy: 30_000, Sell: 30_000}},
	{day(2008, 4, 24), [2]Rate{Buy: 10_000, Sell: 10_000}},
	{day(2008, 9, 19), [2]Rate{Sell: 10_000}},
	{duty2023, [2]Rate{Sell: 5_000}},
}

// transfer is a transfer fee: of the amount, or of the par value of one yuan a share, which has a
// least fee.
type transfer struct {
	ofAmount, ofPar Rate
	least           Fen
}

// transferFees. Section 4.5 of the reference (swhyhk's fee page, chinaservicesinfo 2020): par value
// in Shanghai and nothing of its own in Shenzhen at first, 0.002 % of the amount from August 2015,
// 0.001 % from 2022-04-29. The day in 2015 is the first (China Securities Depository and Clearing,
// 2015-07-01). The rates on par value and the least fee are those that investors were usually
// charged and uncertain; what Shenzhen then took for it (0.00255 %) was inside its handling fee.
// BSE's 0.0025 % is from memory.
var transferFees = [boards][]dated[transfer]{
	MainSH: {
		{begin, transfer{ofPar: 10_000, least: 100}},
		{day(2012, 6, 1), transfer{ofPar: 7_500, least: 100}},
		{day(2012, 9, 1), transfer{ofPar: 6_000, least: 100}},
		{day(2015, 8, 1), transfer{ofAmount: 200}},
		{day(2022, 4, 29), transfer{ofAmount: 100}},
	},
	MainSZ:  {{begin, transfer{}}, {day(2015, 8, 1), transfer{ofAmount: 200}}, {day(2022, 4, 29), transfer{ofAmount: 100}}},
	ChiNext: {{chiNextOpened, transfer{}}, {day(2015, 8, 1), transfer{ofAmount: 200}}, {day(2022, 4, 29), transfer{ofAmount: 100}}},
	STAR:    {{starOpened, transfer{ofAmount: 200}}, {day(2022, 4, 29), transfer{ofAmount: 100}}},
	BSE:     {{bseOpened, transfer{ofAmount: 250}}, {day(2022, 4, 29), transfer{ofAmount: 100}}},
}

// handlingFees of the exchanges. 0.00487 % until 2023-08-28 and 0.00341 % since are section 4.5's;
// the steps before are the exchanges' announcements of 2012-04-30 (0.011 and 0.0122 % to 0.0087 %
// on 2012-06-01) and of 2015-07-01 (0.00696 % to 0.00487 % on 2015-08-01). That 0.00696 % began on
// 2012-09-01, and all of BSE's, is from memory.
var handlingFees = [boards][]dated[Rate]{
	MainSH:  {{begin, 1_100}, {day(2012, 6, 1), 870}, {day(2012, 9, 1), 696}, {day(2015, 8, 1), 487}, {duty2023, 341}},
	MainSZ:  {{begin, 1_220}, {day(2012, 6, 1), 870}, {day(2012, 9, 1), 696}, {day(2015, 8, 1), 487}, {duty2023, 341}},
	ChiNext: {{chiNextOpened, 1_220}, {day(2012, 6, 1), 870}, {day(2012, 9, 1), 696}, {day(2015, 8, 1), 487}, {duty2023, 341}},
	STAR:    {{starOpened, 487}, {duty2023, 341}},
	BSE:     {{bseOpened, 5_000}, {day(2022, 12, 1), 2_500}, {duty2023, 1_250}},
}

// regulatoryFees of the CSRC: 0.002 % (section 4.5), 0.004 % before 2012 (SSE, 2012-08-31).
var regulatoryFees = []dated[Rate]{{begin, 400}, {day(2012, 1, 1), 200}}

// Broker is what a broker charges for an order; it is negotiated. The law's ceiling is 0.3 %, and 5
// yuan are usual as the least.
type Broker struct {
	Rate  Rate
	Least Fen
	// Net says that the fees of the exchange and of the CSRC come on top. Residents usually pay
	// them inside the commission.
	Net bool
}

// Costs are what one order is charged, each rounded to the fen.
type Costs struct{ Commission, StampDuty, TransferFee, Handling, Regulatory Fen }

// Total returns their sum.
func (c Costs) Total() Fen {
	return c.Commission + c.StampDuty + c.TransferFee + c.Handling + c.Regulatory
}

// Costs returns what one order costs that was filled for an amount, with that many shares. An order
// for nothing costs nothing.
func (r Rules) Costs(b Board, side Side, amount Fen, shares int64, k Broker) Costs {
	if amount <= 0 {
		return Costs{}
	}
	t := at(transferFees[b], r.date)
	c := Costs{
		Commission:  max(of(k.Rate, amount), k.Least),
		StampDuty:   of(at(stampDuty, r.date)[side], amount),
		TransferFee: max(of(t.ofAmount, amount)+of(t.ofPar, Fen(100*shares)), t.least),
	}
	if k.Net {
		c.Handling, c.Regulatory = of(at(handlingFees[b], r.date), amount), of(at(regulatoryFees, r.date), amount)
	}
	return c
}
