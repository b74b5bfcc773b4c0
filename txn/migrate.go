package txn

import (
	"fmt"
	"reflect"

	"github.com/heddle-stream/heddle/internal/codec"
)

// Schema is what the stored form of a table depends on.
type Schema struct {
	Table string `json:"table"`
	Key   string `json:"key"`   // shape of the key type, see codec.Shape
	Value string `json:"value"` // and of the value type
	// InForce tells that versions have what was before them, see Window.WithInForce.
	InForce bool `json:"in_force,omitempty"`
	// How far back the longest windows reach, by events and by time; 0 without any.
	ReachEvents int64 `json:"reach_events,omitempty"`
	ReachTime   int64 `json:"reach_time,omitempty"`
}

// EventSchema is what the stored form of an event type depends on.
type EventSchema struct {
	Event  string `json:"event"`
	Fields string `json:"fields"` // shape of the event
	Result string `json:"result"` // and of its result
}

// EventSchemas returns those of the event types in declaration order.
func (a *App) EventSchemas() []EventSchema {
	out := make([]EventSchema, len(a.events))
	for i, ev := range a.events {
		event, result := ev.goTypes()
		out[i] = EventSchema{ev.Name(), codec.Shape(event), codec.Shape(result)}
	}
	return out
}

// Schema returns the schema of the table.
func (v TableView) Schema() Schema { return v.t.schema() }

func (t *Table[K, V]) schema() Schema {
	return Schema{t.name, codec.Shape(reflect.TypeFor[K]()), codec.Shape(reflect.TypeFor[V]()), t.inForce, t.reachSeq, t.reachTime}
}

// Migrated tells how a value that an earlier version of the program kept, of another
// type, becomes one of this. The types of both have derived codecs.
func Migrated[K comparable, V, Old any](from func(key K, old Old) V) Option[K, V] {
	return func(t *Table[K, V]) {
		c, err := codec.Derive[Old]()
		if err != nil {
			t.app.fault(caller(), "table %q: migrated value: %v", t.name, err)
			return
		}
		if t.migrations == nil {
			t.migrations = map[string]func([]byte, K, *V) ([]byte, error){}
		}
		t.migrations[codec.Shape(reflect.TypeFor[Old]())] = func(src []byte, key K, v *V) ([]byte, error) {
			var old Old
			rest, err := c.Decode(src, &old)
			if err == nil {
				*v = from(key, old)
			}
			return rest, err
		}
	}
}

// Migrate makes the table read stored rows of an earlier schema from now on, and
// returns an error when it cannot. A schema of its own is read as it is.
func (v TableView) Migrate(kept Schema) error { return v.t.migrate(kept) }

func (t *Table[K, V]) migrate(kept Schema) error {
	now := t.schema()
	t.decodeKept = nil
	switch {
	case kept.Key != now.Key:
		return fmt.Errorf("table %s has keys %s, this program has %s", t.name, kept.Key, now.Key)
	case now.ReachEvents > kept.ReachEvents || now.ReachTime > kept.ReachTime || now.InForce && !kept.InForce:
		return fmt.Errorf("table %s: its windows want versions, or what was in force before them, that were not kept: they may reach less far back, not further", t.name)
	case kept.InForce && !now.InForce && t.hist != nil:
		return fmt.Errorf("table %s: its windows were txn.Window.WithInForce, and have to stay so", t.name)
	case kept.Value == now.Value:
		return nil
	}
	if t.decodeKept = t.migrations[kept.Value]; t.decodeKept == nil {
		return fmt.Errorf("table %s has values %s, this program has %s: give txn.Migrated, which makes one of the other", t.name, kept.Value, now.Value)
	}
	return nil
}

// decodeStored reads a stored value, of an earlier schema if the table migrates.
func (t *Table[K, V]) decodeStored(src []byte, key K, v *V) ([]byte, error) {
	if t.decodeKept != nil {
		return t.decodeKept(src, key, v)
	}
	return t.val.Decode(src, v)
}
