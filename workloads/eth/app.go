package eth

import (
	"fmt"

	"github.com/heddle-stream/heddle/internal/u256"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/txn"
)

// Opening is the balance of an account at the start of a block.
type Opening struct {
	Account Address
	Balance u256.Int
}

// BlockStart sets balances, before the transactions of the block.
type BlockStart struct {
	Block    uint64
	Accounts []Opening
}

// Kinds of transactions.
const (
	Native uint8 = iota // to an account without code
	Call                // of a contract
	ERC20               // of a token contract, moving tokens
	Create              // of a new contract
)

// Tx is a transaction.
type Tx struct {
	Block              uint64
	Index              uint32
	Kind               uint8
	From               Address
	To                 Address // none for Create
	Value              u256.Int
	GasLimit, GasPrice uint64
	Nonce              uint64
	TokensTo           Address // of ERC20 only
	Tokens             u256.Int
}

// Fee returns what the sender pays besides the value.
func (t *Tx) Fee() u256.Int { return u256.Mul(t.GasLimit, t.GasPrice) }

// Started is the result of a block's start: sums over its accounts of what was
// set and of what was there before.
type Started struct {
	Block         uint64
	Set, Replaced u256.Int
}

// Receipt is the result of a transaction.
type Receipt struct {
	Block  uint64
	Index  uint32
	From   Address
	Nonce  uint64
	Done   bool
	Reason string
}

// App is the declared application.
type App struct {
	App      *txn.App
	Accounts *txn.Table[Address, Account]
	Fees     *txn.Table[Lane, u256.Int]
	Holdings *txn.Table[Holding, Tokens]
	Starts   *txn.Event[BlockStart, Started]
	Txs      *txn.Event[Tx, Receipt]

	cost  program.Cost
	lanes uint32 // fee accounts of a block
	why   [faults]txn.Verdict
}

// New declares the application, without any account.
func New(lanes int, cost program.Cost) *App {
	app := txn.New("eth")
	a := &App{
		App: app, cost: cost, lanes: uint32(lanes),
		Accounts: txn.NewTable[Address, Account](app, "accounts"),
		Fees:     txn.NewTable[Lane, u256.Int](app, "fees"),
		Holdings: txn.NewTable[Holding, Tokens](app, "holdings"),
	}
	for f := none + 1; f < faults; f++ {
		a.why[f] = app.Reason(faultTexts[f])
	}
	a.blocks()
	a.transactions()
	return a
}

func (a *App) blocks() {
	set := txn.Upsert(a.Accounts, "set", func(c txn.Ctx, balance u256.Int, acc *Account, _ bool) txn.Verdict {
		a.cost.Spend(c)
		acc.set(balance)
		return txn.OK
	})
	a.Starts = txn.On(a.App, "block", func(p *txn.Plan, b BlockStart) {
		for _, o := range b.Accounts {
			set.At(p, o.Account, o.Balance)
		}
	}, func(out txn.Outcome, b BlockStart) Started {
		r := Started{Block: b.Block}
		for balance, acc := range set.All(out) {
			r.Set, _ = r.Set.Add(balance) // modulo 2^256, as are all sums for the check
			r.Replaced, _ = r.Replaced.Add(acc.Replaced)
		}
		return r
	})
}

// cost is what a transaction takes from its sender.
type cost struct {
	block, nonce uint64
	value, fee   u256.Int
}

