// Package demomodel is a deterministic chat server in the shape of vLLM, for the
// demo, for tests and for benchmarks. It needs no weights: what it says follows
// from the request alone. What it sends (members and their order, framing, one
// HTTP chunk for each event, errors) follows recordings of vLLM 0.32.0.
//
// It serves POST /v1/chat/completions (stream and whole), GET /v1/models,
// POST /tokenize, POST /detokenize, GET /health, GET /version and a few vllm:*
// series under GET /metrics. It is no inference engine: temperature, penalties,
// stop_token_ids and grammars are accepted and do nothing.
//
// # What it says
//
// The text of the last user message decides; words count in either case.
//
//	thinking       before the answer, in the member reasoning, when the message has
//	               the word think, why or reason; when reasoning_effort is sent and not none; when
//	               thinking_token_budget is sent; when chat_template_kwargs has enable_thinking
//	               true. enable_thinking false and reasoning_effort none always win.
//	tool call      when tools are offered and the message has the word tool or weather or
//	               the name of a tool with _, - or . in it. The named tool is called, else the first that looks
//	               as if it only reads. Arguments are made from the JSON schema. Without
//	               thinking the text "Let me check." comes first.
//	two calls      with the word parallel, twice or both, unless parallel_tool_calls is false
//	tool results   as the last message: "The tool says: ..."
//	echo: TEXT     exactly TEXT; its words ask for nothing but tools
//	N words        " word" N times, one token each; N tokens does the same
//	count to N     "1, 2, 3, ..."
//	unicode        characters of two to four bytes, ANSI colours, quotes, U+2028
//	else           an answer to "capital of France" and "sky", or "This is the demo model. You said: ..."
//
// tool_choice none, auto, required and a named tool are honoured (required and
// named without text, also after results), and so are max_tokens,
// max_completion_tokens, stop, include_stop_str_in_output, n (later choices end in
// their number), stream_options, logprobs, top_logprobs, return_token_ids,
// include_reasoning, continue_final_message, response_format (json_schema: a value
// made from it).
//
// The same request gets the same bytes, but for created and the id. The id is
// "chatcmpl-" and the x-request-id, or random without one.
//
// # Tokens
//
// The tokenizer is a real one, if small: detokenize(tokenize(x)) is x for every
// text, and text that looks like the template's markup stays text. A prompt starts
// with the prompt and the generated ids of the turn before, as long as the client
// gives the answer back unchanged; Options.StripReasoning breaks that on purpose.
// Where a cut leaves a part of a character or of a call, no text can give the ids
// back and the property fails, as it does with a real model.
//
// # Faults
//
// Asked for by the header x-demo-fault, the body's member demo_fault or the text
// [demo-fault: ...] in the last user message (which also passes a translation). A
// list, separated by commas or semicolons; k counts chunks, the role chunk included.
//
//	status=N       an HTTP error, 400 to 599, with Retry-After for 429 and 503
//	wait=D         silence before the head
//	stall=D        silence of D before the first chunk, behind the head; stall alone: for ever
//	stall=D@k      the same behind k chunks
//	slow=D         D more before each token
//	cut=k          the connection is cut behind k chunks
//	error-frame=k  an error frame and [DONE] behind k chunks
//	garbage=k      a frame that is no JSON behind k chunks, then the rest
//	no-done        everything but [DONE]
//
// On whole answers cut sends half of the body, error-frame is status 500 and
// garbage a body that is no JSON.
package demomodel
