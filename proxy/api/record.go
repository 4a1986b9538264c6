package api

import (
	"bytes"
	"io"

	"rolltap/capture"
)

// writeRecord writes a record as it stands in the file, however long it is, with end behind it: without what stands in front of it and behind
// it, and on one line whatever the writer took for white space.
func writeRecord(w io.Writer, lines *capture.Lines, l capture.Line, end byte) error {
	if !l.Cut {
		_, err := w.Write(append(bytes.ReplaceAll(l.Raw, []byte{'\r'}, []byte{' '}), end))
		return err
	}
	text, ok := lines.Text(l)
	if !ok {
		return io.ErrUnexpectedEOF // a line that was cut came from a file
	}
	buf, front := make([]byte, 64<<10), true
	for {
		n, err := text.Read(buf)
		p := buf[:n]
		if front {
			p = bytes.TrimLeft(p, "\x00 \t\r\n")
			front = len(p) == 0
		}
		for i, c := range p {
			if c == '\r' || c == '\n' {
				p[i] = ' '
			}
		}
		if _, err := w.Write(p); err != nil {
			return err
		}
		if err == io.EOF {
			_, err = w.Write([]byte{end})
			return err
		}
		if err != nil {
			return err
		}
	}
}
