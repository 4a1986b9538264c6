// Package page writes a rollout as one HTML page that a person reads: who asked what, what the model thought, said and called, what came
// back and how long it took, call by call, with what went wrong in sight. It needs nothing else and loads nothing.
//
// All that is in a record was written by models, tools and strangers. Text reaches the page through one function, which leaves nothing that
// a browser or a terminal obeys; the policy in the head forbids every script but the page's own, whose hash it names, and every request. Images are shown where they are small and of a kind that is pixels and nothing else.
//
// The page is written as the file is read, twice, in small memory besides fingerprints (package trajectory). Texts beyond TextShown
// are cut, and the page says how long they are and in which line of the file the rest stands.
package page
