package cluster

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage"
)

func messages() []Message {
	row, none := Row{1, []byte("k"), []byte("kv")}, Row{2, []byte("gone"), nil}
	owners, err := reconfig.Even(4, []reconfig.Node{3, 5})
	if err != nil {
		panic(err)
	}
	return []Message{
		&Section{Batch: 1 << 40, Router: 2, Version: 3, Change: Change{
			Moves: []reconfig.Move{{Group: 4095, From: 0, To: 63}}, Orders: []Order{{Copy, 7, 1, reconfig.Nobody}},
			Settings: reconfig.Settings{Logic: map[string]string{"a": "b", "c": "d"}, Strategy: "serial", Workers: 3}, Settle: true, Save: 1 << 50, SaveAll: true,
		}, Count: 5, Actions: []byte("actions")},
		&Section{},
		&Loans{1, []Loan{{1 << 63, true, row}, {2, false, none}}},
		&Image{1, 2, 3, 4, 5, []Row{row, none}, storage.Hash{Hi: 6, Lo: 7}},
		&CopyRows{1, 2, 3, true, []Row{none, row}},
		&Credit{1, 1 << 50},
		&Results{3, []Result{{1, true, []byte("r")}, {2, false, nil}}},
		&Progress{From: 1, Taken: 2, Done: 3, Held: 4, Moved: 5, Arrived: []Arrival{{1, 2, 3}}, Sizes: []Size{{1, 2, 3}}, Copied: []reconfig.Group{9}, Saved: 6, Bytes: 7, Err: errors.New("why")},
		&Finish{}, &Started{1, nil}, &Started{1, errors.New("why")}, &Join{7, owners, reconfig.Settings{Logic: map[string]string{"a": "b"}}, true, true}, &Piece{1, 2, []reconfig.Group{7}, []Row{row, none}},
		&Final{1, storage.Hash{Hi: 1<<64 - 1, Lo: 2}},
	}
}

func TestMessagesComeAsTheyWere(t *testing.T) {
	sameText := cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error()) })
	empty := cmp.Transformer("empty", func(b []byte) string { return string(b) })
	for _, m := range messages() {
		src := AppendMessage(nil, m)
		got, err := DecodeMessage(src)
		if err != nil {
			t.Errorf("%T: %v", m, err)
			continue
		}
		if d := cmp.Diff(m, got, sameText, empty, cmp.AllowUnexported(reconfig.Owners{})); d != "" {
			t.Errorf("%T: %s", m, d)
		}
		for n := range src {
			if _, err := DecodeMessage(src[:n]); err == nil {
				t.Errorf("%T: the first %d bytes of %d are a message", m, n, len(src))
			}
		}
	}
}

// A row that is there and empty is not a row that is none.
func TestNoRow(t *testing.T) {
	got, err := DecodeMessage(AppendMessage(nil, &CopyRows{Rows: []Row{{Row: []byte{}}, {}}}))
	if err != nil {
		t.Fatal(err)
	}
	if rows := got.(*CopyRows).Rows; rows[0].Row == nil || rows[1].Row != nil {
		t.Errorf("%+v", rows)
	}
}

func FuzzMessage(f *testing.F) {
	for _, m := range messages() {
		f.Add(AppendMessage(nil, m))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := DecodeMessage(src)
		if err != nil {
			return
		}
		again := AppendMessage(nil, m)
		back, err := DecodeMessage(again)
		if err != nil || !bytes.Equal(AppendMessage(nil, back), again) {
			t.Fatalf("%x became %x, and that %v", src, again, err)
		}
	})
}
