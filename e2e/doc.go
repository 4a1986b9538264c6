// Package e2e has the official SDKs of OpenAI, Anthropic and Google judge what clients are sent: openai-go for Chat and Responses,
// anthropic-sdk-go for Messages, genai for Gemini. It is a module of its own, so that nobody who builds the sidecar downloads an SDK.
//
// The tests take every recorded exchange of rewrite/testdata/vllm, give it to a client of each dialect, and compare three readings of it:
//
//	recorded bytes ──decode──▶ what the upstream said
//	      │
//	  translate, in memory or in a sidecar that listens
//	      │
//	      ├──SDK: stream decoder, accumulator──▶ what an application sees
//	      └──our decoder, canon.Folder─────────▶ what we think it sees
//
// A conversation with all that applications ask for besides is in wishes_test.go. Google's SDK for Node, which is another program than the one
// for Go, judges what Gemini clients are sent where E2E_GENAI names a folder that has it (gemini_test.go).
//
// All three are equal: texts, reasoning and its seal, calls with their ids and the bytes of their arguments, stop reasons, usage, log
// probabilities, failures. Where an SDK cannot say something, or says it in its own way, the test names the exception and the reason.
//
// It promises nothing about requests but that what the SDKs send is accepted, and that a conversation which an SDK continues with its own
// answer reaches the upstream unchanged.
package e2e
