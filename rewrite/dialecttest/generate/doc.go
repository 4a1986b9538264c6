// Package generate draws what clients and model servers send: requests and answers of every dialect that its API accepts, with what is seldom
// seen by hand in them. Texts have lone surrogates, odd escapes and line separators, numbers odd spellings, ids odd letters, objects their
// members in any order.
//
// Draws come from a rapid.T, so what fails is made smaller, and what a seed has drawn can be drawn again. Everything here is valid: a test that
// wants broken input breaks it itself. Now and then an object has a member that is newer than everybody, x_newer. An answer is drawn once and
// written twice, as a body and as the stream of the same, by hand and not by the dialects that are tested.
package generate
