// Package proxy is HTTP in, HTTP out: it serves every exchange of the sidecar and is the only package that composes the
// others.
//
// # The life of an exchange
//
// Handler.ServeHTTP makes one exchange for each request and runs it once:
//
//  1. The target is routed on its escaped path: the rollout prefix comes off, what is left is a model call in a dialect,
//     a known side endpoint, or anything else. What rolltap refuses itself is answered here, in the client's dialect.
//  2. The request body is read up to a bound (body.go). A body that fits is held, so that the transport may repeat a
//     request that it has not begun to write; a larger one streams, with a copy taken as it passes.
//  3. One httputil.ReverseProxy value is filled with the exchange's methods and served: rewrite prepares the request,
//     modifyResponse puts the gate over the answer's body, fail answers what never got an answer.
//  4. The gate (gate.go) is the last reader of the answer. It forwards everything at once but the end, which it holds
//     until commit has made the record durable, or has learned that it cannot be.
//  5. finish runs on every way out, panics included: it records what was not recorded yet, moves the metrics and writes
//     one log line, all three with the same outcome word. Which word that is stands in one table, outcome.go.
//
// # The pass-through promise
//
// Where client and upstream speak the same dialect, and for everything that is no model call, the bytes of both bodies,
// the status, the headers and the way of ending are the other side's, hop-by-hop headers, credentials and the host
// excepted. Parsing is an observation beside the bytes; its failure can delay the end of an answer, never change it, and
// never lets an unrecorded end through.
//
// # Translation
//
// Where the dialects differ the request is read whole and translated before anything is sent (translate_request.go). The
// round trip of such an exchange is its own (translate.go): it holds the status open until it is certain, keeps a waiting
// client alive, and is the body of the answer, fed by a pump goroutine that Close waits for (pump.go). The gate, the
// copy and the observer see what the client sees. A failure behind the head is the dialect's failure event, and then an
// aborted connection. Where only members are replaced (splice.go) everything else is pass-through.
//
// # The trust boundary
//
// The client chooses the path behind the prefix, headers and body; nothing that it sends chooses where rolltap connects
// to: every request goes to the configured upstream. Credentials are forwarded or replaced, never stored or logged.
package proxy
