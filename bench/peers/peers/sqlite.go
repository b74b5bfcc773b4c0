package peers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/heddle-stream/heddle/workloads/sl"
	_ "modernc.org/sqlite" // the driver
)

// sqliteJob runs the events on tables in memory, over one connection: SQLite has
// one writer at a time, and events are in order.
type sqliteJob struct {
	in    *Input
	batch int // events per SQL transaction
	db    *sql.DB
	conn  *sql.Conn

	begin, commit, addAccount, addBook, debit *sql.Stmt
}

func prepareSQLite(batch int) func(in *Input) (Job, error) {
	return func(in *Input) (Job, error) {
		db, err := sql.Open("sqlite", ":memory:")
		if err != nil {
			return nil, err
		}
		j := &sqliteJob{in: in, batch: batch, db: db}
		ctx := context.Background()
		if j.conn, err = db.Conn(ctx); err == nil {
			err = j.load(ctx)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("sqlite: %w", err), j.Close())
		}
		return j, nil
	}
}

func (j *sqliteJob) load(ctx context.Context) error {
	for _, statement := range []string{
		"PRAGMA synchronous = OFF", "PRAGMA journal_mode = MEMORY", "PRAGMA locking_mode = EXCLUSIVE", "PRAGMA temp_store = MEMORY",
		"CREATE TABLE accounts (key INTEGER PRIMARY KEY, value INTEGER NOT NULL)",
		"CREATE TABLE books (key INTEGER PRIMARY KEY, value INTEGER NOT NULL)",
	} {
		if _, err := j.conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	for _, table := range []string{"accounts", "books"} {
		fill := "WITH RECURSIVE n(k) AS (SELECT 0 UNION ALL SELECT k+1 FROM n WHERE k+1 < ?) INSERT INTO " + table + " SELECT k, ? FROM n"
		if _, err := j.conn.ExecContext(ctx, fill, int64(j.in.Keys), int64(sl.Opening)); err != nil {
			return err
		}
	}
	for _, p := range []struct {
		to   **sql.Stmt
		text string
	}{
		{&j.begin, "BEGIN IMMEDIATE"},
		{&j.commit, "COMMIT"},
		{&j.addAccount, "UPDATE accounts SET value = value + ? WHERE key = ?"},
		{&j.addBook, "UPDATE books SET value = value + ? WHERE key = ?"},
		// The condition on both balances goes with the first debit, so that a
		// transfer that fails costs one statement and leaves nothing to undo.
		{&j.debit, "UPDATE accounts SET value = value - ?1 WHERE key = ?2 AND value >= ?1" +
			" AND (SELECT value FROM books WHERE key = ?3) >= ?4"},
	} {
		statement, err := j.conn.PrepareContext(ctx, p.text)
		if err != nil {
			return err
		}
		*p.to = statement
	}
	return nil
}

func (j *sqliteJob) Run(ctx context.Context) error {
	for events := j.in.Events; len(events) > 0; {
		batch := events[:min(j.batch, len(events))]
		events = events[len(batch):]
		if err := j.transaction(ctx, batch); err != nil {
			return fmt.Errorf("sqlite: %w", err)
		}
	}
	return nil
}

func (j *sqliteJob) transaction(ctx context.Context, batch []sl.Event) error {
	if _, err := j.begin.ExecContext(ctx); err != nil {
		return err
	}
	for i := range batch {
		if err := j.execute(ctx, &batch[i]); err != nil {
			return err
		}
	}
	_, err := j.commit.ExecContext(ctx)
	return err
}

func (j *sqliteJob) execute(ctx context.Context, e *sl.Event) error {
	if e.IsDeposit {
		if _, err := j.addAccount.ExecContext(ctx, e.Deposit.Amount, e.Deposit.Account); err != nil {
			return err
		}
		_, err := j.addBook.ExecContext(ctx, e.Deposit.Amount, e.Deposit.Book)
		return err
	}
	t := &e.Transfer
	r, err := j.debit.ExecContext(ctx, t.Amount, t.From, t.FromBook, t.BookAmount)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return err
	}
	if _, err := j.addBook.ExecContext(ctx, -t.BookAmount, t.FromBook); err != nil {
		return err
	}
	if _, err := j.addAccount.ExecContext(ctx, t.Amount, t.To); err != nil {
		return err
	}
	_, err = j.addBook.ExecContext(ctx, t.BookAmount, t.ToBook)
	return err
}

func (j *sqliteJob) State() (State, error) {
	accounts, err := j.rows("accounts")
	if err != nil {
		return State{}, err
	}
	books, err := j.rows("books")
	return mapState(accounts, books), err
}

func (j *sqliteJob) rows(table string) (map[uint32]int64, error) {
	rows, err := j.conn.QueryContext(context.Background(), "SELECT key, value FROM "+table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[uint32]int64{}
	for rows.Next() {
		var key uint32
		var value int64
		if err := rows.Scan(&key, &value); err != nil {
			return nil, err
		}
		out[key] = value
	}
	return out, rows.Err()
}

// Close ends the connection, and with it the tables.
func (j *sqliteJob) Close() error {
	var err error
	if j.conn != nil {
		err = j.conn.Close()
	}
	return errors.Join(err, j.db.Close())
}
