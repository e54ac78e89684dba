// Package studies holds the tests of what trains many agents: ablations, walks forward, searches,
// evolution, populations and the routers over them, and agents of the Supply Chain Management League
// in layers, with the worlds, tournaments and logs that they learn from. It has the tests of trading
// as a service, too.
package studies
