// Package feed hands market data to the trading environment: a prepared set ([FromSet]), or a file of
// columns ([SaveColumns], [OpenColumns]), which is mapped into memory: a market that is larger than
// the memory opens at once, and only the pages that windows and fills need are read.
//
// # Files of columns
//
// All numbers are little-endian. The file begins with [ColumnsMagic]. Each column begins at a multiple
// of 4096 bytes and holds its values time by time, those of all assets beside each other: the row of
// a bar is one run of bytes, and a window is a few. At the end are an index in JSON, its length in
// eight bytes and [ColumnsMagic] again. The index has the names of assets and features, splits, scales
// and notes, and of each column name, type, place and SHA-256:
//
//	date         int64 [T]       nanoseconds since 1970
//	x            float32 [T,N,F] features, scaled
//	open, close  float64 [T,N]   prices
//	tradable     uint8 [T,N]     what can be traded at the close, trading.Sides
//	at_open      uint8 [T,N]     the same at the open
//	member       uint8 [T,N]     universe.Membership
//	volume, limit_up, limit_down, factor, and raw.open to raw.factor: float64 [T,N]
//
// Columns that a market lacks are not there. A file is written whole or not at all, and its market
// was checked before (trading.Market.Validate); [OpenColumns] compares sizes and the index, and
// [VerifyColumns] reads all.
package feed
