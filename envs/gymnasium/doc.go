// Package gymnasium makes any environment of Python's Gymnasium one of ours, by its id:
//
//	env: {kind: gymnasium, id: HalfCheetah-v5, workers: 2}
//	train: {num_envs: 8, …}
//
// # Concepts
//
// A [Vector] divides its environments among worker processes. Each runs worker.py, which is
// embedded with saving.py and needs nothing but Python 3.8 and the package gymnasium: it calls
// gymnasium.make, and steps plain environments one after the other, with the wrappers that make
// puts around them and no gymnasium.vector. All that a step of a worker's environments takes and
// gives lies in memory that both processes map, so one message of one byte asks for the step of all
// of them, and one says that it is done.
//
// A [Factory] starts a first process, which describes spaces, limit and masks; mistakes in a
// document are errors at this point, with their place. Workers are started by the first Reset.
// Processes that vectors leave are kept for the next ones, as many as one vector has, so only the
// first evaluation starts any. [Env] is one environment in a process of its own, for code that
// steps environments singly; each costs a process and a message. A run's wrappers do not need them:
// they are put around the rows of a vector, and its workers keep the time limit.
//
// # Spaces
//
// Discrete, MultiDiscrete and MultiBinary become their namesakes: starts other than 0 are
// subtracted from observations and added to actions, and several dimensions become one. A Box of
// uint8 or bool stays bytes; any other becomes float32, the nearest to what Python has, as in
// Stable-Baselines3, since that is what networks read. Bounds at the largest numbers of a type are
// none. A Dict of observations is flattened: its fields are named by their keys with slashes
// between, in Gymnasium's order; an observation that is no Dict is called "observation". Actions
// are a single space, boxes of float32 or float64. Tuple, Text, Graph, Sequence and OneOf are
// errors that name the place.
//
// An environment with a method action_masks, as sb3-contrib asks for it, is masked; Config.MaskInfo
// names a key of info instead, such as Taxi's action_mask. Masks are as envs.MaskLen describes.
// Config.Info makes numbers of info diagnostics, and Config.Costs costs; a step that returns six
// values, as Safety-Gymnasium's do, has its cost behind the reward, under the name "cost".
//
// # Episodes and randomness
//
// Episodes follow each other as package vector says: the worker keeps the final observation (and,
// of a truncated episode, the mask) and resets in the same step. Every reset is seeded, with the 31
// highest bits of the first draw from key.Split("episode", i, e), so episode e of environment i is
// the same for any number of workers, as far as the environment takes all of its randomness from
// the seed. Truncated, of time limits too, is a last step with discount 1; terminated has discount
// 0, also where both are said. Where an environment has no limit, vector.Options.Limit counts in
// the worker, and so does vector.Options.Truncate in any case.
//
// # Saving
//
// Python objects cannot be saved in general, and pickling some, among them all of MuJoCo, silently
// makes a new one: their __getstate__ keeps only what they were made with. So the worker writes the
// attributes of an environment and of each wrapper around it, and puts them into a new one;
// attributes that cannot be pickled, such as windows, stay those of the new one. Whether that works
// is proved before it is relied on: the first SaveState starts a process in which an environment is
// saved in mid-episode three times, continued in another, and both must answer alike, bit for bit.
// Otherwise the error wraps envs.ErrCannotSave and says what differed, and a run is saved without
// its environments. Classic control, toy text and MuJoCo can be saved; Box2D cannot. A saved state
// holds data: loading makes nothing but numbers, containers, NumPy arrays and generators, and
// objects of classes of the environment's own package, gymnasium and mujoco.
//
// # What goes wrong
//
// Whatever is wrong with an answer (NaN, another shape, the API of old Gym, a mask without a valid
// action) is an error that names environment, step, episode and field; an exception of Python is a
// [PythonError] with its traceback. The worker survives, and Reset begins again. A worker that
// ends, or does not answer within Config.Timeout, is noticed at once, ended with everything it
// started, and replaced up to Config.MaxRestarts times. Its episodes end there as truncated, with
// reward 0 and the last observation that was seen, so the run goes on; the log is told with the
// worker's last lines, for one that hangs with the place. After that, the [WorkerError] ends the
// run. Runs with a replaced worker are not reproducible.
//
// What environments print goes nowhere else than into such errors, unless Config.Print is set;
// their standard input is empty. An interrupt from the terminal does not reach workers, so a run
// can finish its rollout. When this process ends, even by SIGKILL, workers read the end of their
// pipe and end too, in the middle of a step if need be. The shared memory belongs to no folder, so
// nothing is left behind.
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
// the observation. Workers look for the next byte for up to 200 µs before they sleep, since waking
// a halted processor takes longer than a step of small environments, and give way meanwhile; the
// caller does so too where it has a processor that no worker needs. Both stop looking where that
// does not pay (watch.go).
//
// # Measurements
//
// cmd/peers/gymnasium_compare.py compares trajectories with those of direct calls, bit for bit.
// cmd/peers/gymnasium_speed.py measures a step of eight CartPoles through one worker beside a plain
// loop in that worker, and HalfCheetah in two workers beside SyncVectorEnv. On two quiet cores of a
// virtual machine, a step of eight CartPoles took 68 to 76 µs beside 48 to 52 µs of the loop, and
// eight HalfCheetahs in two workers 316 to 389 µs beside 366 to 436 µs of SyncVectorEnv (medians of
// 61 rounds, five runs; in a sixth 472 beside 407 µs). CartPoles are too small for two workers: 113
// to 147 µs beside 64 to 81 µs.
//
// # How to add a space
//
//  1. Describe it in worker.py: described for its elements, Field for how an observation becomes
//     bytes, action_reader for the way back.
//  2. Say what it is here, in form.space; what differs between memory and batch is converted in
//     column.get and worker.put.
//  3. Add it to the environment Spaces of testdata, and to TestSpaces.
//
// # How to use an environment of your own
//
// Register it in a package that Python finds, in the working directory or on PYTHONPATH, and write
// "package:ID-v0" as its id: gymnasium.make imports the package first.
package gymnasium
