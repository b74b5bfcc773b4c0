package eth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/internal/fulldata"
	"github.com/heddle-stream/heddle/internal/u256"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/storage"
)

func config(t *testing.T, values map[string]string) *program.Config {
	t.Helper()
	c, err := Program.Config(values)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// replay runs the first n events. What is wrong is a failure: the check, and any
// difference from the loop. It returns how often each reason was given.
func replay(t *testing.T, c *program.Config, n int, opts engine.Options) (*App, engine.Metrics, map[string]int) {
	t.Helper()
	r, err := open(c)
	if err != nil {
		t.Fatal(err)
	}
	a := New(c.Int("fees"), program.Cost{})
	k := a.account()
	reasons := map[string]int{}
	a.Txs.Each(func(r Receipt) { reasons[r.Reason]++ })
	m, err := engine.Run(context.Background(), a.App, a.source(r, n), opts)
	if err := errors.Join(err, r.close()); err != nil {
		t.Fatal(err)
	}
	if m.Events != n {
		t.Errorf("%d events ran, want %d", m.Events, n)
	}
	if err := a.check(k); err != nil {
		t.Error(err)
	}
	list, err := readAll(c, n)
	if err != nil {
		t.Fatal(err)
	}
	s := newState(c.Int("fees"), program.Cost{})
	s.run(list)
	same(t, "accounts", s.accounts, maps.Collect(a.Accounts.All()))
	same(t, "fees", s.fees, maps.Collect(a.Fees.All()))
	same(t, "holdings", s.holdings, maps.Collect(a.Holdings.All()))
	return a, m, reasons
}

func same[K comparable, V comparable](t *testing.T, what string, loop, engine map[K]V) {
	t.Helper()
	if len(loop) != len(engine) {
		t.Errorf("%s: the loop has %d rows, the engine %d", what, len(loop), len(engine))
	}
	for k, want := range loop {
		if got, ok := engine[k]; !ok || got != want {
			t.Errorf("%s: row %v: the loop has %v, the engine %v, %v", what, k, want, got, ok)
			return
		}
	}
}

// The model, the loop and the check are the oracles.
func TestSample(t *testing.T) {
	c := config(t, nil)
	s, err := look(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(strings.Join(s.notes(), "\n"))
	if s.blocks != 45 || s.events != 45+10_966 || s.openings != 12_412 {
		t.Errorf("%+v", s)
	}
	hashes := map[storage.Hash]bool{}
	for _, strategy := range []string{"serial", "ns-op-eager", "bfs-chain-lazy"} {
		a, m, reasons := replay(t, c, s.events, engine.Options{Strategy: strategy, Verify: true, Batch: 2000})
		hashes[storage.StateHash(a.App)] = true
		t.Logf("%s: %d of %d aborted: %v; %d redone", strategy, m.Aborted, m.Events, reasons, m.Redone)
	}
	if len(hashes) != 1 {
		t.Errorf("strategies end in %d different states", len(hashes))
	}
}

func TestInstance(t *testing.T) {
	c := config(t, map[string]string{"fees": "1"})
	c.Events = 1000
	in, err := Program.New(c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := engine.Run(context.Background(), in.App, in.Source, engine.Options{})
	if err != nil || m.Events != 1000 || in.Total != 1000 {
		t.Fatalf("%d events of %d ran: %v", m.Events, in.Total, err)
	}
	if err := errors.Join(in.Check(), in.Close()); err != nil {
		t.Error(err)
	}
	in.Loops[0].Prepare()()
	if len(in.Notes) == 0 || !strings.Contains(in.Notes[0], " transactions in ") {
		t.Errorf("notes: %q", in.Notes)
	}
}

func addr(n byte) Address { return Address{19: n} }

const (
	txHeader      = "block,ts,tx_index,from,to,value_wei,gas_limit,gas_price_wei,nonce,kind,erc20_to,erc20_amount\n"
	openingHeader = "block,account,balance_wei\n"
)

// row is a transaction of one unit of gas at a price of 1.
func row(block, index int, from, to byte, value string, nonce int, rest string) string {
	target := ""
	if to != 0 {
		target = addr(to).String()
	}
	return fmt.Sprintf("%d,60,%d,%v,%s,%s,1,1,%d,%s\n", block, index, addr(from), target, value, nonce, rest)
}

func tokens(to byte, amount string) string { return "erc20," + addr(to).String() + "," + amount }

const native = "native,,"

// files writes both files and returns their configuration.
func files(t *testing.T, txs, openings string) *program.Config {
	t.Helper()
	dir := t.TempDir()
	c := config(t, map[string]string{"fees": "2"})
	c.Input = filepath.Join(dir, "x_txs.csv")
	for name, content := range map[string]string{"x_txs.csv": txs, "x_prebalances.csv": openings} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func openings(block int, of ...int) string {
	s := ""
	for i := 0; i < len(of); i += 2 {
		s += fmt.Sprintf("%d,%v,%d\n", block, addr(byte(of[i])), of[i+1])
	}
	return s
}

// ruleCases are small chains with what must come of them.
var ruleCases = []struct {
	name, txs, openings string
	balances            map[byte]uint64
	reasons             map[string]int
}{
	{
		"value and fee", row(5, 0, 1, 2, "10", 7, native), openings(5, 1, 30),
		map[byte]uint64{1: 19, 2: 10},
		map[string]int{"": 1},
	},
	{
		"exactly enough, to itself", row(5, 0, 1, 1, "29", 7, native), openings(5, 1, 30),
		map[byte]uint64{1: 29},
		map[string]int{"": 1},
	},
	{
		"too little by one", row(5, 0, 1, 2, "30", 7, native), openings(5, 1, 30),
		map[byte]uint64{1: 30},
		map[string]int{"insufficient funds": 1},
	},
	{
		"unknown sender", row(5, 0, 3, 2, "0", 7, native), openings(5, 1, 30),
		map[byte]uint64{1: 30},
		map[string]int{"insufficient funds": 1},
	},
	{
		"nonces in a block rise by one", row(5, 0, 1, 2, "1", 7, native) + row(5, 1, 1, 2, "1", 9, native) + row(5, 2, 1, 2, "1", 8, native) + row(5, 3, 1, 2, "1", 9, native),
		openings(5, 1, 30),
		map[byte]uint64{1: 24, 2: 3},
		map[string]int{"": 3, "wrong nonce": 1},
	},
	{
		"may skip between blocks, not fall back", row(5, 0, 1, 2, "1", 7, native) + row(6, 0, 1, 2, "1", 7, native) + row(6, 1, 1, 2, "1", 70, native),
		openings(5, 1, 30),
		map[byte]uint64{1: 26, 2: 2},
		map[string]int{"": 2, "wrong nonce": 1},
	},
	{
		"an aborted transaction's nonce is not used", row(5, 0, 1, 2, "1", 7, native) + row(5, 1, 1, 2, "99", 8, native) + row(5, 2, 1, 2, "1", 9, native),
		openings(5, 1, 30),
		map[byte]uint64{1: 28, 2: 1},
		map[string]int{"": 1, "wrong nonce": 1, "insufficient funds": 1},
	},
	{
		"a block start replaces balances", row(5, 0, 1, 2, "10", 7, native) + row(6, 0, 2, 1, "2", 0, native), openings(5, 1, 30) + openings(6, 2, 5, 1, 1, 1, 4),
		map[byte]uint64{1: 6, 2: 2},
		map[string]int{"": 2},
	},
	{
		"a block of which only balances are known", row(5, 0, 1, 2, "10", 7, native), openings(4, 1, 11) + openings(9, 2, 4),
		map[byte]uint64{1: 0, 2: 4},
		map[string]int{"": 1},
	},
	{
		"first debit of tokens is granted what is missing, the second is not",
		row(5, 0, 1, 9, "0", 1, tokens(2, "8")) + row(5, 1, 2, 9, "0", 1, tokens(3, "10")) + row(5, 2, 2, 9, "0", 2, tokens(3, "1")) + row(5, 3, 1, 9, "1", 2, tokens(1, "0")),
		openings(5, 1, 30, 2, 30),
		map[byte]uint64{1: 27, 2: 29, 9: 1},
		map[string]int{"": 3, "insufficient tokens": 1},
	},
}

func TestRules(t *testing.T) {
	for _, test := range ruleCases {
		t.Run(test.name, func(t *testing.T) {
			c := files(t, txHeader+test.txs, openingHeader+test.openings)
			s, err := look(c, 0)
			if err != nil {
				t.Fatal(err)
			}
			a, _, reasons := replay(t, c, s.events, engine.Options{Strategy: "ns-op-eager", Verify: true})
			want, got := map[Address]u256.Int{}, map[Address]u256.Int{}
			for n, balance := range test.balances {
				want[addr(n)] = u256.Of(balance)
			}
			for address, acc := range a.Accounts.All() {
				got[address] = acc.Balance
			}
			same(t, "balances", want, got)
			if diff := cmp.Diff(test.reasons, reasons); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCreation(t *testing.T) {
	c := files(t, txHeader+row(5, 0, 1, 0, "10", 7, "create,,")+row(5, 1, 1, 0, "0", 8, "create,,"), openingHeader+openings(5, 1, 30))
	a, _, _ := replay(t, c, 3, engine.Options{Strategy: "serial", Verify: true})
	for nonce, want := range map[uint64]uint64{7: 10, 8: 0} {
		if acc, ok := a.Accounts.Peek(created(addr(1), nonce)); !ok || acc.Balance != u256.Of(want) {
			t.Errorf("contract of nonce %d: %v, %v", nonce, acc, ok)
		}
	}
}

// A balance can reach 2^256-1 and no more.
func TestOverflow(t *testing.T) {
	largest := "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	c := files(t, txHeader+row(5, 0, 1, 2, largest, 1, native)+row(5, 1, 1, 2, "1", 1, native)+row(5, 2, 1, 9, "0", 1, tokens(2, largest))+row(5, 3, 3, 9, "0", 1, tokens(2, "1")),
		openingHeader+openings(5, 1, 30, 3, 30)+fmt.Sprintf("5,%v,%s\n", addr(2), largest))
	a := New(1, program.Cost{})
	r, err := open(c)
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	a.Txs.Each(func(r Receipt) { reasons = append(reasons, r.Reason) })
	if _, err := engine.Run(context.Background(), a.App, a.source(r, 5), engine.Options{Verify: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"insufficient funds", "balance overflow", "", "balance overflow"}, reasons); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestParseAddress(t *testing.T) {
	const good = "0xa1e4380a3b1f749673e270229993ee55f35663b4"
	if a, err := parseAddress(good); err != nil || a.String() != good {
		t.Errorf("%v, %v", a, err)
	}
	for _, s := range []string{"", "0x", good[2:], good[:41], good + "0", strings.ToUpper(good), "0X" + good[2:], "0xA" + good[3:], good[:41] + "g", good[:41] + " "} {
		if a, err := parseAddress(s); err == nil {
			t.Errorf("%q is taken for %v", s, a)
		}
	}
}

func TestMalformedRows(t *testing.T) {
	good, pre := row(5, 1, 1, 2, "1", 7, native), openings(5, 1, 30)
	a1, a2 := addr(1).String(), addr(2).String()
	line := func(s string) string { return txHeader + good + s + "\n" }
	for _, c := range []struct {
		name, txs, openings string
		line, column        int
		what                string
	}{
		{"block", line("-1,60,2," + a1 + "," + a2 + ",1,1,1,8,native,,"), pre, 3, 1, "block"},
		{"time", line("5,x,2," + a1 + "," + a2 + ",1,1,1,8,native,,"), pre, 3, 3, "ts"},
		{"blocks out of order", line("4,60,2," + a1 + "," + a2 + ",1,1,1,8,native,,"), pre, 3, 1, "block 4 after block 5"},
		{"index again", line("5,60,1," + a1 + "," + a2 + ",1,1,1,8,native,,"), pre, 3, 6, "tx_index 1 after 1"},
		{"sender", line("5,60,2," + a1[:41] + "," + a2 + ",1,1,1,8,native,,"), pre, 3, 8, "not an address"},
		{"receiver", line("5,60,2," + a1 + ",,1,1,1,8,native,,"), pre, 3, 51, "not an address"},
		{"value", line("5,60,2," + a1 + "," + a2 + ",1.5,1,1,8,native,,"), pre, 3, 94, "not a decimal integer"},
		{"gas limit", line("5,60,2," + a1 + "," + a2 + ",1,,1,8,native,,"), pre, 3, 96, "gas_limit"},
		{"gas price", line("5,60,2," + a1 + "," + a2 + ",1,1,9223372036854775808,8,native,,"), pre, 3, 98, "gas_price_wei"},
		{"nonce", line("5,60,2," + a1 + "," + a2 + ",1,1,1,x,native,,"), pre, 3, 100, "nonce"},
		{"kind", line("5,60,2," + a1 + "," + a2 + ",1,1,1,8,swap,,"), pre, 3, 102, "kind"},
		{"create with a receiver", line("5,60,2," + a1 + "," + a2 + ",1,1,1,8,create,,"), pre, 3, 51, "must be empty"},
		{"tokens of another kind", line("5,60,2," + a1 + "," + a2 + ",1,1,1,8,call,," + "1"), pre, 3, 108, "must be empty"},
		{"token receiver", line("5,60,2," + a1 + "," + a2 + ",1,1,1,8,erc20,,1"), pre, 3, 108, "not an address"},
		{"token amount", line("5,60,2," + a1 + "," + a2 + ",1,1,1,8,erc20," + a1 + ","), pre, 3, 151, "not a decimal integer"},
		{"field missing", line("5,60,2"), pre, 3, 1, "3 fields"},
		{"no header", good, pre, 1, 1, "block"},
		{"balance", txHeader + good, "5," + a2 + ",-1\n", 2, 46, "not a decimal integer"},
		{"account", txHeader + good, pre + "5,0x,1\n", 3, 3, "not an address"},
		{"balances out of order", txHeader + good, pre + "4," + a2 + ",1\n", 3, 1, "block 4 after block 5"},
	} {
		cfg := files(t, c.txs, openingHeader+c.openings)
		_, err := Program.New(cfg)
		var at *program.InputError
		if !errors.As(err, &at) {
			t.Errorf("%s: %v is no InputError", c.name, err)
			continue
		}
		file := cfg.Input
		if c.txs == txHeader+good {
			file = strings.Replace(file, "_txs", "_prebalances", 1)
		}
		if at.File != file || at.Line != c.line || at.Column != c.column || !strings.Contains(at.What, c.what) {
			t.Errorf("%s: %v; want line %d, column %d: ... %s", c.name, err, c.line, c.column, c.what)
		}
	}
}

func TestFilesThatAreMissing(t *testing.T) {
	c := config(t, nil)
	c.Input = filepath.Join(t.TempDir(), "x_txs.csv")
	if _, err := Program.New(c); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such input: %v", err)
	}
	if err := os.WriteFile(c.Input, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Program.New(c); err == nil || !strings.Contains(err.Error(), "--prebalances") {
		t.Errorf("no file of balances: %v", err)
	}
	var param *program.ParamError
	if _, err := Program.New(config(t, map[string]string{"prebalances": "x"})); !errors.As(err, &param) {
		t.Errorf("balances without input: %v", err)
	}
}

// A check that cannot fail tells nothing.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	c := files(t, txHeader+row(5, 0, 1, 9, "1", 7, tokens(2, "8")), openingHeader+openings(5, 1, 30))
	for name, spoil := range map[string]func(a *App, k *account){
		"accounts and fees hold": func(a *App, k *account) { k.set = u256.Of(31) },
		"has ":                   func(a *App, k *account) { k.set = u256.Of(0) },
		"holders of token":       func(a *App, _ *account) { a.Holdings.Load(Holding{addr(9), addr(7)}, Tokens{Balance: u256.Of(1)}) },
		"sent nonce 9 after 7":   func(_ *App, k *account) { k.receipt(Receipt{Block: 5, Index: 1, From: addr(1), Nonce: 9, Done: true}) },
	} {
		a := New(1, program.Cost{})
		k := a.account()
		r, err := open(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := engine.Run(context.Background(), a.App, a.source(r, 2), engine.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := a.check(k); err != nil {
			t.Fatal(err)
		}
		if spoil(a, k); a.check(k) == nil || !strings.Contains(a.check(k).Error(), name) {
			t.Errorf("%s: %v", name, a.check(k))
		}
	}
}

func FuzzFiles(f *testing.F) {
	f.Add(txHeader+row(5, 0, 1, 9, "1", 7, tokens(2, "8")), openingHeader+openings(5, 1, 30))
	f.Add(txHeader+row(5, 0, 1, 0, "1", 7, "create,,")+row(5, 1, 1, 1, "1", 8, native), openingHeader+openings(6, 1, 30))
	f.Fuzz(func(t *testing.T, txs, openings string) {
		read := func(content string, columns []string) *program.Rows {
			rows, err := program.NewRows("f", io.NopCloser(strings.NewReader(content)), columns...)
			if err != nil {
				return nil
			}
			return rows
		}
		r := &reader{txs: read(txs, txColumns), openings: read(openings, openingColumns)}
		if r.txs == nil || r.openings == nil {
			return
		}
		r.nextTx()
		r.nextOpening()
		a := New(2, program.Cost{})
		k := a.account()
		_, err := engine.Run(context.Background(), a.App, a.source(r, 1000), engine.Options{Workers: 1, Verify: true})
		var at *program.InputError
		if err != nil && !errors.As(err, &at) {
			t.Fatal(err)
		}
		if err := a.check(k); err != nil {
			t.Fatal(err)
		}
	})
}

// What is known of the full files.
func TestFullData(t *testing.T) {
	c := config(t, nil)
	if c.Input = fulldata.Path(t, "ethereum_mainnet_85blocks_txs.csv.gz"); c.Input == "" {
		return
	}
	s, err := look(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Of the 85 blocks, 84 have transactions.
	want := survey{events: 24_342 + 84, blocks: 84, openings: 28_727, kinds: [Create + 1]int{Native: 15_493, Call: 4913, ERC20: 3903, Create: 33}}
	if s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
	_, m, reasons := replay(t, c, s.events, engine.Options{})
	t.Logf("%d of %d aborted: %v", m.Aborted, m.Events, reasons)
	// In the file, nonces rise by one: a wrong one follows from an abort.
	if diff := cmp.Diff(map[string]int{"": 23_867, "wrong nonce": 171, "insufficient funds": 11, "insufficient tokens": 293}, reasons); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	nonces(t, c, s.events)
}

// nonces verifies what is known of the file itself: in each block a sender's
// nonces rise by one.
func nonces(t *testing.T, c *program.Config, n int) {
	t.Helper()
	list, err := readAll(c, n)
	if err != nil {
		t.Fatal(err)
	}
	k := &account{}
	for i := range list {
		if tx := &list[i].tx; !list[i].isStart {
			k.receipt(Receipt{Block: tx.Block, Index: tx.Index, From: tx.From, Nonce: tx.Nonce, Done: true})
		}
	}
	if err := k.nonces(); err != nil {
		t.Error(err)
	}
}
