package source

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/segmentio/encoding/json"

	"github.com/heddle-stream/heddle/txn"
)

func newReader(format string, app *txn.App, s *Files) (reader, error) {
	switch format {
	case "jsonl":
		return &jsonReader{s: s, inputs: app.Inputs()}, nil
	case "csv":
		return newCSV(app, s)
	default:
		return &binReader{s: s, types: len(app.Inputs())}, nil
	}
}

// jsonReader reads a line of JSON for each event.
type jsonReader struct {
	s      *Files
	inputs []txn.Input
	last   int // type of the event before
}

func (r *jsonReader) begin() {}

func (r *jsonReader) ready() bool { return r.s.hasLine() }

func (r *jsonReader) next(f *txn.Feed) (int64, int, error) {
	text, n, err := r.s.line()
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return n, 1, err
	}
	in, event, bad := r.event(text)
	if bad != "" {
		return n, 1, &badInput{1, bad, text}
	}
	if err := in.PushJSON(f, event); err != nil {
		return n, 1, &badInput{1 + cap(text) - cap(event), fmt.Sprintf("event %s: %v", in.Name(), err), text}
	}
	return n, 1, nil
}

// event finds the type of an event and its value in a line.
func (r *jsonReader) event(text []byte) (in txn.Input, event []byte, bad string) {
	name, value, tagged := tag(text)
	if tagged {
		for i := range r.inputs { // the type before, most likely
			at := (r.last + i) % len(r.inputs)
			if r.inputs[at].Name() == string(name) && (value[0] == '{' || r.inputs[at].Type().Kind() != reflect.Struct) {
				r.last = at
				return r.inputs[at], value, ""
			}
		}
	}
	if len(r.inputs) == 1 {
		return r.inputs[0], text, ""
	}
	if tagged {
		return in, nil, fmt.Sprintf("there is no event type %q", clip(name))
	}
	return in, nil, `an object with the name of the event's type is expected, {"TYPE":{...}}`
}

// tag takes the first name off an object, with all that follows as its value.
func tag(text []byte) (name, value []byte, ok bool) {
	text = bytes.TrimSpace(text)
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, nil, false
	}
	text = bytes.TrimSpace(text[1 : len(text)-1])
	if len(text) == 0 || text[0] != '"' {
		return nil, nil, false
	}
	end := bytes.IndexByte(text[1:], '"')
	if end < 0 {
		return nil, nil, false
	}
	name, text = text[1:1+end], bytes.TrimSpace(text[end+2:])
	if len(text) == 0 || text[0] != ':' {
		return nil, nil, false
	}
	text = bytes.TrimSpace(text[1:])
	return name, text, len(text) > 0
}

func clip(b []byte) string {
	const most = 40
	if len(b) > most {
		return string(b[:most]) + "..."
	}
	return string(b)
}

// binReader reads records of bytes.
type binReader struct {
	s     *Files
	types int
	buf   []byte
}

func (r *binReader) begin() {}

func (r *binReader) ready() bool {
	head, _ := r.s.in.Peek(min(4, r.s.in.Buffered())) // no more than is there
	return len(head) == 4 && r.s.in.Buffered() >= 4+int(binary.LittleEndian.Uint32(head))
}

func (r *binReader) next(f *txn.Feed) (int64, int, error) {
	var head [4]byte
	if _, err := io.ReadFull(r.s.in, head[:]); err != nil {
		return 0, 0, cutOff(err)
	}
	n := int(binary.LittleEndian.Uint32(head[:]))
	if n > lineMax {
		return 0, 0, fmt.Errorf("a record of %d bytes: %d at most", n, lineMax)
	}
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	r.buf = r.buf[:n]
	if _, err := io.ReadFull(r.s.in, r.buf); err != nil {
		return 0, 0, errCutOff
	}
	size := int64(4 + n)
	typ, used := binary.Uvarint(r.buf)
	if used <= 0 || typ >= uint64(r.types) {
		return size, 1, &badInput{1, fmt.Sprintf("event type %d of %d", typ, r.types), r.buf}
	}
	had := f.Len()
	rest, err := f.PushEncoded(int(typ), r.buf[used:])
	if err == nil && len(rest) != 0 {
		f.Cut(had)
		err = fmt.Errorf("%d bytes too many", len(rest))
	}
	if err != nil {
		return size, 1, &badInput{1 + used, err.Error(), r.buf}
	}
	return size, 1, nil
}

var errCutOff = errors.New("a record that is cut off")

// cutOff tells the end between two records from one within.
func cutOff(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errCutOff
	}
	return err
}

// AppendRecord adds event i of a feed to dst as a record of format bin.
func AppendRecord(dst []byte, f *txn.Feed, i int) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = f.AppendEvent(binary.AppendUvarint(dst, uint64(f.EventType(i))), i)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// AppendLine adds event i of a feed to dst as a line of format jsonl.
func AppendLine(dst []byte, app *txn.App, f *txn.Feed, i int) ([]byte, error) {
	dst = append(json.AppendEscape(append(dst, '{'), app.Inputs()[f.EventType(i)].Name(), 0), ':')
	dst, err := f.AppendJSON(dst, i)
	return append(dst, "}\n"...), err
}

// csvReader reads a row for each event.
type csvReader struct {
	s       *Files
	inputs  []txn.Input
	begun   bool        // the header is read
	columns []string    // of the file
	set     []rowSetter // by event type
	typed   int         // column of the event type, or -1
}

// rowSetter fills an event from a row.
type rowSetter struct {
	event  reflect.Value
	fields map[string]int // by column name
}

