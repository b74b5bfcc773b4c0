package eth

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Program is the workload.
var Program = program.Program{
	Name:       "eth",
	About:      "chain: real Ethereum transactions with nonces, fees and tokens, block by block",
	ReadsInput: true,
	Params: []program.Param{
		{Name: "prebalances", Kind: program.Text, Usage: "file of the balances before each block; default: beside --input, _prebalances for _txs in its name"},
		{Name: "fees", Kind: program.Int, Default: "16", Min: 1, Max: 65_536, Usage: "accounts among which a block's fees are spread; with 1, all of its transactions conflict"},
		program.Complexity,
	},
	New: newInstance,
}

// survey is what the input is like.
type survey struct {
	events, blocks, openings int
	kinds                    [Create + 1]int
}

// look reads the input once, up to n events unless n is 0.
func look(c *program.Config, n int) (s survey, err error) {
	r, err := open(c)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for {
		e, err := r.next()
		if errors.Is(err, io.EOF) || err == nil && n > 0 && s.events == n {
			return s, nil
		}
		if err != nil {
			return s, err
		}
		s.events++
		if e.isStart {
			s.blocks++
			s.openings += len(e.start.Accounts)
		} else {
			s.kinds[e.tx.Kind]++
		}
	}
}

func newInstance(c *program.Config) (*program.Instance, error) {
	s, err := look(c, c.Events)
	if err != nil {
		return nil, err
	}
	r, err := open(c)
	if err != nil {
		return nil, err
	}
	a := New(c.Int("fees"), c.Cost("complexity"))
	k := a.account()
	return &program.Instance{
		App:    a.App,
		Source: a.source(r, s.events),
		Total:  s.events,
		Check:  func() error { return a.check(k) },
		Loops:  loops(c, s.events),
		Notes:  s.notes(),
		Close:  r.close,
	}, nil
}

// account keeps account of the results.
func (a *App) account() *account {
	k := &account{}
	a.Starts.Each(k.start)
	a.Txs.Each(k.receipt)
	return k
}

// source delivers the first n events as they are read.
func (a *App) source(r *reader, n int) txn.Source {
	return txn.SourceFunc(func(_ context.Context, f *txn.Feed, limit int) error {
		for range min(limit, n) {
			e, err := r.next()
			if err != nil {
				return err
			}
			if e.isStart {
				a.Starts.Push(f, e.start)
			} else {
				a.Txs.Push(f, e.tx)
			}
			n--
		}
		if n == 0 {
			return io.EOF
		}
		return nil
	})
}

func (s *survey) notes() []string {
	txs := s.kinds[Native] + s.kinds[Call] + s.kinds[ERC20] + s.kinds[Create]
	return []string{
		fmt.Sprintf("%d transactions in %d blocks; %d balances set at their starts", txs, s.blocks, s.openings),
		fmt.Sprintf("kinds: %d native, %d call, %d erc20, %d create", s.kinds[Native], s.kinds[Call], s.kinds[ERC20], s.kinds[Create]),
	}
}
