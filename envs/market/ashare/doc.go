// Package ashare is the rule book of the Chinese stock exchanges for A shares, from 2005 on.
//
// # Concepts
//
// A [Board] is a market with rules of its own; [BoardOf] tells it from a symbol. [On] gives the
// [Rules] of a day, whose methods are pure functions that allocate nothing, to be called at every
// bar. A [Listing] is what they must know of a share on that day: its board, when it was listed,
// whether it is under risk warning. Money and prices are whole [Fen], and every limit and fee is
// computed in integers and rounded as the exchanges do, halves up.
//
//	r, err := ashare.On(date)
//	l := r.Limits(ashare.Listing{Board: board, ST: st}, previousClose)
//	if l.MayBuy(price) {
//		shares := r.Lot(board).Buy(want)
//		cost := r.Costs(board, ashare.Buy, amount, shares, broker).Total()
//	}
//
// The caller says what dates and listings cannot: suspensions and days without limits are
// announced, and the previous close must be the exchange's own ([Distribution.Reference]). At the
// upper limit only buys are blocked, at the lower only sales; a day locked at one price is blocked
// on that side from open to close. Shares bought today are not for sale before [Settlement].Shares
// days have passed.
//
// [Book] is the rule book as data and accounts use it (data.rules: ashare); package audit proves
// on the fills of random policies that they keep it. [Inspect] compares bars with the book, and
// with their own limit columns; it is what onnxrl data inspect --rules ashare prints.
//
// # The rules
//
//	stamp duty        0.2 % both sides; 2005-01-24 0.1 %; 2007-05-30 0.3 %; 2008-04-24 0.1 %;
//	                  2008-09-19 0.1 % of sales only; 2023-08-28 0.05 % of sales only
//	transfer fee      Shanghai 0.1 % of par value; 2012-06-01 0.075 %; 2012-09-01 0.06 %, at least
//	                  1.00; Shenzhen none of its own; 2015-08-01 both 0.002 % of the amount;
//	                  2022-04-29 0.001 %; BSE 0.0025 % until then
//	handling fee      0.011 % (SH), 0.0122 % (SZ); 2012-06-01 0.0087 %; 2012-09-01 0.00696 %;
//	                  2015-08-01 0.00487 %; 2023-08-28 0.00341 %; BSE 0.05 %; 2022-12-01 0.025 %;
//	                  2023-08-28 0.0125 %; usually inside the commission
//	CSRC's fee        0.004 %; 2012-01-01 0.002 %; usually inside the commission
//	commission        negotiated, with a least amount for an order, usually 5.00
//	price limits      main boards 10 %, ST 5 %; 2026-07-06 ST 10 %
//	                  ChiNext 2009-10-30 10 %; 2020-08-24 20 %, ST too
//	                  STAR 2019-07-22 20 %, ST too; BSE 2021-11-15 30 %
//	first days        main boards and ChiNext: day 1 without limits; listed from 2014-01-01 +44 %
//	                  and −36 % of the price of issue; from 2020-08-24 (ChiNext) and 2023-04-10
//	                  (main boards) 5 days without; STAR 5 days; BSE 1 day; without limits, halts of
//	                  10 minutes at 30 and 60 %
//	delisting period  2012-07-07 (SZ), 2013-01-01 (SH) 30 days at the board's limit, not ST's;
//	                  2020-12-31 15 days, the first without limits
//	tick              0.01; limits lie a tick at least off the previous close
//	lots              buys of 100, 200, …; STAR 200 and any number above; BSE 100 and any above;
//	                  what is left of a lot is sold in one order; at most 1,000,000 an order, STAR
//	                  100,000, ChiNext 300,000 from 2020-08-24
//	settlement        shares T+1; the cash of sales buys at once and is withdrawn T+1
//	sessions          9:15–9:25 opening call, without cancellation from 9:20; 9:30–11:30;
//	                  13:00–15:00, the last 3 minutes a closing call in Shenzhen from 2006-07-01, in
//	                  Shanghai from 2018-08-20; after hours 15:05–15:30 STAR, ChiNext from
//	                  2020-08-24, all of Shanghai from 2026-07-06
//	circuit breaker   2016-01-04 to 2016-01-07: CSI 300 off by 5 % 15 minutes, from 14:45 on to the
//	                  close; 7 % to the close
//
// Beside each table in the code stands where it is from, and what in it is uncertain. Not in the
// book: B shares, funds and bonds, block trades, margin and short sales, the bands around the last
// price within which orders are accepted, the cap on buys of shares under risk warning, halts on
// first days before the registration system, and dividend tax.
//
// # A rule has changed: where to add it
//
// Add a row with its first day and its source to the rule's table (limits.go, lot.go, costs.go,
// session.go), and to the table above. TestDated fails until it has a case for the day and one
// within the week before. A rule of a new kind is a table more, a method of [Rules] that looks it
// up with at, and an entry in the tests' rules.
package ashare