func newCSV(app *txn.App, s *Files) (*csvReader, error) {
	r := &csvReader{s: s, inputs: app.Inputs(), typed: -1}
	for _, in := range r.inputs {
		t := in.Type()
		if t.Kind() != reflect.Struct {
			return nil, fmt.Errorf("event %s is a %s, which is no row of CSV", in.Name(), t)
		}
		set := rowSetter{reflect.New(t).Elem(), map[string]int{}}
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			if f.IsExported() && scalar(f.Type.Kind()) {
				set.fields[name] = i
			}
		}
		if len(set.fields) < t.NumField() {
			return nil, fmt.Errorf("event %s has fields that are no columns of CSV: numbers, strings and booleans are", in.Name())
		}
		r.set = append(r.set, set)
	}
	return r, nil
}

func scalar(k reflect.Kind) bool {
	return k == reflect.String || k >= reflect.Bool && k <= reflect.Float64 && k != reflect.Uintptr
}

func (r *csvReader) begin() { r.begun = false }

func (r *csvReader) ready() bool { return r.s.hasLine() }

// row reads a row, which may have several lines: as long as a quote is open.
func (r *csvReader) row() (fields []string, n int64, lines int, err error) {
	var all []byte
	for open := false; ; {
		text, size, err := r.s.line()
		n += size
		if err == nil && lines&255 == 255 {
			err = r.s.ctx.Err()
		}
		if err != nil {
			if errors.Is(err, io.EOF) && all != nil {
				return nil, n, lines, &badInput{1, "a quote without its end", all}
			}
			return nil, n, lines, err
		}
		lines++
		if all == nil && len(text) == 0 {
			return nil, n, lines, nil
		}
		if len(all)+len(text) > lineMax {
			return nil, n, lines, fmt.Errorf("a row of more than %d bytes", lineMax)
		}
		all = append(all, text...)
		open = open != (bytes.Count(text, []byte{'"'})%2 != 0)
		if !open || lines == 1 {
			fields, bad := parseRow(all)
			switch {
			case bad == nil:
				return fields, n, lines, nil
			case !open || bad.what == csv.ErrBareQuote.Error(): // what follows does not mend it
				return nil, n, lines, bad
			}
		}
		all = append(all, '\n')
	}
}

func parseRow(text []byte) (fields []string, bad *badInput) {
	c := csv.NewReader(bytes.NewReader(text))
	c.FieldsPerRecord = -1
	fields, err := c.Read()
	if err == nil {
		return fields, nil
	}
	column := 1
	var syntax *csv.ParseError
	if errors.As(err, &syntax) {
		column, err = syntax.Column, syntax.Err
	}
	return nil, &badInput{column, err.Error(), text}
}

// header reads the header of a file.
func (r *csvReader) header() (n int64, lines int, err error) {
	columns, n, lines, err := r.row()
	for err == nil && columns == nil { // empty lines in front
		var size int64
		var more int
		columns, size, more, err = r.row()
		n, lines = n+size, lines+more
	}
	var bad *badInput
	if errors.As(err, &bad) { // without it nothing can be read
		err = errors.New(bad.what)
	}
	if err != nil {
		return n, lines, err
	}
	r.columns, r.typed = columns, -1
	for i, name := range columns {
		if name == "event" && len(r.inputs) > 1 {
			r.typed = i
			continue
		}
		known := false
		for _, set := range r.set {
			_, has := set.fields[name]
			known = known || has
		}
		if !known {
			return n, lines, fmt.Errorf("column %q is a field of no event type", name)
		}
	}
	if r.typed < 0 && len(r.inputs) > 1 {
		return n, lines, errors.New("a column event is expected, since there are several event types")
	}
	return n, lines, nil
}

func (r *csvReader) next(f *txn.Feed) (n int64, lines int, err error) {
	if !r.begun {
		r.begun = true
		return r.header()
	}
	fields, n, lines, err := r.row()
	if err != nil || fields == nil {
		return n, lines, err
	}
	if err := r.push(f, fields); err != nil {
		err.input = []byte(strings.Join(fields, ","))
		return n, lines, err
	}
	return n, lines, nil
}

func (r *csvReader) push(f *txn.Feed, fields []string) *badInput {
	if len(fields) != len(r.columns) {
		return &badInput{column: 1, what: fmt.Sprintf("%d fields; %d are expected", len(fields), len(r.columns))}
	}
	typ := 0
	if r.typed >= 0 {
		for typ = 0; typ < len(r.inputs) && r.inputs[typ].Name() != fields[r.typed]; typ++ {
		}
		if typ == len(r.inputs) {
			return &badInput{column: 1, what: fmt.Sprintf("there is no event type %q", clip([]byte(fields[r.typed])))}
		}
	}
	set := &r.set[typ]
	set.event.SetZero()
	for i, text := range fields {
		if i == r.typed || text == "" {
			continue
		}
		at, ok := set.fields[r.columns[i]]
		if !ok {
			return &badInput{column: i + 1, what: fmt.Sprintf("event %s has no field %s", r.inputs[typ].Name(), r.columns[i])}
		}
		if !setField(set.event.Field(at), text) {
			return &badInput{column: i + 1, what: fmt.Sprintf("%s %q: a %s is expected", r.columns[i], clip([]byte(text)), set.event.Field(at).Type())}
		}
	}
	r.inputs[typ].Push(f, set.event)
	return nil
}

// setField sets a scalar from its text.
func setField(v reflect.Value, text string) bool {
	switch k := v.Kind(); {
	case k == reflect.String:
		v.SetString(text)
	case k == reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return err == nil
	case v.CanInt():
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(n)
		return err == nil
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		v.SetUint(n)
		return err == nil
	default:
		x, err := strconv.ParseFloat(text, v.Type().Bits())
		v.SetFloat(x)
		return err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) // which JSON cannot express
	}
	return true
}
