// Package guard decides which requests a server answers: by their token, and by where they come
// from, so that a web page that someone opens beside the server cannot use it.
//
// # Tokens
//
// There is one for use and one for administration, which loads and unloads models; see
// [Guard.Authorize].
//
// # Web pages
//
// A browser sends requests for any page to any server that it reaches, those on its own machine
// included, and says in Sec-Fetch-Site and Origin whose page it was. [Guard.Sender] refuses what
// another site's page sends; the reader may still follow a link to the server's page. Programs send
// neither header. A page may also have its own name point to 127.0.0.1 (DNS rebinding), and then it
// is the same site to the browser: so connections to the loopback address must name the machine
// itself, an address, or one of the names that the guard was given, as they do behind a proxy that
// keeps the name.
//
// The wire formats check the media type: pages may send text and forms without asking first, but
// not JSON, so requests that change something have to be JSON.
//
// Sources: Fetch Metadata Request Headers (W3C), sections 2 and 4; The Web Origin Concept (RFC
// 6454), section 7; Fetch (WHATWG), section 3.2 on requests that need no preflight.
package guard
