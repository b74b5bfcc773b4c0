package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/heddle-stream/heddle/txn"
)

// What a batch did, as the log keeps it: where the run stands after it, its lines of
// output and of dead letters, and items: each its kind, the number of its table, its length and its bytes.
const (
	itemRow     = 'R' // key and value
	itemGone    = 'D' // the key of a row that is no more
	itemVersion = 'V' // as a window needs it
)

// AppendEffects adds what a batch did to dst: the rows that changed since the
// last call, the versions that it left for windows, the lines that it added to the
// output and to the dead letters, and the point behind it.
func AppendEffects(dst []byte, app *txn.App, changed *txn.Changes, p Point, output, letters []byte) ([]byte, error) {
	point, err := json.Marshal(p)
	if err != nil {
		return dst, err
	}
	dst = appendCounted(dst, point)
	dst = appendCounted(appendCounted(dst, output), letters)
	changed.Cut()
	changed.TakeGone(func(table int, key []byte) { dst = appendItem(dst, itemGone, table, key) })
	for changed.Take(1<<20, func(table int, row []byte) { dst = appendItem(dst, itemRow, table, row) }) {
	}
	for i, table := range app.Tables() {
		table.FreshVersions(func(version []byte) bool {
			dst = appendItem(dst, itemVersion, i, version)
			return true
		})
	}
	return dst, changed.Err() // without a row that cannot be read it would not be all
}

func appendCounted(dst, item []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(item))), item...)
}

func appendItem(dst []byte, kind byte, table int, item []byte) []byte {
	return appendCounted(binary.AppendUvarint(append(dst, kind), uint64(table)), item)
}

// Apply makes the application what it was after a batch that is done, and returns
// where the run stood then and the lines that the batch added to output and dead letters.
func (l *Logged) Apply(app *txn.App) (p Point, output, letters []byte, err error) {
	point, rest, ok := takeCounted(l.payload)
	if ok {
		output, rest, ok = takeCounted(rest)
	}
	if ok {
		letters, rest, ok = takeCounted(rest)
	}
	if !ok {
		return p, nil, nil, l.corrupt("cut off")
	}
	if err := json.Unmarshal(point, &p); err != nil {
		return p, nil, nil, l.corrupt(err.Error())
	}
	tables := app.Tables()
	for len(rest) > 0 {
		kind := rest[0]
		table, used := binary.Uvarint(rest[1:])
		if used <= 0 || table >= uint64(len(tables)) {
			return p, nil, nil, l.corrupt("an item without its table")
		}
		var item []byte
		if item, rest, ok = takeCounted(rest[1+used:]); !ok {
			return p, nil, nil, l.corrupt("cut off")
		}
		if err := load(tables[table], kind, item); err != nil {
			return p, nil, nil, l.corrupt(err.Error())
		}
	}
	return p, output, letters, nil
}

// load makes an item part of a table's state.
func load(table txn.TableView, kind byte, item []byte) error {
	switch kind {
	case itemRow:
		return table.LoadRow(item)
	case itemGone:
		return table.DropRow(item)
	case itemVersion:
		return table.LoadVersion(item)
	}
	return fmt.Errorf("an item of kind %q", kind)
}

func takeCounted(src []byte) (item, rest []byte, ok bool) {
	n, used := binary.Uvarint(src)
	if used <= 0 || n > uint64(len(src)-used) {
		return nil, nil, false
	}
	src = src[used:]
	return src[:n], src[n:], true
}
