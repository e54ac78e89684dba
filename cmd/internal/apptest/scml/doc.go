// Package scml holds the tests of commands for the Supply Chain Management League: worlds that are
// played, recorded and replayed, tournaments, agents of layers and their ablation, samples of logs,
// and the Python package of an agent. What trains a whole agent is in package studies.
package scml
