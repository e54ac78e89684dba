// Package report turns the track records of an agent and its baselines into one honest document:
// numbers, plots, tables and a page that opens offline.
//
// # Vocabulary
//
// A [Document] holds plain slices and says nothing about how they came about. A record has T+1
// dates and values, the first of them before the first decision, and T decisions between them.
// Strategies are the agent, the baselines it is compared with, and the same agent trained with
// other seeds. The benchmark is equal-weight buy-and-hold of the same assets: the bar to beat,
// because whoever chose the assets knew how they would do.
//
// # What is written
//
// [Summarise] computes all numbers (see package performance, which names the convention of each).
// [Write] puts them into a folder with plots (package plots), tables as CSV and Parquet and
// report.html. The same document gives the same bytes. Everything is computed before the first file
// is replaced, each file as a whole, and report.html last.
//
// # Honesty
//
// The first line of every form is the [Verdict], computed from the numbers: a run that does not
// beat the benchmark in total return and in the Sharpe ratio says so. A run that does, but whose
// deflated Sharpe probability is below 95% or whose lead is within the bootstrap's interval, says
// that this is no evidence of skill; and fills at prices that were known when the decision was
// taken come before everything else. So does everything else that knows the future
// ([Document].LookAhead), and data that the agent was trained on or chosen by ([Document].Seen). A
// result that a delay of one bar destroys by more than chance is lag-fragile, and no evidence.
//
// # How to add
//
// A metric: package performance. A plot: package plots, a call in figures, and its name in possible
// where a report may lack it. A section of the page: a block in page.html.tmpl with its data in the
// Summary; colours, text and tables are those of package theme. A table: a method in tables.go that
// lists its columns once, for both formats.
package report
