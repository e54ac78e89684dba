// Package serve runs models for many callers at once, without a network: versions, loading,
// batching, sequences, limits and statistics. What puts it on the wire lies beside it (httpapi,
// grpcapi) and speaks to the [Service] interface only; live systems use a [Client] in their own
// process.
//
// # Vocabulary
//
// A model is a name under which versions are served. A version is one compiled ONNX file: a number
// of a Triton-style repository ("3"), or a digest of an artefact store. An alias is a name that
// stands for a version and may move. Where a request names a version it may use the number, the
// digest, a prefix of at least four digits of it, or an alias. A request that names none gets what
// the model's routes say, otherwise the newest version. An instance is one session of a version; a
// version has as many runs at once as it has instances.
//
// A [Source] says which models and versions there are: [Repository] for folders as Triton lays them
// out, [Artifacts] for an artefact store. [Server.Poll] makes what is served equal to what the
// sources say; [Server.Watch] does so again and again. [Server.Load] and [Server.Unload] do it for
// one model.
//
// # Life of a version
//
// LOADING: the model is read, tried elsewhere if [Options].Prove says how, compiled, its golden
// inputs are replayed, and [Options].Verify may check more. If the outputs differ, or all that
// takes longer than [Options].LoadTimeout, the version is UNAVAILABLE, the reason says why, and
// whatever served before goes on serving. Models load side by side, so one that hangs keeps no
// other from being loaded or replaced. It does keep a thread, because nothing can end an engine's
// call. With [Options].MaxAbandonedLoads of them, therefore, nothing more is loaded. READY:
// requests take it. UNLOADING: no new request gets it, those that began with it finish with it, and
// when the last one is done its sessions are closed. The table of versions is replaced as a whole
// and a request takes its version once, so no request fails and none sees a mixture while versions
// are swapped.
//
// # Life of a request
//
// [Server.Infer] resolves model and version, checks names, types and shapes, and takes a free
// instance at once when nobody waits. Where a run takes long enough to be worth it, goroutines that
// are ready go first and may join. Otherwise it queues: when an instance becomes free it takes the
// oldest request and as many of those behind it as have the same shapes, up to the largest batch,
// and runs them as one. Rows are split back in order. A full queue answers [Overloaded] at once,
// and a request whose context ends while it waits is taken out. One whose context ends while it
// runs is answered immediately, and the run is stopped, where the engine can, as soon as nobody
// waits for it. Runs that are known to take less than a fifth of a millisecond, of graphs without
// loops, are not watched: watching costs more than the run.
//
// # Sequences
//
// A model with state (the metadata entry "onnxrl.state", or [Config].State) carries it from one
// request of a sequence to the next. The state lies beside the sequence, not in an instance, so any
// instance serves any sequence and steps of different sequences share a batch. Steps of one
// sequence run one after another in the order of arrival. The first request sets Start, which
// resets the state, the last one sets End, which drops it. A sequence stays on the version it began
// with, across swaps, until it ends or has been idle for too long. Sequences are bounded in number.
// A request without a sequence gives the state inputs itself. Inputs that [Config].Controls names
// say where in its sequence a step is, and are filled by the server: models that have some take
// requests in sequences only. Ports of either kind are implicit: descriptions leave them out, and
// the configuration names them.
//
// # Triton's configuration
//
// config.pbtxt, or the same as JSON, is read field by field; the table is in configfields.go. Its
// inputs and outputs must fit the model, and reshape gives requests another shape than the model
// has. Initial states and warm-ups may lie in files of the model's folder, and a version becomes
// ready after its warm-up. A field that this server does not have is an error where answers would
// be other ones without it (ensembles, decoupled answers, a misspelt name). Otherwise it is noted
// once in the log and in [Config].Ignored (priorities, caches, accelerators).
//
// # How to add a source
//
// Implement [Source]: list models with their configuration and versions, cheaply, because watching
// lists again and again; a version's Stamp changes whenever its content does, and Open reads it.
//
// # How to add a statistic
//
// Add a counter to counters in statistics.go, advance it in one place there, and copy it in
// snapshot. What only a metrics system needs belongs into an [Observer].
package serve
