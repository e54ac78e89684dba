// Package recorded joins runs with data sets: it has policies of runs act for a data set, imports what
// runs and servers have kept as one, and estimates policies by it.
package recorded
