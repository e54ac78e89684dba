// Package benchmark is what benchmarks report: the machine, rows that compare a value with a
// reference and judge their ratio, summaries of samples, and the flags and the file of a report.
package benchmark
