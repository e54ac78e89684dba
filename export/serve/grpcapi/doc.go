// Package grpcapi puts a [serve.Service] on gRPC: the service GRPCInferenceService of the Open
// Inference Protocol with Triton's extensions, and the standard health and reflection services.
//
// [NewServer] makes a server with all limits set; [Register] adds the service to a server that
// exists. Messages are those of package inference.
//
// # Answers
//
// Tensors come as raw_input_contents or as contents, one of the two for a whole request; answers
// are always raw, as Triton's are. A stream answers its requests in their order, a failed one with
// error_message, and goes on. ModelReady says false for a model that is not there or not ready;
// everything else fails with the status of its class: INVALID_ARGUMENT, NOT_FOUND, UNAVAILABLE (not
// ready, or a limit is reached), FAILED_PRECONDITION (observations have drifted and are refused),
// DEADLINE_EXCEEDED, CANCELLED, UNAUTHENTICATED, UNIMPLEMENTED, INTERNAL. Deadlines of calls are
// honoured; the parameter "timeout" (microseconds) can only shorten them.
//
// # Health
//
// The standard service's Check and Watch answer for the server, "" or the service's name, and for a
// model by its name. Watchers receive changes within a tenth of a second.
//
// # How to add a call
//
// Add it to inference.proto, generate again, and write the method of service in the file of its
// kind; a row in the conformance test.
package grpcapi
