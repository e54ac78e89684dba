// Package qlib reads and writes folders in Qlib's data format.
//
//	calendars/day.txt               the times of all bars, one on a line, ascending
//	instruments/all.txt             symbol, first and last time of a range, separated by tabs
//	features/sh600000/close.day.bin float32, little-endian: the position in the calendar of the first
//	                                value, then a value for every time from there on, NaN where there
//	                                is none
//
// Folders of features have the symbol in lower case. The frequency, here day, may be another one,
// such as 1min. Prices are adjusted; $factor divides them into the quoted ones and multiplies
// volumes into shares.
//
// [Open] reads what a folder holds and checks it; an error names file and line. [Write] makes a
// folder that Qlib reads bit for bit (cmd/peers/qlib_folder.py).
package qlib
