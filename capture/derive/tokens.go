package derive

import "rolltap/internal/jsonx"

// Tokens are the counts of one call; -1 is unknown. A count is an integer of at least 0 and nothing else: no boolean, no float,
// no text.
type Tokens struct {
	In, Out, Reasoning, Total int64
	CacheCreation             int64
	Cached                    int64 // what came from a cache; a hit when above 0
}

// ReadTokens reads the usage of any dialect; what is no object knows nothing.
//
// Usage with a member cache_read_input_tokens or cache_creation_input_tokens is native Messages usage, whose input excludes
// what the cache gave and took, so both are added. A total that the provider told is trusted.
func ReadTokens(usage []byte) Tokens {
	keys := []string{"input_tokens", "prompt_tokens", "output_tokens", "completion_tokens", "cache_read_input_tokens",
		"cache_creation_input_tokens", "total_tokens", "reasoning_output_tokens", "cached_input_tokens",
		"output_tokens_details", "completion_tokens_details", "prompt_tokens_details", "input_tokens_details"}
	var got [13][]byte
	jsonx.GetAll(usage, keys, got[:])
	t := Tokens{In: first(got[0], got[1]), Out: first(got[2], got[3]), Total: count(got[6]), CacheCreation: count(got[5])}
	read := count(got[4])
	if read >= 0 || t.CacheCreation >= 0 {
		cache := max(read, 0) + max(t.CacheCreation, 0)
		if t.In >= 0 || cache > 0 {
			t.In = max(t.In, 0) + cache
		}
	}
	if t.Total < 0 && t.In >= 0 && t.Out >= 0 {
		t.Total = t.In + t.Out
	}
	t.Reasoning = first(jsonx.Get(got[9], "reasoning_tokens"), jsonx.Get(got[10], "reasoning_tokens"), got[7])
	t.Cached = first(
		jsonx.Get(got[11], "cached_tokens"), jsonx.Get(got[11], "cached_input_tokens"),
		jsonx.Get(got[12], "cached_tokens"), jsonx.Get(got[12], "cached_input_tokens"),
		got[4], got[8])
	return t
}

func count(raw []byte) int64 {
	if n, ok := jsonx.Int(raw); ok && n >= 0 && n <= 1<<53 {
		return n
	}
	return -1
}

// first is the first valid count.
func first(raws ...[]byte) int64 {
	for _, raw := range raws {
		if n := count(raw); n >= 0 {
			return n
		}
	}
	return -1
}
