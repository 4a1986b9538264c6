// Package rewrite decides what a request is and watches what an answer says: bytes in, bytes or facts out. No sockets, no clocks, no logging.
//
// ParseRoute strips the rollout prefix and recognises the model endpoints, NewPlan says what is to be done with the exchange, Dialects is the
// one table of wire dialects, and an Observer follows a stream that passes through, to find its end and to fold it for the record. Observing
// never changes a byte: an Observer that cannot follow says so and the exchange goes on without it.
package rewrite
