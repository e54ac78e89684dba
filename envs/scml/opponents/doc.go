// Package opponents holds rule agents of SCML's Standard league, each by the exact rules of the
// agent it is named after, as observed, with its mistakes: agents are ranked against what plays,
// not against what was meant.
//
//	random       uniform offers, accepts one in ten          built in
//	syncrandom   spreads its needs over partners             built in
//	greedy       concedes from best prices, remembers them   built in
//	nothing      ends all negotiations                       built in
//	penguin      subsets of offers, seven units a day        winner of 2024
//	as0          penguin with partners' success rates        winner of 2025
//	ultra        early purchases, sales by need              third of 2025
//	hash, hashsync   decide by a hash of the situation, to compare engines with
//
// Random numbers come from dice of each agent's own, so that agents agree with the originals in
// distribution; with [LoadedDice], in both programs, they agree decision by decision, which
// cmd/peers/scml_compare.py shows of all but random. The rules were learned from descriptions and
// from runs of scml 0.7.6 and scml-agents 0.4.13, whose text is not part of this program.
//
// # How to add an agent
//
// Write it in a file of its own and enter it in the table in kinds.go.
package opponents
