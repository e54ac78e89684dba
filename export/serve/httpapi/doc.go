// Package httpapi puts a [serve.Service] on HTTP: the Open Inference Protocol, version 2, with
// Triton's extensions that its clients use.
//
//	GET  /v2                                     the server's name, version and extensions
//	GET  /v2/health/live, /v2/health/ready       200 or 503
//	GET  /v2/models/M[/versions/V]               inputs and outputs
//	GET  /v2/models/M[/versions/V]/ready         200, or why not
//	POST /v2/models/M[/versions/V]/infer         JSON, binary, or both; gzip and deflate
//	GET  /v2/models/M[/versions/V]/config        the configuration, as Triton's
//	GET  /v2/models[/M[/versions/V]]/stats       statistics
//	POST /v2/repository/index                    what is there and in which state; {"ready":true} leaves out the rest
//	POST /v2/repository/models/M/load, unload    control of models
//	GET  /metrics                                whatever handler [Options] has
//
// V is anything that package serve takes for a version, aliases included. Everything else goes to
// [Options].Page, or is answered 404. Errors are {"error": "…"} with the status of their class: 400
// for a request that is wrong, 401 without a token that is right, 403 with one that is not enough
// and for what another site's page sends, 404 for what is not there, 405, 408 for a body that came
// too slowly, 413 for one that is too large, 415 for an unknown encoding or media type, 422 for
// observations that have drifted where the model is configured to refuse them, 429 with Retry-After
// when a limit is reached, 503 while not ready, 504 past the deadline, 500 when the model failed,
// 501 for extensions there are not.
//
// # Web pages
//
// Package guard refuses what pages of other sites send. Beyond that, loading, unloading and the
// steps of sequences take application/json (or, for inference, application/octet-stream) only, or
// no media type from programs such as Triton's clients: a page cannot send either without asking
// first, and what it asks is refused. Reading changes nothing, and neither does an inference
// outside a sequence.
//
// # Limits
//
// A body is limited before and after decompression; its memory grows with the bytes that have
// arrived, never with what a header announces, and all bodies together are limited too. Inference
// takes a place only once the body is complete, so clients that send slowly take no place from
// others; [NewServer] cuts them off. A client that goes away cancels its request.
//
// While [Options].Leaving says so, every answer ends its connection: a client that honours that
// makes its next one elsewhere, and none of its requests meets a connection that was closed under
// it.
//
// # Memory
//
// Buffers, requests and responses are pooled. A binary body is read to where its tensors are
// aligned, so they are used where they lie. What a run may still read after a deadline is not
// pooled again.
//
// # How to add an endpoint
//
// A case in route (route.go) that says its methods, and a method of handler that answers it; a row
// in the table of the conformance test.
package httpapi
