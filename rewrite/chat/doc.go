// Package chat is the dialect of POST /v1/chat/completions: OpenAI's Chat Completions with what vLLM and others add to it.
//
// Of what passes through it makes the record: stream.go and response.go fold raw JSON and never decode a text. For translations it reads and
// writes canon's types: requests in request_*.go, whole answers in answer_*.go; streams: decoder*.go, live.go and familiar*.go read, encoder.go writes.
// The two share no state. It knows no other dialect, keeps nothing between calls, and decides nothing that dialect.Policy does not say.
package chat
