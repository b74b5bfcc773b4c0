package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/heddle-stream/heddle/txn"
)

// whose is the first item of an application's state.
type whose struct {
	Point  Point        `json:"point"`
	Tables []txn.Schema `json:"tables"`
}

// SaveItems hands out the state of an application at a point of its run, for those who keep it in a
// place of their own: items that are valid during the call.
func SaveItems(app *txn.App, p Point, add func(item []byte)) error {
	head, err := json.Marshal(whose{p, schemas(app)})
	if err != nil {
		return err
	}
	add(head)
	var buf []byte
	of := func(kind byte) func(item []byte) bool {
		return func(item []byte) bool {
			buf = append(append(buf[:0], kind), item...)
			add(buf)
			return true
		}
	}
	return state(app, of(itemRow), of(itemVersion))
}

// LoadItems puts an application into a state that was handed out, and returns the point. Next
// returns io.EOF behind the last item.
func LoadItems(app *txn.App, next func() ([]byte, error)) (p Point, err error) {
	item, err := next()
	if err != nil {
		return p, fmt.Errorf("the state of %s: %w", app.Name(), err)
	}
	var head whose
	if err := json.Unmarshal(item, &head); err != nil {
		return p, fmt.Errorf("the state of %s: %w", app.Name(), err)
	}
	tables, err := tablesFor(app, head.Tables)
	if err != nil {
		return p, refuse("the state of %s is of another program: %w", app.Name(), err)
	}
	reset(tables)
	for {
		item, err := next()
		if errors.Is(err, io.EOF) {
			return head.Point, settleSchemas(app)
		}
		if err != nil {
			return p, err
		}
		if err := loadItem(tables, item); err != nil {
			return p, fmt.Errorf("the state of %s: %w", app.Name(), err)
		}
	}
}

func loadItem(tables []txn.TableView, item []byte) error {
	if len(item) == 0 {
		return errors.New("an empty item")
	}
	table, used := binary.Uvarint(item[1:])
	if used <= 0 || table >= uint64(len(tables)) {
		return errors.New("an item without its table")
	}
	return load(tables[table], item[0], item[1+used:])
}
