// Package decisions writes what served policies decide, and what came of it, as a log to learn
// from.
//
// A [Log] stands in front of a serve.Service. Of each sequence of requests, whose outputs have an
// action, it writes a line of JSON for each decision once its outcome is known: what was seen, what
// was done, what that earned. Requests on their own are not logged, because nothing can be known of
// what came of them.
//
//	{"episode":"7 2026-01-31T09:30:00.000000001Z","step":0,"obs":{"observation":[0.1,0.2]},"action":1,"reward":1,"info":{"time":"…","model":"cartpole","version":"sha256:…","request":"…"}}
//	{"episode":"7 2026-01-31T09:30:00.000000001Z","step":1,"obs":{"observation":[0.1,0.3]},"action":0,"reward":1,"terminated":true,"final_obs":{"observation":[0.2,0.4]},"info":{…}}
//
// Clients say it with the next request of the sequence, by parameters of the Open Inference
// Protocol: reward is what the action before has earned; terminated or truncated says that the
// episode has ended so, and that this request shows its final observation, for which no action is
// taken. Such a request ends the sequence. A request that continues a sequence without a reward,
// and a sequence that ends or falls silent, leave the rest of the episode out: it counts as cut
// off.
//
// The lines are those that "onnxrl dataset import" reads (agents/offline.LogStep). They are written
// in the background, whole ones only; when the disk cannot keep up, whole rests of episodes are
// left out and counted, so that what is written has no holes. A log that exists is continued, after
// a line that was not written to its end has been removed.
//
// # How to add a field
//
// Add it to the line in Log.append, and to agents/offline.LogStep, which refuses fields that it
// does not know; what learners do not need belongs into info.
package decisions
