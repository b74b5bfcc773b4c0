package arena

import "testing"

type tree struct {
	name string
	kids []tree
}

func TestOutside(t *testing.T) {
	if Outside[struct{ a, b int64 }]() != nil || Outside[[4]uint8]() != nil {
		t.Error("plain values refer to nothing")
	}
	text := "seventeen letters"
	if n := Outside[string]()(&text); n != 32 {
		t.Errorf("%d bytes for %q", n, text)
	}
	numbers := make([]int64, 3, 100)
	if n := Outside[[]int64]()(&numbers); n != 800 {
		t.Errorf("%d bytes for room for 100 numbers", n)
	}
	names := struct {
		_    int
		list [2][]string
	}{list: [2][]string{{"a", "b"}, nil}}
	if n := Outside[struct {
		_    int
		list [2][]string
	}]()(&names); n != 32+2*16 {
		t.Errorf("%d bytes for two short names", n)
	}
	node := tree{"root", []tree{{"a", nil}, {"b", []tree{{"c", nil}}}}}
	if n, want := Outside[tree]()(&node), 16+2*40+16+16+allocated(40)+16; n != want {
		t.Errorf("%d bytes for a tree of four, expected %d", n, want)
	}
	m := map[int32]int32{1: 1, 2: 2}
	if n := Outside[map[int32]int32]()(&m); n < 16 {
		t.Errorf("%d bytes for a map of two", n)
	}
	p := &text
	if n := Outside[*string]()(&p); n != 16 {
		t.Errorf("%d bytes behind a pointer", n)
	}
}
