// Package exchange says on which days, and at which hours of a day, an exchange trades.
//
// [Open] gives the calendar of an exchange by its code: xnys (New York, by rule from 1993 on, with
// the half days and the days on which it stayed closed for one reason), xshg and xshe (Shanghai and
// Shenzhen, whose holidays the State Council decides year by year and which are therefore a list,
// 2005 to 2026), or one from a CSV file of trading days. A calendar says nothing about days that it
// does not know ([Calendar.Knows]).
//
// # How to add an exchange
//
// A function that makes a Calendar, and its code in calendars.
package exchange
