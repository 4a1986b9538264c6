package messages

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
	"rolltap/rewrite/fold"
)

// media reads an image or a document:
//
//	{"type": "image", "source": {"type": "base64", "media_type", "data"} | {"type": "url", "url"} | {"type": "file", "file_id"}}
//	{"type": "document", "source": …, "title", "context", "citations": {"enabled"}}
//
// A document's source may also be {"type": "text", "media_type", "data"} or {"type": "content", "content": string or blocks}.
func (in *callReader) media(p *canon.Part, fields []canon.Member) {
	var source []byte
	for _, f := range fields {
		switch name := string(f.Name); {
		case name == "source":
			source = in.object(f.Value, p.Path, ".source")
		case name == "title" && p.Type == canon.FilePart:
			p.Media.Title = in.text(f.Value, p.Path, ".title")
		default:
			in.beside(p, f)
		}
	}
	path := p.Path + ".source"
	if source == nil {
		in.fail(path, "is missing")
		return
	}
	kind := in.word(jsonx.Get(source, "type"), path, ".type")
	known, has := 0, func(word string) bool { return string(kind) == word }
	for it := jsonx.Object(source); it.Next(); {
		name, value := fold.Name(it.Key()), it.Value()
		if jsonx.IsNull(value) {
			continue
		}
		known++
		switch word := string(name); {
		case word == "type":
			known--
		case word == "url" && has("url"):
			p.Media.URL = in.text(value, path, ".url")
		case word == "file_id" && has("file"):
			p.Media.FileID = in.text(value, path, ".file_id")
		case word == "media_type" && (has("base64") || has("text")):
			known--
			p.Media.MediaType = in.text(value, path, ".media_type")
		case word == "data" && has("base64"):
			p.Media.Data = in.text(value, path, ".data")
		case word == "data" && has("text"):
			p.Media.Inline = in.text(value, path, ".data")
		case word == "content" && has("content"):
			p.Media.Parts, _ = in.nested(value, path, ".content")
		default:
			known--
			in.o.Losses.Add(path+"."+word, canon.NotKnown)
		}
	}
	switch {
	case has("base64"), has("url"), has("file"), p.Type == canon.FilePart && (has("text") || has("content")):
		if known == 0 {
			in.fail(path, "does not hold what its type says")
		}
	case len(kind) == 0:
		in.fail(path+".type", "is missing")
	default:
		in.fail(path+".type", "is not a source that is known")
	}
}

// imageType lets the four types pass that the API knows, and what is commonly written for one of them (dialects.md 1.7.5).
func (in *callReader) imageType(p *canon.Part) {
	if p.Media.Data == nil {
		return
	}
	if p.Media.MediaType = imageType(p.Media.MediaType); p.Media.MediaType == nil {
		in.fail(p.Path+".source.media_type", "must be image/jpeg, image/png, image/gif or image/webp")
	}
}

// imageType is the media type as the API writes it, nil if it does not know it.
func imageType(mediaType canon.Text) canon.Text {
	switch string(fold.Name(mediaType)) {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return mediaType
	case "image/jpg":
		return canon.Text("image/jpeg")
	}
	return nil
}
