package eth

import (
	"bytes"
	_ "embed" // the sample
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/heddle-stream/heddle/internal/u256"
	"github.com/heddle-stream/heddle/program"
)

// The sample: the first blocks of the data set.
var (
	//go:embed sample_txs.csv.gz
	sampleTxs []byte
	//go:embed sample_prebalances.csv.gz
	samplePrebalances []byte
)

// Columns of the two files.
var (
	txColumns = []string{
		"block", "ts", "tx_index", "from", "to", "value_wei", "gas_limit", "gas_price_wei", "nonce", "kind", "erc20_to", "erc20_amount",
	}
	openingColumns = []string{"block", "account", "balance_wei"}
)

var kinds = map[string]uint8{"native": Native, "call": Call, "erc20": ERC20, "create": Create}

// event is a block's start or a transaction.
type event struct {
	isStart bool
	start   BlockStart
	tx      Tx
}

// reader merges both files, which are in the order of blocks.
type reader struct {
	txs, openings *program.Rows
	tx            Tx // the next one, if any
	hasTx         bool
	opening       Opening // the next one, if any
	openingBlock  uint64
	hasOpening    bool
}

// open opens the input and reads the first row of both files.
func open(c *program.Config) (*reader, error) {
	r, err := openFiles(c)
	if err != nil {
		return nil, err
	}
	r.nextTx()
	r.nextOpening()
	return r, nil
}

func openFiles(c *program.Config) (*reader, error) {
	path := c.Text("prebalances")
	if c.Input == "" {
		if path != "" {
			return nil, &program.ParamError{Param: "prebalances", Value: path, Allowed: "only together with --input is it allowed"}
		}
		txs, err := embedded("sample_txs.csv.gz", sampleTxs, txColumns)
		if err != nil {
			return nil, err
		}
		openings, err := embedded("sample_prebalances.csv.gz", samplePrebalances, openingColumns)
		return &reader{txs: txs, openings: openings}, err
	}
	var err error
	if path == "" {
		if path, err = program.Beside(c.Input, "_txs", "_prebalances", "prebalances"); err != nil {
			return nil, err
		}
	}
	txs, err := program.OpenRows(c.Input, txColumns...)
	if err != nil {
		return nil, err
	}
	openings, err := program.OpenRows(path, openingColumns...)
	if err != nil {
		return nil, errors.Join(err, txs.Close())
	}
	return &reader{txs: txs, openings: openings}, nil
}

func embedded(name string, content []byte, columns []string) (*program.Rows, error) {
	r, err := program.Decompress(io.NopCloser(bytes.NewReader(content)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return program.NewRows(name, r, columns...)
}

func (r *reader) close() error { return errors.Join(r.txs.Close(), r.openings.Close()) }

// next returns the next event, or io.EOF. A block's start comes before its
// transactions; a block of which no balance is listed has none.
func (r *reader) next() (event, error) {
	if r.txs.Err() != nil || r.openings.Err() != nil {
		return event{}, errors.Join(r.txs.Err(), r.openings.Err())
	}
	switch {
	case r.hasOpening && (!r.hasTx || r.openingBlock <= r.tx.Block):
		e := event{isStart: true, start: BlockStart{Block: r.openingBlock}}
		for r.hasOpening && r.openingBlock == e.start.Block {
			e.start.Accounts = append(e.start.Accounts, r.opening)
			r.nextOpening()
		}
		return e, r.openings.Err()
	case r.hasTx:
		e := event{tx: r.tx}
		r.nextTx()
		return e, r.txs.Err()
	}
	return event{}, io.EOF
}

func (r *reader) nextOpening() {
	before, first := r.openingBlock, !r.hasOpening
	if r.hasOpening = r.openings.Next(); !r.hasOpening {
		return
	}
	r.openingBlock = uint64(r.openings.Int(0, 0, math.MaxInt64))
	if !first && r.openingBlock < before {
		_ = r.openings.Fail(0, fmt.Sprintf("block %d after block %d: blocks come in order", r.openingBlock, before))
	}
	r.opening = Opening{address(r.openings, 1), amount(r.openings, 2)}
}

func (r *reader) nextTx() {
	before, first := r.tx, !r.hasTx
	if r.hasTx = r.txs.Next(); !r.hasTx {
		return
	}
	t := readTx(r.txs)
	switch {
	case first:
	case t.Block < before.Block:
		_ = r.txs.Fail(0, fmt.Sprintf("block %d after block %d: blocks come in order", t.Block, before.Block))
	case t.Block == before.Block && t.Index <= before.Index:
		_ = r.txs.Fail(2, fmt.Sprintf("tx_index %d after %d: the transactions of a block come in order", t.Index, before.Index))
	}
	r.tx = t
}

func readTx(rows *program.Rows) Tx {
	_ = rows.Int(1, 0, math.MaxInt64) // the time is the block's, and no rule needs it
	t := Tx{
		Block: uint64(rows.Int(0, 0, math.MaxInt64)), Index: uint32(rows.Int(2, 0, math.MaxUint32)),
		From: address(rows, 3), Value: amount(rows, 5),
		GasLimit: uint64(rows.Int(6, 0, math.MaxInt64)), GasPrice: uint64(rows.Int(7, 0, math.MaxInt64)),
		Nonce: uint64(rows.Int(8, 0, math.MaxInt64)),
	}
	kind, ok := kinds[rows.Text(9)]
	if !ok {
		_ = rows.Fail(9, fmt.Sprintf("kind %.20q: one of native, call, erc20, create is allowed", rows.Text(9)))
	}
	t.Kind = kind
	if kind == Create {
		absent(rows, 4)
	} else {
		t.To = address(rows, 4)
	}
	if kind == ERC20 {
		t.TokensTo, t.Tokens = address(rows, 10), amount(rows, 11)
	} else {
		absent(rows, 10)
		absent(rows, 11)
	}
	return t
}

// absent makes sure that a field is empty.
func absent(rows *program.Rows, field int) {
	if s := rows.Text(field); s != "" {
		_ = rows.Fail(field, fmt.Sprintf("%s %.50q: must be empty for kind %.20s", txColumns[field], s, rows.Text(9)))
	}
}

func address(rows *program.Rows, field int) Address {
	a, err := parseAddress(rows.Text(field))
	if err != nil {
		_ = rows.Fail(field, fmt.Sprintf("%.50q is %v", rows.Text(field), err))
	}
	return a
}

func amount(rows *program.Rows, field int) u256.Int {
	n, err := u256.Parse(rows.Text(field))
	if err != nil {
		_ = rows.Fail(field, fmt.Sprintf("%.90q is %v", rows.Text(field), err))
	}
	return n
}
