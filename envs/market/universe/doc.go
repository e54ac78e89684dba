// Package universe says which symbols belong to a universe, such as an index, at which dates.
//
// [Read] takes two forms of files:
//
//   - a CSV file with the columns symbol, start_date and end_date, where the end is the first day on
//     which the symbol no longer belongs to it, and blank where it still does. A column index tells
//     several universes of one file apart;
//   - Qlib's instruments/NAME.txt: symbol, first and last day, separated by tabs, both included.
//
// A symbol may have several spans. Spans that overlap, end before they start or hold no date are
// errors that name file, line and symbol.
package universe
