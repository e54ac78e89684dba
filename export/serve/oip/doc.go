// Package oip reads and writes the JSON and binary forms of the Open Inference Protocol, version 2,
// with the binary tensor extension that Triton's clients use by default.
//
// [Request.Decode] turns a body into a [serve.Request]; [Request.AppendResponse] writes the answer
// the way the request asked for it. [AppendRequest] and [Response.Decode] are the other side, for
// clients.
//
// # The two forms
//
// A body is JSON, or JSON followed by the bytes of tensors: then the header [HeaderLength] carries
// the length of the JSON, and every tensor that has the parameter binary_data_size takes that many
// bytes after it, in order, little-endian and row-major. Strings (BYTES) are a uint32 length and
// the bytes, one after another. A length of 0 is a body without JSON for a model with one input
// ([Request.DecodeRaw]). Tensors of the binary form are views of the body where its alignment
// allows; [Offset] says where in a buffer a body must begin for that.
//
// # What is refused
//
// Everything that does not mean exactly one tensor, as an InvalidArgument that names the input:
// elements that do not match the shape, sizes that do not match the bytes, shapes whose product
// overflows, ragged lists, numbers outside the datatype, NaN and infinities in JSON (they exist in
// the binary form only), names that occur twice, lists deeper than [MaxDepth], text that is not
// UTF-8. A shape alone never allocates memory: the bytes that fill it must be there first.
//
// # Numbers
//
// Decimal numbers are read by one multiplication or division of float64 where that provably rounds
// as strconv does, and by strconv otherwise; float32 are written as the shortest decimal that reads
// back as the same number, by Schubfach (R. Giulietti, "The Schubfach way to render doubles",
// 2021), in the notation of encoding/json. Both are tested equal to strconv.
//
// # How to add a datatype
//
// A line in datatypes (datatype.go), a case in parseData (data.go) and one in appendData
// (response.go); the tests go through all datatypes there are.
package oip
