// Package temporal trains intervals on other machines, by Temporal. [Executor] is the run.Executor
// of a program that has tasks, such as a population; [Worker] carries tasks out on a machine. Both
// speak with a Temporal server, which keeps what is to be done and what was done through the end of
// any of them, and with storage for objects (package runtime/objects), which checkpoints and run
// directories go through. Only references to them are in Temporal's histories.
//
//	temporal://HOST:PORT/NAMESPACE?queue=NAME&objects=URL
//
// # What is a workflow
//
// What a program trains together, such as a population, is one workflow ([Group]), whose ID is in
// the file executor.json of its directory. A task is an update of it: the update that is accepted
// is carried out, also when the program that has sent it ends. A task that is sent again, by a
// program that was started again, is the one that goes on, or what has come of it. An interval is
// an activity, with the task's key for its ID: it says once a second how far it has come, and saves
// its run directory now and then, so that one whose worker has ended goes on elsewhere from there.
// The workflow is continued as new when its history grows, between tasks.
//
// # Results
//
// A task is trained as in any process, see run.Task: results do not depend on which worker it was,
// on how often it was begun, or on what failed meanwhile. A worker of another version of the
// program carries nothing out. One with another engine or processor may differ in the last bits;
// that is said, or with strict=true in the URL refused.
//
// # Capabilities
//
// A task queue is what workers of a kind serve, such as those with a GPU or much memory: programs
// name one in the URL, and workers those that they serve.
package temporal
