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
//	xenosota     shares by partner, a stock of two days      second of 2025, after observation
//	ultra        early purchases, sales by need              third of 2025
//	pricetrend   all it needs at once, at the best price     finalist of 2025, after observation
//	oneshot      closest to what today needs                 built in, of the OneShot track
//	equaldist    the same in equal parts                     built in, of the OneShot track
//	aspiration   one agreement, aspiration decays            built in, after observation
//	hash, hashsync   decide by a hash of the situation, to compare engines with
//
// Random numbers come from dice of each agent's own, so that agents agree with the originals in
// distribution. With [LoadedDice], in both programs, they agree decision by decision, which
// cmd/peers/scml_compare.py shows of all but random and those after observation. The rules were
// learnt from descriptions and from runs of scml 0.7.6 and scml-agents 0.4.13, whose text is not
// part of this program.
//
// Agents after observation do what the originals were seen to do, without knowing why: they are
// like them in their scores and how much they agree on, not decision by decision. The packages have
// no agent that is called Decay; what comes closest is aspiration.
//
// # How to add an agent
//
// Write it in a file of its own and enter it in the table in kinds.go.
package opponents
