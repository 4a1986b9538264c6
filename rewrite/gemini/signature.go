package gemini

import (
	"bytes"
	"encoding/base64"

	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
	"rolltap/rewrite/fold"
)

// appendSignature appends a thoughtSignature. The API calls it bytes: typed clients decode it as base64 and encode it again when they send it
// back, some with padding and the standard alphabet, as it is for every protocol buffer. A seal, which is a text, goes into that; a signature that
// came from Google is such bytes already.
func appendSignature(dst []byte, signature canon.Text) []byte {
	if !bytes.HasPrefix(signature, []byte(dialect.SealMark)) {
		return append(dst, signature...)
	}
	return base64.StdEncoding.AppendEncode(dst, signature)
}

// readSignature is the signature that somebody has sent: the seal in it, if there is one, else the text as it is. Both alphabets of base64 are
// read, with padding and without.
func readSignature(text canon.Text) canon.Text {
	plain := bytes.TrimRight(fold.Name(text), "=")
	const begins = "cm9sbHRhcD" // what of a seal's base64 does not depend on what follows
	if !bytes.HasPrefix(plain, []byte(begins)) {
		return text
	}
	encoding := base64.RawURLEncoding
	if bytes.ContainsAny(plain, "+/") {
		encoding = base64.RawStdEncoding
	}
	seal, err := encoding.AppendDecode(nil, plain)
	if err != nil || !bytes.HasPrefix(seal, []byte(dialect.SealMark)) || bytes.ContainsFunc(seal, func(r rune) bool { return r < '!' || r > '~' || r == '"' || r == '\\' }) {
		return text
	}
	return seal
}
