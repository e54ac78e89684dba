// Package pettingzoo makes worlds of several agents of Python's PettingZoo (Terry et al. 2021,
// arXiv 2009.14471) ours, by the modules that make them:
//
//	env: {kind: pettingzoo, id: mpe2.simple_spread_v3}
//	env: {kind: pettingzoo, id: pettingzoo.classic.connect_four_v3, api: aec}
//	env: {kind: pettingzoo, id: mpe2.simple_tag_v3, pad: true, show: [role]}
//
// Any module on Python's path does that has a function parallel_env or env, also one of one's own;
// the package pettingzoo itself is not needed. Masks, timeouts, replacement of workers and saving
// are those of package gymnasium, whose workers step the worlds: worlds.py (embedded) makes a world
// look like one environment there, and a [Vector] divides what that tells among rows of agents,
// after the workers have stepped all worlds at once.
//
// # Agents
//
// possible_agents become the rows of a world, in their order. All have the same spaces, so that one
// policy can act for them; others are an error, unless pad: true fills up what can be. show adds
// fields that say who an agent is: its number, or its role, which is what its name has in common
// with others of its kind. Agents that are not in a world's agents are absent (envs.Multi). The
// last step of an agent comes with a termination or a truncation; one that vanishes without is an
// error, and so is one that acts and receives no reward, or has no observation.
//
// # What is central
//
// Beside its own observation a row has what all agents observe, as fields all/AGENT (zeros for
// those that are absent), or with central: state what the world's method state returns. These are
// for critics alone (envs.Field.Central).
//
// # Masks
//
// A mask is the entry action_mask of the observation, as in PettingZoo's classic games, which is
// then none of its fields, or with mask_info an entry of an agent's info. info and costs name
// entries of infos, too.
//
// # Turns
//
// With api: aec agents act one after the other. Each turn is a step of the world, and of all its
// agents: those that wait have one valid action, the first one, which nobody takes. With one choice
// its probability is 1 and its entropy 0, so nothing is learnt of it but the value of waiting, and
// rewards come in the steps in which they are given. Only choices can be masked, so agents that
// take turns in a Box are an error. Agents that have ended are gone before the next turn.
//
// # Randomness and saving
//
// Every reset is seeded as in package gymnasium. A world can be saved in mid-episode where its
// objects, those inside its wrappers included, can be written and continue alike, which is tried
// out once; simple_spread can.
//
// # How to add an API
//
// Derive a class from Worlds of worlds.py, as Turns is, that has reset and step, name it in
// adapted, and let TestVectors and TestContract run over a world of testdata.
package pettingzoo
