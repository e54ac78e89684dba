// Package bars reads market data and brings it into one aligned panel.
//
// # Concepts
//
// A [Source] names files and how to read them: CSV (also gzipped), Parquet or Arrow, one file, a
// folder with one file per symbol, or a glob. [Read] gives one [Series] of raw rows per symbol.
// [Clean] sorts, adjusts and checks the rows and says what it found in a [SymbolReport]; nothing is
// repaired silently. Prices as they were quoted, factors, limits and what else the source has
// beside adjusted bars are kept in each row's [Quote]. [Align] puts the series on one calendar, the
// union of their times, and gives a [Panel]: a bar and a [Status] for every time and symbol.
//
// # Nothing is invented, nothing looks ahead
//
// Before a symbol's first row it is Unlisted and has no bar. A time at which it has no row is
// Missing: the last close is carried forward and the volume is 0, and it cannot be traded. After
// Calendar.GoneAfter such times in a row it is Gone. Whether a symbol will come back is not known
// at the time, so its last row in the file plays no part. A panel of the rows up to t is therefore
// the beginning of the panel of all rows.
//
// Adjusted closes are the exception that no check can see: a vendor's adjusted price contains the
// dividends and splits up to the day the file was made. Ratios of prices within a window are not
// affected; levels are. [Data.Anchor] divides the factors of a symbol by that of its first row: a
// price then depends on what was until its day only, but for the vendor's rounding. Where an agent
// goes on with later bars, the [Anchor] of what it learnt from tells the level.
//
// # How to add a file format
//
// Implement table in a new file, and add its extensions to openTable. How to add a vendor's column
// names: a row in presets.
package bars