func (a *App) transactions() {
	spend := txn.Upsert(a.Accounts, "spend", func(c txn.Ctx, s cost, acc *Account, _ bool) txn.Verdict {
		a.cost.Spend(c)
		return a.why[acc.spend(s.block, s.nonce, s.value, s.fee)]
	})
	receive := txn.Upsert(a.Accounts, "receive", func(c txn.Ctx, value u256.Int, acc *Account, _ bool) txn.Verdict {
		a.cost.Spend(c)
		return a.why[add(&acc.Balance, value)]
	})
	create := txn.Insert(a.Accounts, "create", func(c txn.Ctx, value u256.Int, acc *Account) txn.Verdict {
		a.cost.Spend(c)
		acc.Balance = value
		return txn.OK
	})
	gather := txn.Upsert(a.Fees, "gather", func(c txn.Ctx, fee u256.Int, sum *u256.Int, _ bool) txn.Verdict {
		a.cost.Spend(c)
		return a.why[add(sum, fee)]
	})
	take := txn.Upsert(a.Holdings, "take tokens", func(c txn.Ctx, amount u256.Int, h *Tokens, _ bool) txn.Verdict {
		a.cost.Spend(c)
		return a.why[h.take(amount)]
	})
	give := txn.Upsert(a.Holdings, "give tokens", func(c txn.Ctx, amount u256.Int, h *Tokens, _ bool) txn.Verdict {
		a.cost.Spend(c)
		return a.why[add(&h.Balance, amount)]
	})
	a.Txs = txn.On(a.App, "transaction", func(p *txn.Plan, t Tx) {
		spend.At(p, t.From, cost{t.Block, t.Nonce, t.Value, t.Fee()})
		switch {
		case t.Kind == Create:
			create.At(p, created(t.From, t.Nonce), t.Value)
		case !t.Value.IsZero():
			receive.At(p, t.To, t.Value)
		}
		gather.At(p, Lane{t.Block, t.Index % a.lanes}, t.Fee())
		if t.Kind == ERC20 {
			take.At(p, Holding{t.To, t.From}, t.Tokens)
			give.At(p, Holding{t.To, t.TokensTo}, t.Tokens)
		}
	}, func(out txn.Outcome, t Tx) Receipt {
		return Receipt{t.Block, t.Index, t.From, t.Nonce, out.Committed(), out.Reason()}
	})
}

// account keeps what the check needs of the results.
type account struct {
	set, replaced u256.Int
	receipts      []Receipt
}

func (k *account) start(s Started) {
	k.set, _ = k.set.Add(s.Set)
	k.replaced, _ = k.replaced.Add(s.Replaced)
}

func (k *account) receipt(r Receipt) {
	if r.Done {
		k.receipts = append(k.receipts, r)
	}
}

// nonces verifies that in each block a sender's nonces rise by one.
func (k *account) nonces() error {
	type sender struct {
		block uint64
		from  Address
	}
	last := map[sender]uint64{}
	for _, r := range k.receipts {
		s := sender{r.Block, r.From}
		if n, ok := last[s]; ok && r.Nonce != n+1 {
			return fmt.Errorf("block %d, transaction %d: %v sent nonce %d after %d", r.Block, r.Index, r.From, r.Nonce, n)
		}
		last[s] = r.Nonce
	}
	return nil
}

// check verifies that ether is conserved: balances and fees are together what
// block starts set less what they replaced, and no balance is more than that, as
// one below zero would be. Each token's balances are what was granted.
func (a *App) check(k *account) error {
	total, _ := k.set.Sub(k.replaced)
	sum := u256.Int{}
	for address, acc := range a.Accounts.All() {
		if acc.Balance.Cmp(total) > 0 {
			return fmt.Errorf("account %v has %v of %v", address, acc.Balance, total)
		}
		sum, _ = sum.Add(acc.Balance)
	}
	for _, fees := range a.Fees.All() {
		sum, _ = sum.Add(fees)
	}
	if sum != total {
		return fmt.Errorf("accounts and fees hold %v; what was set less what it replaced is %v", sum, total)
	}
	held, granted := map[Address]u256.Int{}, map[Address]u256.Int{}
	for h, tokens := range a.Holdings.All() {
		held[h.Token], _ = held[h.Token].Add(tokens.Balance)
		granted[h.Token], _ = granted[h.Token].Add(tokens.Granted)
	}
	for token, sum := range held {
		if sum != granted[token] {
			return fmt.Errorf("holders of token %v have %v; they were granted %v", token, sum, granted[token])
		}
	}
	return k.nonces()
}
