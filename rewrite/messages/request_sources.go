package messages

import (
	"bytes"
	"encoding/base64"

	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// media writes an image or a document. Its source is what the API can fetch or is given; a data URL is taken apart.
func (w *callWriter) media(p *canon.Part) {
	m := &p.Media
	if p.Type == canon.ImagePart {
		w.begin("image")
	} else {
		w.begin("document")
	}
	w.key("source")
	switch {
	case m.Data != nil:
		w.encoded(p, m.MediaType, m.Data)
	case m.URL != nil:
		w.url(p)
	case m.FileID != nil:
		if !w.own {
			w.unsupported(p.Path, "a file that another provider keeps cannot be sent to the Messages API")
		}
		w.dst = append(w.dst, `{"type":"file"`...)
		w.text("file_id", m.FileID)
		w.dst = append(w.dst, '}')
	case m.Parts != nil:
		w.dst = append(w.dst, `{"type":"content","content":[`...)
		for i := range m.Parts {
			w.block(&m.Parts[i], "tool")
		}
		w.dst = append(w.dst, ']', '}')
	case m.Inline != nil:
		w.inline(m.Inline)
	default:
		w.unsupported(p.Path, "holds nothing that can be sent to the Messages API")
	}
	if m.Title != nil {
		w.text("title", m.Title)
	}
	if m.Detail != nil && string(m.Detail) != "auto" {
		w.lose(p.Path+".detail", canon.NoEquivalent)
	}
	w.end(p)
}

func (w *callWriter) inline(text canon.Text) {
	w.dst = append(w.dst, `{"type":"text","media_type":"text/plain"`...)
	w.text("data", text)
	w.dst = append(w.dst, '}')
}

// url writes the address that the provider fetches, or what a data URL holds.
func (w *callWriter) url(p *canon.Part) {
	url := p.Media.URL
	if bytes.IndexByte(url[:min(len(url), 64)], '\\') >= 0 { // slashes may be escaped, and the scheme is looked at
		url = jsonx.AppendEscaped(nil, jsonx.AppendUnquoted(nil, url))
	}
	scheme, rest, _ := bytes.Cut(url, []byte(":"))
	switch word := string(bytes.ToLower(scheme)); {
	case w.own, word == "http", word == "https":
		w.dst = append(w.dst, `{"type":"url"`...)
		w.text("url", p.Media.URL)
		w.dst = append(w.dst, '}')
	case word == "data":
		head, data, ok := bytes.Cut(rest, []byte(","))
		mediaType, coded := bytes.CutSuffix(head, []byte(";base64"))
		if !ok || !coded {
			w.invalid(p.Path, "must be a data URL in base64")
			return
		}
		mediaType, _, _ = bytes.Cut(mediaType, []byte(";")) // charset and the like
		w.encoded(p, mediaType, data)
	default:
		w.unsupported(p.Path, "must be an http, https or data URL")
	}
}

// encoded writes what is sent along in base64: images of four types, PDF, and text, which goes as it is.
func (w *callWriter) encoded(p *canon.Part, mediaType, data canon.Text) {
	if !w.own && !isBase64(data) {
		data = jsonx.AppendUnquoted(nil, data)
		if !isBase64(data) {
			w.invalid(p.Path, "must be in base64")
			return
		}
	}
	switch {
	case p.Type == canon.ImagePart:
		if mediaType = imageType(mediaType); mediaType == nil {
			w.unsupported(p.Path, "must be image/jpeg, image/png, image/gif or image/webp")
			return
		}
	case w.own:
	case len(mediaType) == 0:
		mediaType = canon.Text("application/pdf")
	case bytes.HasPrefix(mediaType, []byte("text/")), string(mediaType) == "application/json":
		text := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
		n, _ := base64.StdEncoding.Decode(text, data)
		w.inline(jsonx.AppendEscaped(nil, text[:n]))
		return
	case string(mediaType) != "application/pdf":
		w.unsupported(p.Path, "must be a PDF or a text")
		return
	}
	w.dst = append(w.dst, `{"type":"base64"`...)
	if mediaType != nil {
		w.text("media_type", mediaType)
	}
	w.text("data", data)
	w.dst = append(w.dst, '}')
}

func (w *callWriter) invalid(path, message string) {
	if w.bad == nil {
		w.bad = canon.Invalid(path, message)
	}
}

// isBase64 tells that data is base64 with its padding, and not empty.
func isBase64(data []byte) bool {
	if len(data) == 0 || len(data)%4 != 0 {
		return false
	}
	letters := bytes.TrimRight(data[len(data)-2:], "=")
	for _, b := range data[:len(data)-2+len(letters)] {
		if b != '+' && b != '/' && (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') {
			return false
		}
	}
	return true
}
