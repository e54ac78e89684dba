// Package gymnasium makes any environment of Python's Gymnasium one of ours, by its id:
//
//	env: {kind: gymnasium, id: HalfCheetah-v5, workers: 2}
//	train: {num_envs: 8, …}
//
// An environment of one's own is registered in a package that Python finds, in the working
// directory or on PYTHONPATH; its id is then "package:ID-v0", and gymnasium.make imports the
// package first.
//
// # Processes
//
// A [Vector] divides its environments among worker processes, which run worker.py (embedded, with
// saving.py; Python 3.8 and the package gymnasium are all it needs). A worker steps what
// gymnasium.make returns one after the other; what a step takes and gives lies in shared memory,
// and one message of one byte asks for the step of all its environments. Workers are started by the
// first Reset and kept for the next vector. A [Factory] starts one process to describe spaces,
// limit and masks, so that mistakes in a document are errors with their place. [Env] is one
// environment in a process of its own.
//
// # Spaces
//
// Discrete, MultiDiscrete and MultiBinary become their namesakes: starts other than 0 are
// subtracted from observations and added to actions, and kept in the space, so that what leaves the
// program has the environment's numbers; several dimensions become one. A Box of
// uint8 or bool stays bytes; any other becomes float32, as in Stable-Baselines3. Bounds at the
// largest numbers of a type are none. A Dict of observations is flattened: its fields are named by
// their keys with slashes between, in Gymnasium's order; an observation that is no Dict is called
// "observation". Actions are a single space, boxes of float32 or float64. Tuple, Text, Graph,
// Sequence and OneOf are errors.
//
// An environment with a method action_masks, as sb3-contrib asks for it, is masked; Config.MaskInfo
// names a key of info instead. A step that returns six values, as Safety-Gymnasium's do, has its
// cost behind the reward, under the name "cost".
//
// # Episodes and randomness
//
// The worker keeps the final observation (and, of a truncated episode, the mask) and resets in the
// same step. Every reset is seeded, with the 31 highest bits of the first draw from
// key.Split("episode", i, e): episode e of environment i is the same for any number of workers.
// Truncated is a last step with discount 1; terminated has discount 0, also where both are said.
//
// # Saving
//
// Pickling some environments, all of MuJoCo among them, silently makes new ones. So the worker
// writes the attributes of an environment and of each wrapper around it, and puts them into a new
// one; attributes that cannot be pickled stay those of the new one. The first SaveState proves that
// this works: an environment is saved in mid-episode three times, continued in another process, and
// both must answer alike, bit for bit. Otherwise the error wraps envs.ErrCannotSave. Classic
// control, toy text and MuJoCo can be saved; Box2D cannot. Loading makes nothing but numbers,
// containers, NumPy arrays and generators, and objects of classes of the environment's own package,
// gymnasium and mujoco, and of those that an environment holds after its first reset.
//
// # Errors
//
// A fault in an answer (NaN, another shape, the API of old Gym, a mask without a valid action) is
// an error that names environment, step, episode and field. An exception of Python is a
// [PythonError]. The worker survives both. A worker that ends, or does not answer within
// Config.Timeout, is replaced up to Config.MaxRestarts times, after which the error is a
// [WorkerError]: its episodes end as truncated, with reward 0 and the last observation that was
// seen, and the run is not reproducible any more. Interrupts from the terminal do not reach
// workers, which end when their pipe does, even after SIGKILL of this process.
//
// # Protocol
//
// File descriptor 3 of the worker is the memory, which first holds the source itself; 4 is where
// requests come from, 5 where replies go. A request is one byte: S steps, R resets, C is followed
// by the length (uint32, little-endian) of a JSON object and the object, which names a method of
// the class Worker as "call" and has its arguments. A reply is a full stop, or J or E, length and
// JSON: a result, or an error with kind, env and text. Arrays in memory have an element for each
// environment, begin at multiples of 64 bytes, and have native byte order: actions, seeds (int64)
// of the next reset, rewards (float64), ends (0 goes on, 1 terminated, 2 truncated), mask,
// final_mask (written where an episode is truncated), info, and obsK and finalK for each field of
// the observation. Both sides look for the next byte for up to 200 µs before they sleep, as far as
// that pays (watch.go).
//
// cmd/peers/gymnasium_compare.py compares trajectories with those of direct calls, bit for bit, and
// cmd/peers/gymnasium_speed.py steps with SyncVectorEnv's.
//
// # How to add a space
//
//  1. Describe it in worker.py: described for its elements, Field for how an observation becomes
//     bytes, action_reader for the way back.
//  2. Say what it is here, in form.space; what differs between memory and batch is converted in
//     column.get and worker.put.
//  3. Add it to the environment Spaces of testdata, and to TestSpaces.
package gymnasium
