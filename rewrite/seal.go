package rewrite

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/dialect"
)

// A seal is the signature, or the encrypted content, that reasoning gets here when its own model sealed it for nobody, or for another dialect
// than the client's. It carries what was said, so that it comes back byte for byte whatever the client makes of the text beside it, and with
// it a seal of the upstream's own (dialects.md 1.13):
//
//	seal     = prefix base64url(body)
//	body     = check payload               without a key: the first 8 bytes of the payload's SHA-256
//	         | nonce AES-256-GCM(payload)  with one: the nonce is made of the payload, so equal reasoning has equal seals
//	payload  = family text summary signature
//	family   = whose the signature is: 0 nobody's, c, m, r; M what Messages has redacted
//	text     = uvarint(0), absent | uvarint(length+1) bytes; summary likewise; the signature is the rest
//
// The version is in the prefix. Texts are the insides of JSON strings.
const (
	sealOpen  = dialect.SealMark + "c_"
	sealKeyed = dialect.SealMark + "k_"

	sealCheck = 8
	sealNonce = 12
)

// sealed is what a seal carries.
type sealed struct {
	text, summary canon.Text
	signature     canon.Text // of the upstream itself, when it gave one
	signedBy      canon.Dialect
	redacted      bool // signature is a redacted part of Messages, of which nobody has seen more
}

// mint makes the seal.
func (p *Policy) mint(s sealed) canon.Text {
	payload := make([]byte, 0, len(s.text)+len(s.summary)+len(s.signature)+1+2*binary.MaxVarintLen64)
	payload = append(payload, s.family())
	payload = appendSized(payload, s.text)
	payload = appendSized(payload, s.summary)
	payload = append(payload, s.signature...)

	prefix := sealOpen
	var body []byte
	if len(p.SealKey) > 0 {
		prefix = sealKeyed
		gcm, nonceKey := p.sealCipher()
		mac := hmac.New(sha256.New, nonceKey)
		mac.Write(payload)
		nonce := mac.Sum(nil)[:sealNonce]
		body = gcm.Seal(nonce, nonce, payload, []byte(prefix))
	} else {
		sum := sha256.Sum256(payload)
		body = append(sum[:sealCheck:sealCheck], payload...)
	}
	return base64.RawURLEncoding.AppendEncode(canon.Text(prefix), body)
}

// isSeal tells whether a signature is one of ours, whether or not it can be opened.
func isSeal(signature canon.Text) bool {
	return len(signature) >= len(sealOpen) && (string(signature[:len(sealOpen)]) == sealOpen || string(signature[:len(sealKeyed)]) == sealKeyed)
}

// openSeal gives back what was sealed. Nothing else opens: a seal that was changed, one of another key, somebody else's signature.
func (p *Policy) openSeal(signature canon.Text) (sealed, bool) {
	if !isSeal(signature) {
		return sealed{}, false
	}
	prefix := string(signature[:len(sealOpen)])
	body, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(string(signature[len(prefix):]), "="))
	if err != nil {
		return sealed{}, false
	}
	var payload []byte
	switch prefix {
	case sealKeyed:
		if len(p.SealKey) == 0 || len(body) < sealNonce {
			return sealed{}, false
		}
		gcm, _ := p.sealCipher()
		if payload, err = gcm.Open(nil, body[:sealNonce], body[sealNonce:], []byte(prefix)); err != nil {
			return sealed{}, false
		}
	default:
		if len(body) < sealCheck {
			return sealed{}, false
		}
		payload = body[sealCheck:]
		if sum := sha256.Sum256(payload); string(sum[:sealCheck]) != string(body[:sealCheck]) {
			return sealed{}, false
		}
	}
	return readPayload(payload)
}

// sealCipher derives what seals from the key, which may have any length.
func (p *Policy) sealCipher() (gcm cipher.AEAD, nonceKey []byte) {
	derive := func(purpose string) []byte {
		mac := hmac.New(sha256.New, p.SealKey)
		mac.Write([]byte(purpose))
		return mac.Sum(nil)
	}
	block, err := aes.NewCipher(derive("rolltap reasoning seal 1"))
	if err != nil {
		panic("internal error: " + err.Error())
	}
	if gcm, err = cipher.NewGCM(block); err != nil {
		panic("internal error: " + err.Error())
	}
	return gcm, derive("rolltap reasoning nonce 1")
}

// readPayload is strict: without a key anybody can make a seal, and what is in it goes into the upstream's request.
func readPayload(payload []byte) (s sealed, ok bool) {
	if len(payload) == 0 {
		return sealed{}, false
	}
	family, rest := payload[0], payload[1:]
	if s.text, rest, ok = readSized(rest); !ok {
		return sealed{}, false
	}
	if s.summary, rest, ok = readSized(rest); !ok {
		return sealed{}, false
	}
	switch family {
	case 'c':
		s.signedBy = canon.Chat
	case 'm', 'M':
		s.signedBy, s.redacted = canon.Messages, family == 'M'
	case 'r':
		s.signedBy = canon.Responses
	case 0:
		return s, len(rest) == 0
	default:
		return sealed{}, false
	}
	s.signature = rest
	return s, len(rest) > 0 && isInterior(rest)
}

func (s *sealed) family() byte {
	switch s.signedBy {
	case canon.Chat:
		return 'c'
	case canon.Messages:
		if s.redacted {
			return 'M'
		}
		return 'm'
	case canon.Responses:
		return 'r'
	}
	return 0
}

func appendSized(dst []byte, t canon.Text) []byte {
	if t == nil {
		return append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, uint64(len(t))+1)
	return append(dst, t...)
}

func readSized(p []byte) (t canon.Text, rest []byte, ok bool) {
	size, n := binary.Uvarint(p)
	switch {
	case n <= 0:
		return nil, nil, false
	case size == 0:
		return nil, p[n:], true
	case size-1 > uint64(len(p)-n):
		return nil, nil, false
	}
	end := n + int(size-1)
	t = p[n:end:end]
	return t, p[end:], isInterior(t)
}

// isInterior: the bytes are what may stand between the quotes of one JSON string.
func isInterior(t []byte) bool {
	quoted := make([]byte, 0, len(t)+2)
	quoted = append(quoted, '"')
	quoted = append(quoted, t...)
	quoted = append(quoted, '"')
	return jsonx.Valid(quoted)
}
