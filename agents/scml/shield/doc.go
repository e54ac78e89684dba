// Package shield keeps a factory of SCML's Standard league from agreeing to what it cannot do: the
// first layer of the agent of package scml, and of use around any other.
//
// # Concepts
//
// A [Ledger] knows what a factory has agreed, day by day, and which of its offers are open. By the
// rules of its world it computes how much may be bought or sold on a day at a price, so that
//
//   - no unit is owed that cannot be made: of stock, supplies that are agreed, and what is expected
//     from outside;
//   - no unit is bought that the lines cannot use, even if all that can be made is sold: on the day
//     it comes where stock shrinks; by the official rules, by which stock is free input of every
//     later day, as much as the lines use in a day may be in stock;
//   - supplies, and the making of what is owed, can be paid for on each day from the balance and
//     from what is agreed to be paid.
//
// Offers that are open count as if they were accepted where that is worse, and as if they were not
// where that is: so what is safe stays so whatever partners answer.
//
// [Around] makes a synchronous agent safe: what it accepts is rejected where it is not safe, and
// what it offers is cut down to what is.
//
// # Assumptions
//
// Exogenous contracts of later days are not known; they are taken to be the mean of those seen. A
// factory on the first or the last level can therefore still run short. Partners are taken to
// deliver, and trading prices to stay.
//
// # How to add a limit
//
// Add a number to state, compute it in measure for what is agreed and may be, and say in worse for
// which side it counts.
package shield
