// Package alpaca trades an account of Alpaca's Trading API v2: the paper account, unless a
// document says that it is about real money.
//
// # Concepts
//
// [New] makes a [broker.Broker] of a [Config]. The key and the secret are read from the
// environment, [KeyVariable] and [SecretVariable], and are neither in documents nor in errors.
//
// A request that gets no answer, or one that may not be the last word (429, 5xx), is made again
// after a pause that doubles, a limited number of times. An order is sent again only after the
// broker, asked by client id, has said that it has none; should it have come meanwhile the broker
// refuses the second one, and the first is read and compared.
//
// Requests and answers are those of Alpaca's own library, alpaca-trade-api-go. It has no contexts,
// and its second request after 429 has no body; a transport of ours carries its requests, and
// alone decides on what is tried again.
//
// The protocol is that of the documentation (docs.alpaca.markets, reference of the Trading API):
// numbers are strings, a client id that is there already is refused with 422, orders that the
// account cannot pay with 403.
//
// # How to add a field
//
// Read it from the library's struct in wire.go and add it to the double in package brokertest.
package alpaca
