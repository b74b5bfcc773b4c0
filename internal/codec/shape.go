package codec

import (
	"fmt"
	"reflect"
	"strings"
)

// Shape describes a type as far as its stored form and its meaning depend on it: kinds,
// sizes, and the names and order of fields, but not the names of types. What has no
// derived codec is described by its name.
func Shape(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), Shape(t.Elem()))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes" // stored in a form of their own
		}
		return "[]" + Shape(t.Elem())
	case reflect.Struct:
		var fields []string
		for f := range t.Fields() {
			fields = append(fields, f.Name+" "+Shape(f.Type))
		}
		return "{" + strings.Join(fields, "; ") + "}"
	case reflect.Map, reflect.Pointer, reflect.Interface, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return t.String()
	}
	return t.Kind().String()
}
