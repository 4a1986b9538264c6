package tokens

import "rolltap/internal/jsonx"

// AppendSampling appends how the tokens of an answer were drawn, as far as the request that was sent says so: one JSON object with a member
// for each parameter in a fixed order, its value as it is spelled in the request, null where the engine's default holds. max_tokens is
// max_completion_tokens where the request has that.
func AppendSampling(dst, sent []byte) []byte {
	names := []string{
		"temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "seed", "logit_bias",
		"max_tokens", "max_completion_tokens",
	}
	var in [11][]byte
	jsonx.GetAll(sent, names, in[:])
	const most = 9
	if later := in[most+1]; !jsonx.IsNull(later) {
		in[most] = later
	}
	for i, raw := range in[:most+1] {
		if i == 0 {
			dst = append(dst, '{')
		} else {
			dst = append(dst, ',')
		}
		dst = append(jsonx.AppendString(dst, names[i]), ':')
		if jsonx.IsNull(raw) {
			dst = append(dst, "null"...)
			continue
		}
		dst = jsonx.AppendCompact(dst, raw)
	}
	return append(dst, '}')
}
