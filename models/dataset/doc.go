// Package dataset feeds supervised training from tables larger than memory.
//
// A [Table] is a list of blocks — the row groups of a Parquet file, the record batches of an Arrow
// file, runs of lines of a CSV file — of which a few are in memory at a time. A [Mapping] says
// which columns make up each input and target. A [Loader] walks the rows once per epoch in a seeded
// order that can be resumed exactly: blocks are permuted, a window of blocks is read, and the
// window's rows are permuted. When the whole table fits into the window, that is a full shuffle.
//
// To add a file format: implement [Table] in table_<format>.go and add its extension to Open.
package dataset
