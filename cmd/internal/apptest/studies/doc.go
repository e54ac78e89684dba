// Package studies holds the tests of what trains many agents: ablations, walks forward, searches,
// evolution, populations and the routers over them.
package studies
