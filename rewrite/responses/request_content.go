package responses

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// part writes a part of a message or of an output; text is what a text is called there.
func (w *callWriter) part(p *canon.Part, text string) {
	start := len(w.dst)
	switch p.Type {
	case canon.TextPart:
		w.open("", '{')
		w.string("type", text)
		w.text("text", p.Text)
		if text == "output_text" {
			w.cites(p)
		} else if len(p.Cites) > 0 {
			w.lose(p.Path+"."+w.citeWord(), canon.NoEquivalent)
		}
	case canon.RefusalPart:
		w.open("", '{')
		w.word("type", `"refusal"`)
		w.text("refusal", p.Text)
	case canon.ImagePart, canon.FilePart, canon.AudioPart, canon.VideoPart:
		if text == "output_text" && !w.own {
			w.fail(canon.Unsupported(p.Path, "the Responses API takes no media in what the model said"))
			return
		}
		if !w.media(p) {
			return
		}
	default:
		w.kept(p)
		return
	}
	if p.Cache != nil && !w.own {
		w.lose(p.Path+".cache_control", canon.NoEquivalent)
	} else {
		w.raw("cache_control", p.Cache)
	}
	for i, e := range p.Extra {
		if !w.own {
			w.lose(inside(e.In(p.Path), string(jsonx.Unquoted(e.Name))), canon.NotKnown)
		} else if ofPart(e) {
			w.extra(p.Extra[i:i+1], p.Path)
		}
	}
	w.shut('}')
	if w.err != nil {
		w.dst = w.dst[:start]
	}
}

// cites writes annotations, which a text of the model must have. Those of other dialects look otherwise.
func (w *callWriter) cites(p *canon.Part) {
	if !w.own {
		if len(p.Cites) > 0 {
			w.lose(p.Path+"."+w.citeWord(), canon.NoEquivalent)
		}
		w.word("annotations", "[]")
		return
	}
	w.open("annotations", '[')
	for _, c := range p.Cites {
		w.comma()
		w.dst = append(w.dst, c...)
	}
	w.shut(']')
}

func (w *callWriter) plainPart(kind string, text canon.Text) {
	w.open("", '{')
	w.string("type", kind)
	w.text("text", text)
	w.shut('}')
}

// media begins the part of an image, a file, a sound or a video, and leaves it open. False: it has written all that there is, or nothing.
func (w *callWriter) media(p *canon.Part) bool {
	m := &p.Media
	if m.FileID != nil && w.req.From == canon.Messages {
		w.fail(canon.Unsupported(p.Path, "files that another provider keeps cannot be sent"))
		return false
	}
	switch p.Type {
	case canon.ImagePart:
		w.open("", '{')
		w.word("type", `"input_image"`)
		w.located("image_url", m)
		if m.Detail != nil {
			w.text("detail", m.Detail)
		} else {
			w.word("detail", `"auto"`)
		}
	case canon.FilePart:
		return w.file(p)
	case canon.AudioPart:
		if m.Data == nil {
			w.fail(canon.Unsupported(p.Path, "the Responses API takes sound as data only"))
			return false
		}
		w.open("", '{')
		w.word("type", `"input_audio"`)
		w.open("input_audio", '{')
		w.text("data", m.Data)
		w.text("format", m.Format)
		w.shut('}')
	default:
		if m.URL == nil || !w.own {
			w.fail(canon.Unsupported(p.Path, "the Responses API takes no video"))
			return false
		}
		w.open("", '{')
		w.word("type", `"input_video"`)
		w.text("video_url", m.URL)
	}
	return true
}

// located writes where an image is: a URL, data as a data URL, or file_id.
func (w *callWriter) located(name string, m *canon.Media) {
	switch {
	case m.URL != nil:
		w.text(name, m.URL)
	case m.Data != nil:
		w.name(name)
		w.dst = append(append(append(w.dst, `"data:`...), m.MediaType...), `;base64,`...)
		w.dst = append(append(w.dst, m.Data...), '"')
	default:
		w.text("file_id", m.FileID)
	}
}

// file is media for a file. A document that is text, or that has parts, goes as these.
func (w *callWriter) file(p *canon.Part) bool {
	m := &p.Media
	if m.Inline != nil || m.Parts != nil {
		if m.Inline != nil {
			w.plainPart("input_text", m.Inline)
		}
		for i := range m.Parts {
			w.part(&m.Parts[i], "input_text")
		}
		if m.Title != nil {
			w.lose(p.Path+".title", canon.NoEquivalent)
		}
		w.marks(p)
		return false
	}
	w.open("", '{')
	w.word("type", `"input_file"`)
	w.text("filename", m.Title)
	switch {
	case m.URL != nil && isDataURL(m.URL), m.Data != nil && m.MediaType != nil:
		w.located("file_data", m)
	case m.Data != nil:
		w.text("file_data", m.Data)
	case m.URL != nil:
		w.text("file_url", m.URL)
	default:
		w.text("file_id", m.FileID)
	}
	return true
}

func isDataURL(url canon.Text) bool { return len(url) >= 5 && string(url[:5]) == "data:" }
