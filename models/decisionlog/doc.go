// Package decisionlog is the form on disk of what served policies decide: Parquet files that one
// program writes while it answers, and that others read to learn from.
//
// # A log
//
// A log is a folder with a folder for each model, whose files are named by the time of their first
// row. A row is a decision: a row of a request, as it was answered.
//
//	time        timestamp in µs, UTC: when it was answered
//	request     string: the request's id, which the answer has as well
//	row         int32: which row of the request, from 0
//	version, digest    strings: the version that answered, and the SHA-256 of its file or artefact
//	sequence    string: the sequence that the request belongs to, empty for none
//	start, end  uint8: 1 where the request begins or ends its sequence
//	obs.<input> what the policy saw: a number, or a list of as many as the input has in a row
//	action      what it did: a number, or a list
//	log_prob    float64: the logarithm of the propensity, which is the probability of the action, or
//	            its density; NaN where it is not known
//	before.reward      float64: what the client says that the action before in the sequence has
//	                   earned; NaN where it says nothing
//	before.terminated, before.truncated    uint8: 1 where it says that the episode ended with that
//	                   action, and that this row shows its final observation
//
// # Writing
//
// A [Writer] keeps rows in memory until a file has enough of them, or is old enough, and then
// publishes it whole: a file that is there is complete. What is lost when the process is killed is
// what was not yet published. Several processes may write into one log.
//
// # Reading
//
// [Read] gives the rows of a model's files in the order of their names, one row group at a time.
// Files that are published meanwhile are read or not.
//
// # How to add a column
//
// Add it to columns (schema.go), to [Row], and to Writer.Add and rows.at, which name the columns in
// the same order.
package decisionlog
