// Package rewrite decides what a request is and watches what an answer says: bytes in, bytes or facts out. No sockets, no clocks, no logging.
//
// ParseRoute strips the rollout prefix and recognises the model endpoints, NewPlan says what is to be done with the exchange, Dialects is the
// one table of wire dialects, and an Observer follows a stream that passes through, to find its end and to fold it for the record. Observing
// never changes a byte: an Observer that cannot follow says so and the exchange goes on without it.
//
// A Translation is one exchange between dialects: the client's request is read into canon, prepared by the Policy for the upstream and written
// in its dialect; the answer comes back whole or as a Stream. Between the upstream's decoder and the client's encoder stand filters, which know
// no dialect: they give tools the names that the client knows, seal reasoning, and find it in text where policy says so. Where the dialects are
// the same a Policy splices: members are replaced in place, and a Renamer puts the model's name back.
package rewrite
