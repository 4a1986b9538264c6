package responses

import (
	"rolltap/internal/jsonx"
	"rolltap/rewrite/canon"
)

// jsonWriter writes objects and lists member by member. What is nil is left out.
type jsonWriter struct{ dst []byte }

// comma goes in front of a member or an element, unless it is the first. No value ends in an opening bracket.
func (w *jsonWriter) comma() {
	if last := w.dst[len(w.dst)-1]; last != '{' && last != '[' {
		w.dst = append(w.dst, ',')
	}
}

func (w *jsonWriter) name(name string) {
	w.comma()
	w.dst = append(append(append(w.dst, '"'), name...), '"', ':')
}

// open begins the member name, which is an object or a list; without a name an element.
func (w *jsonWriter) open(name string, bracket byte) {
	if name == "" {
		w.comma()
	} else {
		w.name(name)
	}
	w.dst = append(w.dst, bracket)
}

func (w *jsonWriter) shut(bracket byte) { w.dst = append(w.dst, bracket) }

func (w *jsonWriter) quote(text canon.Text) {
	w.dst = append(append(append(w.dst, '"'), text...), '"')
}

func (w *jsonWriter) text(name string, text canon.Text) {
	if text != nil {
		w.name(name)
		w.quote(text)
	}
}

func (w *jsonWriter) raw(name string, value canon.Raw) {
	if value != nil {
		w.name(name)
		w.dst = append(w.dst, value...)
	}
}

// word writes a value that is known here.
func (w *jsonWriter) word(name, value string) {
	w.name(name)
	w.dst = append(w.dst, value...)
}

// string writes a text that is no inside of a JSON string yet.
func (w *jsonWriter) string(name, value string) {
	w.name(name)
	w.dst = jsonx.AppendString(w.dst, value)
}

// member writes a member whose name is as it was written before.
func (w *jsonWriter) member(name canon.Text, value canon.Raw) {
	w.comma()
	w.quote(name)
	w.dst = append(append(w.dst, ':'), value...)
}
