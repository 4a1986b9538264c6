package grow

import (
	"bytes"
	"testing"
)

func TestAppend(t *testing.T) {
	var got, want []byte
	made := 0
	for i := range 20_000 {
		p := bytes.Repeat([]byte{byte(i)}, i%97)
		before := cap(got)
		got, want = Append(got, p), append(want, p...)
		if cap(got) != before {
			made += cap(got)
		}
	}
	if !bytes.Equal(got, want) {
		t.Error("it is not append")
	}
	if made > 4*len(got) {
		t.Errorf("%d bytes were made for %d", made, len(got))
	}
	if room := Room(got, 10); cap(room)-len(room) < 10 || !bytes.Equal(room, got) {
		t.Error("there is no room, or what was there is not")
	}
	if nothing := Append(nil, nil); nothing != nil {
		t.Error("nothing needs no memory")
	}
}
