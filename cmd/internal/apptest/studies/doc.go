// Package studies holds the tests of what trains many agents: ablations, walks forward, searches,
// evolution, populations and the routers over them, and the tests of trading as a service.
package studies
