// Package scml has agents of our own for the Standard league of the Supply Chain Management League,
// whose world is package envs/scml.
//
// # Layers
//
// The first layer is package shield: whatever decides inside of it agrees to nothing that its
// factory cannot keep. [Find] seats every synchronous agent of package opponents inside one, by the
// name shielded_NAME: shielded_penguin is the rule agent that the others are measured by.
//
// # How to add an agent
//
// Write a world.Synchronous in a package below this one, and let [Find] make it by a name.
package scml
